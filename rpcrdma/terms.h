#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

#include "rpcrdma/private_data.h"
#include "rpcrdma/properties.h"

namespace weft::rpcrdma {

// Thresholds of one connection, in octets: each the smaller of one side's send size and the other side's receive size
// (RFC 8166 section 3.3.2, RFC 8797 section 4.2).
struct Thresholds {
  std::size_t send = kDefaultInline;
  std::size_t receive = kDefaultInline;
  friend bool operator==(const Thresholds&, const Thresholds&) = default;
};

// ChunkTerms: chunks that a peer takes in the header of one Call.
struct ChunkTerms {
  std::size_t max_segment = std::numeric_limits<std::uint32_t>::max();   // octets
  std::size_t max_segments = std::numeric_limits<std::uint32_t>::max();  // of all lists together
  friend bool operator==(const ChunkTerms&, const ChunkTerms&) = default;
};

// Terms: what holds for the messages of a connection once both ends have told their properties.
struct Terms {
  Thresholds thresholds;
  ChunkTerms chunks;
  ReverseSupport reverse = ReverseSupport::kGeneral;  // of the peer
};

// least: octets of a message, and of a segment, that every end takes, whatever it says.
inline Terms terms_of(const Properties& own, const Properties& peer, std::size_t least) {
  return {
      .thresholds = {.send = std::min<std::size_t>(own.send_size, std::max<std::size_t>(peer.receive_size, least)),
                     .receive = std::min<std::size_t>(own.receive_size, std::max<std::size_t>(peer.send_size, least))},
      .chunks = {.max_segment = std::max<std::size_t>(peer.segment_size, least), .max_segments = peer.segment_count},
      .reverse = peer.reverse};
}

}  // namespace weft::rpcrdma
