#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"

namespace weft::verbs::soft {

// RoundShares divides the octets of a round of turns among the addresses of the connections in it, and then among the
// connections of an address. An address that has moved its part waits for the next round with the rest of its
// connections. Once the round has moved its octets, connections wait that only go on with what their last turn left. So
// a connection that has something new has its turn soon, however many others move as much as they can. In a round of
// few connections none waits.
//
// The octets of a turn are those that it may write. It may read more, and ends with a whole FPDU. So an address may
// exceed its part by what one turn moves, and so may a round. A received FPDU counts as kFpdu octets more. It takes
// time however short it is, and 64 KiB have room for thousands of RDMA Writes without data.
class RoundShares {
 public:
  // The octets of a round, and of a turn.
  static constexpr std::size_t kRound = std::size_t{4} << 20;
  static constexpr std::size_t kMost = std::size_t{3} << 20;
  static constexpr std::size_t kLeast = std::size_t{64} << 10;
  static constexpr std::size_t kFew = 4;
  static constexpr std::size_t kFpdu = 1024;
  // A socket is asked for no less, however short the FPDUs are.
  static constexpr std::size_t kLeastRead = std::size_t{2} << 10;

  // Names an address; null: the connections that we made.
  using Address = const void*;

  // A round of about so many turns begins. If it is divided, each of its connections enters then.
  void begin(std::size_t num_turns) {
    is_divided_ = num_turns > kFew;
    moved_ = 0;
    if (is_divided_) parts_.clear();
  }
  bool is_divided() const { return is_divided_; }
  void enter(Address address) { ++parts_[address].num_turns; }

  // The octets of the next turn of this address, for a connection that has something new, or goes on with what its last
  // turn left. 0: it waits for the next round.
  std::size_t octets_for(Address address, bool goes_on) const {
    if (!is_divided_) return kMost;
    if (goes_on && moved_ >= kRound) return 0;
    const auto at = parts_.find(address);
    if (at == parts_.end()) return kLeast;
    const std::size_t whole = std::max(kRound / parts_.size(), kLeast);
    if (at->second.moved >= whole) return 0;
    return std::clamp(whole / at->second.num_turns, kLeast, kMost);
  }
  // The octets that a turn reads, so that no more than `octets` count. octets_each: the octets of an expected FPDU.
  static std::size_t octets_to_read(std::size_t octets, std::size_t octets_each) {
    return std::max(octets * octets_each / (octets_each + kFpdu), kLeastRead);
  }
  // A turn has moved so many octets, and received so many FPDUs.
  void moved(Address address, std::size_t octets, std::size_t fpdus) {
    if (!is_divided_) return;
    octets += fpdus * kFpdu;
    parts_[address].moved += octets;
    moved_ += octets;
  }

 private:
  struct Part {
    std::size_t num_turns = 0;
    std::size_t moved = 0;
  };

  absl::flat_hash_map<Address, Part> parts_;
  std::size_t moved_ = 0;
  bool is_divided_ = false;
};

}  // namespace weft::verbs::soft
