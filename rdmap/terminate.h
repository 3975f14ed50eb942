#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "ddp/error.h"
#include "mpa/error.h"
#include "rdmap/header.h"

namespace weft::rdmap {

enum class Layer : std::uint8_t { kRdma = 0, kDdp = 1, kLlp = 2 };

// Terminate is the error of a Terminate Message (RFC 5040 section 4.8): layer, error type and error code.
struct Terminate {
  Layer layer = Layer::kRdma;
  std::uint8_t etype = 0;  // 4 bits
  std::uint8_t code = 0;
  friend bool operator==(const Terminate&, const Terminate&) = default;
};

// The errors that RDMAP itself reports (RFC 5040 Figure 9). to_terminate makes the errors of DDP and MPA.
inline constexpr Terminate kLocalCatastrophic{Layer::kRdma, 0, 0x00};
inline constexpr Terminate kReadInvalidStag{Layer::kRdma, 1, 0x00};
inline constexpr Terminate kReadBaseBounds{Layer::kRdma, 1, 0x01};
inline constexpr Terminate kReadAccessRights{Layer::kRdma, 1, 0x02};
inline constexpr Terminate kReadNotAssociated{Layer::kRdma, 1, 0x03};
inline constexpr Terminate kReadToWrap{Layer::kRdma, 1, 0x04};
inline constexpr Terminate kInvalidateProtection{Layer::kRdma, 1, 0x09};
inline constexpr Terminate kInvalidVersion{Layer::kRdma, 2, 0x05};
inline constexpr Terminate kUnexpectedOpcode{Layer::kRdma, 2, 0x06};
inline constexpr Terminate kStreamCatastrophic{Layer::kRdma, 2, 0x07};
inline constexpr Terminate kInvalidateOperation{Layer::kRdma, 2, 0x09};

Terminate to_terminate(mpa::Error error);
Terminate to_terminate(ddp::Error error);
// The reason why a Read Request may not read its source (RFC 5040 section 7.2).
Terminate to_read_terminate(ddp::AccessError error);
// The reason why a Send with Invalidate may not invalidate. Another stream's STag is a protection error. An unknown or
// shared STag is an operation error (RDMAP-N-03).
Terminate to_invalidate_terminate(ddp::AccessError error);

// TerminateRow is one registered combination (RFC 5040 Figure 9, RFC 5041 section 7.2, RFC 5044 section 8, RFC 6581
// section 8).
struct TerminateRow {
  Layer layer = Layer::kRdma;
  std::uint8_t etype = 0;
  std::uint8_t code = 0;
  bool any_code = false;     // the type has no code list: every code means the same
  std::string_view meaning;  // a noun phrase without full stop
};
std::span<const TerminateRow> terminate_rows();

// describe gives a triple in one line: "RDMAP: unexpected opcode (0/2/06)". It calls an unregistered triple
// unregistered.
std::string describe(const Terminate& terminate);

inline constexpr std::size_t kTerminateControlLen = 4;
// The longest Terminate: control, segment length, untagged DDP header, Read Request header (RFC 5040 section 5.4).
inline constexpr std::size_t kTerminateMaxLen = 4 + 2 + 18 + kReadRequestHeaderLen;

// TerminateMessage is the body of a Terminate Message as wire fields, valid or not (RFC 5040 section 4.8).
struct TerminateMessage {
  Terminate what;
  // M and its field. With D alone the field is present but has no meaning.
  std::optional<std::uint16_t> segment_len = {};
  // D: 14 octets if their own T bit is 1, else 18. Empty without D, or if the message ends too early.
  std::array<std::uint8_t, 18> ddp_header{};
  std::size_t ddp_header_len = 0;
  // R: the Read Request header.
  std::array<std::uint8_t, kReadRequestHeaderLen> rdma_header{};
  bool has_rdma_header = false;
  // Linux siw on little-endian hosts swaps Layer with EType and puts M, D, R into the low bits. This is the error that
  // it meant, present only if the header bits reveal siw (PEER-H-20). The headers behind follow the RFC's layout, but
  // segment_len counts payload only, and the MSN of a Read Request may have any value.
  std::optional<Terminate> siw = {};

  ConstBytes ddp() const { return ConstBytes(ddp_header).first(ddp_header_len); }
  friend bool operator==(const TerminateMessage&, const TerminateMessage&) = default;
};

// parse_terminate reads a Terminate body of any length. Returns nothing if the body is shorter than the four control
// octets. Reserved bits and octets behind the announced parts are ignored. A part that is cut short counts as absent.
std::optional<TerminateMessage> parse_terminate(ConstBytes body);

// emit_terminate writes the body into out and returns its length, at most kTerminateMaxLen. It does not write the siw
// reading. Precondition: out has room for the body.
std::size_t emit_terminate(const TerminateMessage& message, MutBytes out);

}  // namespace weft::rdmap
