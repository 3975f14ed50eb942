#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace weft::apps {

// Occupant is one client of a listener that has a fixed number of places.
struct Occupant {
  std::string group;         // peer_group of its address
  std::uint64_t memory = 0;  // octets that the client asked for
  std::chrono::steady_clock::duration silent_for{};
};

// PlaceLimits bounds clients and octets, for all clients together and for one group.
struct PlaceLimits {
  std::size_t all = 0;
  std::size_t per_group = 0;
  std::uint64_t memory = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t memory_per_group = std::numeric_limits<std::uint64_t>::max();
};

// Admission tells whether a client may enter, and which occupants, by their index, lose their places for it.
struct Admission {
  std::string refusal;  // the reason for a refusal; empty if the client may enter
  std::vector<std::size_t> leaving;
};

// A client keeps its place for this time after its last message.
inline constexpr std::chrono::seconds kKeepsPlace{1};

// admit decides about a client that wants to enter. If places or memory are short, an occupant that was silent for
// longer than kKeepsPlace leaves. It is of the newcomer's group if this group's share is used up. Otherwise it is of
// any group: the group that has most comes first, and in it the occupant that was silent longest. If all occupants are
// busy, the group that has most gives way to a group that still has less afterwards.
Admission admit(const Occupant& newcomer, std::span<const Occupant> occupants, const PlaceLimits& limits);

}  // namespace weft::apps
