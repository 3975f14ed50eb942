#pragma once

#include <cstdint>

namespace weft::mpa {

// Error is the error that MPA reports to DDP (RFC 5044 section 8, RFC 6581 section 8). The values are the Error Codes
// of a Terminate with Layer 2, Error Type 0. kConnectionLost is never put on the wire, kStartupFrame closes TCP at
// once.
enum class Error : std::uint8_t {
  kConnectionLost = 1,     // RST, FIN or timeout
  kCrc = 2,                // the CRC32c of an FPDU differs
  kMarker = 3,             // Marker and ULPDU_Length disagree, or the ULPDU_Length is impossible
  kStartupFrame = 4,       // an invalid Request or Reply Frame
  kLocalCatastrophic = 5,  // any other local error during enhanced connection setup
  kInsufficientIrd = 6,    // the responder's ORD exceeds the Reads that the initiator can serve
  kNoMatchingRtr = 7,      // no common RTR indication, or different connection models
};

}  // namespace weft::mpa
