#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/queue.h"
#include "rpcrdma/endpoint.h"

namespace weft::rpcrdma {

// Outbox: messages of neither engine that wait for a Send buffer or for credits. An answer keeps the Receive of the
// message that it answers until it has left, so a peer makes an Outbox hold one message for each Receive that the peer
// was given. One thread.
class Outbox {
 public:
  using Octets = std::vector<std::uint8_t>;
  struct Entry {
    Octets octets;
    std::optional<ReceiveSlot> answers;  // the Receive
  };

  // Nothing is kept of an empty message.
  void add(Octets&& octets, std::optional<ReceiveSlot> answers) {
    if (!octets.empty()) waiting_.push_back({std::move(octets), answers});
  }
  bool empty() const { return waiting_.empty(); }
  // The first message is copied to the Send buffer; returns its length.
  std::size_t fill(MutBytes buffer) const {
    const Octets& octets = waiting_.front().octets;
    std::ranges::copy(octets, buffer.begin());
    return octets.size();
  }
  // The first message leaves from this Send buffer. Returns the Receive that it answers.
  std::optional<ReceiveSlot> leave(SendSlot slot) {
    sends_.push_back(slot);
    const auto receive = waiting_.front().answers;
    waiting_.pop_front();
    return receive;
  }
  // Whether the Send was one of these. It ended.
  bool on_sent(SendSlot slot) { return std::erase(sends_, slot) != 0; }
  // Gives back memory that no message needs now.
  void trim() {
    waiting_.trim();
    if (sends_.empty()) std::vector<SendSlot>().swap(sends_);
  }

 private:
  Queue<Entry> waiting_;
  std::vector<SendSlot> sends_;
};

}  // namespace weft::rpcrdma
