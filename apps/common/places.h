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
  std::string group;         // rpcrdma::peer_group of its address
  std::uint64_t memory = 0;  // octets that it asked for
  std::chrono::steady_clock::duration silent_for{};
};

// PlaceLimits: clients and octets, all together and those of one group.
struct PlaceLimits {
  std::size_t all = 0;
  std::size_t per_group = 0;
  std::uint64_t memory = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t memory_per_group = std::numeric_limits<std::uint64_t>::max();
};

// Admission: whether a client may come in, and which occupants, by their index, lose their places for it.
struct Admission {
  std::string refusal;  // why it may not; empty where it may
  std::vector<std::size_t> leaving;
};

// So long after it last said something a client keeps its place.
inline constexpr std::chrono::seconds kKeepsPlace{1};

// admit decides about a client that wants to come in. Where places or memory are short, an occupant leaves that has
// been silent for longer than kKeepsPlace: of the newcomer's group where its share is used up, otherwise of any, those
// of the group that has most first, and of these the one that was silent longest. Where all of them are busy, the group
// that has most gives way to one that still has less afterwards.
Admission admit(const Occupant& newcomer, std::span<const Occupant> occupants, const PlaceLimits& limits);

}  // namespace weft::apps
