#pragma once

#include <cstdint>
#include <optional>

#include "rdmap/stream.h"
#include "verbs-shim/api/verbs.h"

// Translates between the types of the verbs and of RDMAP.
namespace weft::verbs::soft {

// SendOpcodes is the opcode of a work request on the wire and in its completion.
struct SendOpcodes {
  rdmap::SendOp wire;
  WcOpcode completed;
};

// Nothing if iWARP in user space has no counterpart.
std::optional<SendOpcodes> send_op(WrOpcode opcode);
// Checks a request whose opcode has a counterpart: its rules, and the limits of its queue pair.
Status check_send(const SendWr& wr, const QpCap& cap);
// A bit of the note, above the WcOpcode.
inline constexpr std::uint16_t kSignaled = 0x100;
// Fills a request that may have been used before, and reuses its memory. The note carries the opcode and the signaled
// flag to the completion.
void to_request(const SendWr& wr, const SendOpcodes& op, bool signaled, rdmap::SendWr& out);
WcOpcode opcode_of(const rdmap::SendWr& request);

// Whether the user hears of the completion. The user does not hear of the success of an unsignaled send.
inline bool is_told(const rdmap::Completion& completion) {
  return completion.op == rdmap::WorkOp::kRecv || completion.status != rdmap::WorkStatus::kSuccess ||
         (completion.note & kSignaled) != 0;
}
Wc to_wc(const rdmap::Completion& completion);
// The event for the Terminate that we sent; it names the end at fault.
AsyncEventType event_of(const rdmap::Terminate& terminate);
QpCounters to_api(const rdmap::StreamCounters& in);

}  // namespace weft::verbs::soft
