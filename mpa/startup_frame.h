#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "mpa/error.h"
#include "mpa/startup_fault.h"

namespace weft::mpa {

inline constexpr std::size_t kStartupHeaderLen = 20;
inline constexpr std::size_t kMaxPrivateDataLen = 512;
inline constexpr std::size_t kEnhancedWordsLen = 4;
inline constexpr std::uint8_t kEnhancedRevision = 2;  // the least Rev that gives the S bit a meaning

enum class FrameKind : std::uint8_t { kRequest, kReply };

// StartupFrame is an MPA Request or Reply Frame (RFC 5044 section 7.1.1, RFC 6581 section 6) as it is on the wire.
struct StartupFrame {
  FrameKind kind = FrameKind::kRequest;
  bool m = false;        // the sender wants to receive Markers
  bool c = false;        // the sender wants CRCs
  bool r = false;        // Reply: rejected; meaningless in a Request
  bool s = false;        // the bit itself; see enhanced()
  std::uint8_t res = 0;  // 4 bits, never checked (MPA-7.1.1-14)
  std::uint8_t rev = 1;
  std::vector<std::uint8_t> private_data;  // the whole field, including RFC 6581's four octets if present

  // Whether private_data begins with the words of RFC 6581. At Rev 1 the S bit is one of the Res bits.
  bool enhanced() const { return s && rev >= kEnhancedRevision; }
  friend bool operator==(const StartupFrame&, const StartupFrame&) = default;
};

// NeedMore: the parser needs at least len more octets.
struct NeedMore {
  std::size_t len = 0;
  friend bool operator==(const NeedMore&, const NeedMore&) = default;
};

// BadFrame is an improperly formatted startup frame (MPA-7.1.2-04): TCP is closed without an answer.
struct BadFrame {
  Error error = Error::kStartupFrame;
  std::string_view reason;  // for a log; a literal
  StartupFault fault = StartupFault::kForeign;
};

// ParsedFrame is a whole frame of len octets.
struct ParsedFrame {
  StartupFrame frame;
  std::size_t len = 0;
};

// parse_startup_frame reads a frame from the front of octets. A wrong Key is refused at its first wrong octet, and a
// PD_Length above 512 as soon as the header is complete. Rev is not judged here.
std::variant<NeedMore, ParsedFrame, BadFrame> parse_startup_frame(ConstBytes octets, FrameKind expected);

// emit_startup_frame appends a frame to out. Precondition: at most kMaxPrivateDataLen octets of private data.
void emit_startup_frame(const StartupFrame& frame, std::vector<std::uint8_t>& out);

// EnhancedWords are the first four octets of the Private Data of an enhanced frame (RFC 6581 section 9).
struct EnhancedWords {
  static constexpr std::uint16_t kManual = 0x3fff;  // IRD or ORD: no automatic negotiation, the ULP decides

  bool a = false;         // peer-to-peer connection model
  bool b = false;         // RTR by zero-length Send
  bool c = false;         // RTR by zero-length RDMA Write (not the C bit of the frame)
  bool d = false;         // RTR by zero-length RDMA Read
  std::uint16_t ird = 0;  // 14 bits
  std::uint16_t ord = 0;  // 14 bits
  friend bool operator==(const EnhancedWords&, const EnhancedWords&) = default;
};

// parse_enhanced_words reads the words of a frame. It returns nothing if the frame is not enhanced or too short.
std::optional<EnhancedWords> parse_enhanced_words(const StartupFrame& frame);

// emit_enhanced_words appends the four octets to out.
void emit_enhanced_words(const EnhancedWords& words, std::vector<std::uint8_t>& out);

// ulp_private_data gives the ULP's part: the private data without the enhanced words. It is a view into frame.
ConstBytes ulp_private_data(const StartupFrame& frame);

}  // namespace weft::mpa
