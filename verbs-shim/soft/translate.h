#pragma once

#include <cstdint>
#include <optional>

#include "rdmap/stream.h"
#include "verbs-shim/api/verbs.h"

// The verbs' words in RDMAP's, and back.
namespace weft::verbs::soft {

// SendOpcodes is the opcode of a work request on the wire and in its completion.
struct SendOpcodes {
  rdmap::SendOp wire;
  WcOpcode completed;
};

// Nothing where iWARP in user space has no counterpart.
std::optional<SendOpcodes> send_op(WrOpcode opcode);
// Whether the request, whose opcode has a counterpart, keeps to its rules and to what its queue pair was created for.
Status check_send(const SendWr& wr, const QpCap& cap);
// In a note, above the WcOpcode.
inline constexpr std::uint16_t kSignaled = 0x100;
// Into a request that may have been used before: its memory is. Its note carries the opcode and the signaled flag to
// the completion.
void to_request(const SendWr& wr, const SendOpcodes& op, bool signaled, rdmap::SendWr& out);
WcOpcode opcode_of(const rdmap::SendWr& request);

// Whether the request's user hears of its completion: not of a success that was not to be signaled.
inline bool is_told(const rdmap::Completion& completion) {
  return completion.op == rdmap::WorkOp::kRecv || completion.status != rdmap::WorkStatus::kSuccess ||
         (completion.note & kSignaled) != 0;
}
Wc to_wc(const rdmap::Completion& completion);
// The event that names the end at fault, by the Terminate that we sent.
AsyncEventType event_of(const rdmap::Terminate& terminate);
QpCounters to_api(const rdmap::StreamCounters& in);

}  // namespace weft::verbs::soft
