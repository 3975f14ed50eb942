#pragma once

#include <atomic>
#include <cstdint>

#include "verbs-shim/api/verbs.h"

// siw copies the memory of a signaled request into the socket, and completes the request then. An unsignaled Write or
// Send of a page and more it does not copy: the socket gets the pages themselves, and siw's CRC is of what they held at
// that moment. TCP reads them until the peer has acknowledged them, which may be long after the completion of a later
// request. That completion gives the memory back to the user, whose next octets are then sent under the CRC of the
// former ones, or without a CRC as if they were right.
//
// So such requests are posted as signaled ones, and their successful completions are kept from the user.
namespace weft::verbs::ibv {

// Whether siw sends the memory of this request, unsignaled, without a copy.
inline bool is_sent_without_copy(const SendWr& wr) {
  // SENDPAGE_THRESH of siw.h is the kernel's page size; this is the smallest there is.
  constexpr std::uint64_t kThreshold = 4096;
  const bool sends =
      wr.opcode == WrOpcode::kRdmaWrite || wr.opcode == WrOpcode::kSend || wr.opcode == WrOpcode::kSendWithInv;
  if (!sends || has(wr.send_flags, SendFlags::kInline)) return false;
  std::uint64_t octets = 0;
  for (const Sge& sge : wr.sg_list) octets += sge.length;
  return octets >= kThreshold;
}

// HiddenRoom: entries of a Cq that its user did not ask for, for completions that the user does not get. Any thread.
class HiddenRoom {
 public:
  void add(std::uint32_t num) { room_.fetch_add(num, std::memory_order_relaxed); }
  bool take() {
    std::uint32_t room = room_.load(std::memory_order_relaxed);
    while (room > 0 && !room_.compare_exchange_weak(room, room - 1, std::memory_order_relaxed)) {
    }
    return room > 0;
  }

 private:
  std::atomic<std::uint32_t> room_{0};
};

}  // namespace weft::verbs::ibv
