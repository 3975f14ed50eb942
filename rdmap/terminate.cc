#include "rdmap/terminate.h"

#include <fmt/format.h>

#include <cassert>
#include <cstring>

#include "mpa/wire/cursor.h"

namespace weft::rdmap {

namespace {

constexpr std::uint8_t kM = 0x80;
constexpr std::uint8_t kD = 0x40;
constexpr std::uint8_t kR = 0x20;
// The header bits of siw on a little-endian host when it returns headers: M 0x01, D 0x02, R 0x04 (PEER-H-20).
constexpr std::uint8_t kSiwMd = 0x03;
constexpr std::uint8_t kSiwMdr = 0x07;

constexpr std::size_t kTaggedLen = 14;
constexpr std::size_t kUntaggedLen = 18;
constexpr std::uint8_t kTaggedBit = 0x80;

constexpr TerminateRow row(Layer layer, int etype, int code, std::string_view meaning) {
  return {layer, static_cast<std::uint8_t>(etype), static_cast<std::uint8_t>(code), false, meaning};
}
constexpr TerminateRow any(Layer layer, int etype, std::string_view meaning) {
  return {layer, static_cast<std::uint8_t>(etype), 0, true, meaning};
}

constexpr TerminateRow kTerminateRows[] = {
    any(Layer::kRdma, 0, "local catastrophic error: a fault of the sender's own, no message of ours to blame"),
    row(Layer::kRdma, 1, 0x00, "remote protection: invalid STag in a Read Request"),
    row(Layer::kRdma, 1, 0x01, "remote protection: base or bounds violation by a Read Request"),
    row(Layer::kRdma, 1, 0x02, "remote protection: access rights violation by a Read Request"),
    row(Layer::kRdma, 1, 0x03, "remote protection: STag of a Read Request is not associated with this stream"),
    row(Layer::kRdma, 1, 0x04, "remote protection: tagged offset of a Read Request wraps"),
    row(Layer::kRdma, 1, 0x09, "remote protection: STag cannot be invalidated, it is not of this stream"),
    row(Layer::kRdma, 1, 0xff, "remote protection: unspecified error"),
    row(Layer::kRdma, 2, 0x05, "remote operation: invalid RDMAP version"),
    row(Layer::kRdma, 2, 0x06, "remote operation: unexpected opcode"),
    row(Layer::kRdma, 2, 0x07, "remote operation: catastrophic error, localized to this stream"),
    row(Layer::kRdma, 2, 0x08, "remote operation: catastrophic error, global"),
    row(Layer::kRdma, 2, 0x09, "remote operation: STag cannot be invalidated, it is unknown or shared"),
    row(Layer::kRdma, 2, 0xff, "remote operation: unspecified error"),
    row(Layer::kDdp, 0, 0x00, "local catastrophic error: placement failed, or a segment shorter than its header"),
    row(Layer::kDdp, 1, 0x00, "tagged buffer: invalid STag"),
    row(Layer::kDdp, 1, 0x01, "tagged buffer: base or bounds violation"),
    row(Layer::kDdp, 1, 0x02, "tagged buffer: STag is not associated with this stream"),
    row(Layer::kDdp, 1, 0x03, "tagged buffer: tagged offset wraps"),
    row(Layer::kDdp, 1, 0x04, "tagged buffer: invalid DDP version"),
    row(Layer::kDdp, 2, 0x01, "untagged buffer: invalid queue number"),
    row(Layer::kDdp, 2, 0x02, "untagged buffer: invalid MSN, no buffer available"),
    row(Layer::kDdp, 2, 0x03, "untagged buffer: invalid MSN, out of range"),
    row(Layer::kDdp, 2, 0x04, "untagged buffer: invalid message offset"),
    row(Layer::kDdp, 2, 0x05, "untagged buffer: message too long for the available buffer"),
    row(Layer::kDdp, 2, 0x06, "untagged buffer: invalid DDP version"),
    any(Layer::kDdp, 3, "reserved for the lower layer"),
    row(Layer::kLlp, 0, 0x01, "TCP connection closed, terminated or lost"),
    row(Layer::kLlp, 0, 0x02, "CRC error"),
    row(Layer::kLlp, 0, 0x03, "Marker and ULPDU_Length mismatch"),
    row(Layer::kLlp, 0, 0x04, "invalid MPA Request or Reply Frame"),
    row(Layer::kLlp, 0, 0x05, "local catastrophic error in enhanced connection setup"),
    row(Layer::kLlp, 0, 0x06, "insufficient IRD resources"),
    row(Layer::kLlp, 0, 0x07, "no matching RTR option"),
};

std::string_view layer_name(Layer layer) {
  switch (layer) {
    case Layer::kRdma: return "RDMAP";
    case Layer::kDdp: return "DDP";
    case Layer::kLlp: return "MPA";
  }
  return "unknown layer";
}

// Reads the parts that header_bits announce, as far as they are present.
void parse_headers(Reader& in, std::uint8_t header_bits, TerminateMessage& m) {
  if ((header_bits & (kM | kD)) != 0) {
    std::uint16_t segment_len = 0;
    if (!in.u16(segment_len)) return;
    if ((header_bits & kM) != 0) m.segment_len = segment_len;
  }
  ConstBytes part;
  if ((header_bits & kD) != 0) {
    if (in.empty()) return;
    // The T bit of the returned header determines its size (RDMAP-N-05).
    const std::size_t len = (in.rest()[0] & kTaggedBit) != 0 ? kTaggedLen : kUntaggedLen;
    if (!in.bytes(len, part)) return;
    std::memcpy(m.ddp_header.data(), part.data(), len);
    m.ddp_header_len = len;
  }
  if ((header_bits & kR) != 0 && in.bytes(kReadRequestHeaderLen, part)) {
    std::memcpy(m.rdma_header.data(), part.data(), part.size());
    m.has_rdma_header = true;
  }
}

}  // namespace

std::span<const TerminateRow> terminate_rows() {
  return kTerminateRows;
}

std::string describe(const Terminate& t) {
  std::string_view meaning = "unregistered combination";
  for (const TerminateRow& row : kTerminateRows)
    if (row.layer == t.layer && row.etype == t.etype && (row.any_code || row.code == t.code)) meaning = row.meaning;
  return fmt::format("{}: {} ({}/{}/{:02x})", layer_name(t.layer), meaning, static_cast<unsigned>(t.layer), t.etype,
                     t.code);
}

Terminate to_terminate(mpa::Error error) {
  return {Layer::kLlp, 0, static_cast<std::uint8_t>(error)};
}

Terminate to_terminate(ddp::Error error) {
  return {Layer::kDdp, ddp::etype(error), ddp::code(error)};
}

Terminate to_read_terminate(ddp::AccessError error) {
  switch (error) {
    case ddp::AccessError::kInvalidStag: return kReadInvalidStag;      // RDMAP-7.2-06
    case ddp::AccessError::kNotAssociated: return kReadNotAssociated;  // RDMAP-7.2-07
    case ddp::AccessError::kAccessRights: return kReadAccessRights;    // SEC-6.3.5-01
    case ddp::AccessError::kToWrap: return kReadToWrap;                // RDMAP-7.2-09
    case ddp::AccessError::kBaseBounds: return kReadBaseBounds;        // RDMAP-7.2-08
  }
  return {Layer::kRdma, 1, 0xff};
}

Terminate to_invalidate_terminate(ddp::AccessError error) {
  return error == ddp::AccessError::kNotAssociated ? kInvalidateProtection : kInvalidateOperation;
}

std::optional<TerminateMessage> parse_terminate(ConstBytes body) {
  Reader in(body);
  std::uint8_t layer_etype = 0, header_bits = 0, reserved = 0;
  TerminateMessage m;
  if (!in.u8(layer_etype) || !in.u8(m.what.code) || !in.u8(header_bits) || !in.u8(reserved)) return std::nullopt;
  m.what.layer = static_cast<Layer>(layer_etype >> 4);
  m.what.etype = layer_etype & 0x0f;
  // RDMAP-4.8-13: bits that the RFC reserves have a meaning only if siw can have written all of them.
  if (reserved == 0 && (header_bits == kSiwMd || header_bits == kSiwMdr)) {
    m.siw = Terminate{static_cast<Layer>(layer_etype & 0x0f), static_cast<std::uint8_t>(layer_etype >> 4), m.what.code};
    header_bits = header_bits == kSiwMdr ? kM | kD | kR : kM | kD;
  }
  parse_headers(in, header_bits, m);
  return m;
}

std::size_t emit_terminate(const TerminateMessage& m, MutBytes out) {
  assert(out.size() >= kTerminateMaxLen);
  Writer w(out);
  const std::uint8_t header_bits =
      static_cast<std::uint8_t>((m.segment_len ? kM : 0) | (m.ddp_header_len ? kD : 0) | (m.has_rdma_header ? kR : 0));
  const std::uint8_t layer_etype =
      static_cast<std::uint8_t>(static_cast<unsigned>(m.what.layer) << 4 | (m.what.etype & 0x0f));
  // RDMAP-4.8-12: the thirteen reserved bits are zero.
  bool ok = w.u8(layer_etype) && w.u8(m.what.code) && w.u8(header_bits) && w.u8(0);
  if (m.segment_len || m.ddp_header_len) ok = ok && w.u16(m.segment_len.value_or(0));  // RDMAP-4.8-15
  ok = ok && w.bytes(m.ddp());
  if (m.has_rdma_header) ok = ok && w.bytes(m.rdma_header);
  assert(ok);
  return ok ? w.len() : 0;
}

}  // namespace weft::rdmap
