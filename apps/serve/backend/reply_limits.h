#pragma once

#include <cstdint>

namespace weft::serve {

// Octets of a reply at most, whatever the client asks for. A client goes on with the cookie of the last entry, so it
// may get fewer entries than it has room for (RFC 1813 sections 3.3.16 and 3.3.17).
inline constexpr std::uint32_t kMaxReaddirReply = 1 << 20;
// Each entry of READDIRPLUS is looked up. A larger reply would keep a worker from others for a tenth of a second and
// longer.
inline constexpr std::uint32_t kMaxReaddirplusReply = 128 << 10;

}  // namespace weft::serve
