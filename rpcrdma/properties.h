#pragma once

#include <cstdint>
#include <optional>
#include <vector>

// The facts that one end of a connection tells the other one about itself, in versions that have transport properties.
namespace weft::rpcrdma {

// ReverseSupport: which messages of the reverse direction an end takes. Each level includes those before it.
enum class ReverseSupport : std::uint8_t {
  kNone,
  kInline,     // without chunks; RDMA2_BKREQSUP_INLINE, RDMA2_RVRSDIR_SIMPLE
  kContinued,  // without chunks, in one message or in several
  kGeneral,    // as in the forward direction
};

// Properties: what an endpoint tells about itself. Sizes in octets. The values are the peer's and bounded by nothing.
struct Properties {
  std::uint32_t send_size = 4096;     // the longest Send that the endpoint makes
  std::uint32_t receive_size = 4096;  // the least size of the endpoint's Receives
  std::uint32_t segment_size = 1 << 20;
  std::uint32_t segment_count = 16;  // of all lists of one header together
  ReverseSupport reverse = ReverseSupport::kNone;
  std::optional<std::vector<std::uint8_t>> host_auth = {};
  friend bool operator==(const Properties&, const Properties&) = default;
};

}  // namespace weft::rpcrdma
