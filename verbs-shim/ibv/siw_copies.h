#pragma once

#include <atomic>
#include <cstdint>

#include "verbs-shim/api/verbs.h"

// siw copies the memory of a signaled request into the socket, and then completes the request. It does not copy the
// memory of an unsignaled Write or Send of a page and more: the socket gets the pages themselves, and siw computes the
// CRC of the octets that they hold at that moment. TCP reads the pages until the peer has acknowledged them. That may
// be long after the completion of a later request. But this completion gives the memory back to the user, and the
// user's next octets are then sent under the CRC of the former ones, or without a CRC.
//
// So this backend posts the unsignaled requests whose memory siw does not copy as signaled ones. It keeps their
// successful completions to itself.
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
