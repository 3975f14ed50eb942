#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace weft::rpcrdma {

inline constexpr std::size_t kDefaultInline = 1024;    // octets (RFC 8166 section 3.3.3)
inline constexpr std::size_t kMaxInline = 256 * 1024;  // octets; the most that RFC 8797 can express
inline constexpr std::size_t kPrivateDataLen = 8;

// PrivateData: the private data of RFC 8797 section 4 that a peer sends at connection set-up. Sizes in octets,
// multiples of 1024.
struct PrivateData {
  bool remote_invalidate = false;  // R
  std::size_t send_size = kDefaultInline;
  std::size_t receive_size = kDefaultInline;
  friend bool operator==(const PrivateData&, const PrivateData&) = default;
};

// parse_private_data looks for the identifier at every offset; it returns the defaults if there is no known identifier
// (RFC 8797 sections 5.1 and 5.2).
PrivateData parse_private_data(ConstBytes octets);
// emit_private_data rounds sizes down to a multiple of 1024; they are 1024 to 262144.
std::array<std::uint8_t, kPrivateDataLen> emit_private_data(const PrivateData& data);

}  // namespace weft::rpcrdma
