#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "ddp/memory_table.h"
#include "mpa/wire/cursor.h"

namespace weft::rdmap {

// Opcode of an RDMA Message (RFC 5040 section 4.1, Figure 4; 8 to 11: RFC 7306 section 4.1). 12 to 15 are reserved.
enum class Opcode : std::uint8_t {
  kWrite = 0,
  kReadRequest = 1,
  kReadResponse = 2,
  kSend = 3,
  kSendInvalidate = 4,
  kSendSe = 5,
  kSendSeInvalidate = 6,
  kTerminate = 7,
  kImmediate = 8,
  kImmediateSe = 9,
  kAtomicRequest = 10,
  kAtomicResponse = 11,
};

// The number of opcodes that RFC 5040 defines, and the number with RFC 7306. Each is also the first invalid opcode.
inline constexpr std::uint8_t kNumOpcodes5040 = 8;
inline constexpr std::uint8_t kNumOpcodes7306 = 12;

inline constexpr std::uint8_t kRdmapVersion = 1;  // RV 01b, IETF RDMAP
inline constexpr std::size_t kReadRequestHeaderLen = 28;

inline constexpr std::size_t kImmediateLen = 8;

// Queue numbers of the untagged model (RFC 5040 section 3.1, RFC 7306 section 4). Queue 1 takes Atomic Requests too.
inline constexpr std::uint32_t kSendQn = 0;
inline constexpr std::uint32_t kReadRequestQn = 1;
inline constexpr std::uint32_t kTerminateQn = 2;
inline constexpr std::uint32_t kAtomicResponseQn = 3;

constexpr bool is_tagged(Opcode opcode) {
  return opcode == Opcode::kWrite || opcode == Opcode::kReadResponse;
}
constexpr bool is_send(Opcode opcode) {
  return opcode >= Opcode::kSend && opcode <= Opcode::kSendSeInvalidate;
}
constexpr bool is_immediate(Opcode opcode) {
  return opcode == Opcode::kImmediate || opcode == Opcode::kImmediateSe;
}
constexpr bool is_solicited(Opcode opcode) {
  return opcode == Opcode::kSendSe || opcode == Opcode::kSendSeInvalidate || opcode == Opcode::kImmediateSe;
}
constexpr bool invalidates(Opcode opcode) {
  return opcode == Opcode::kSendInvalidate || opcode == Opcode::kSendSeInvalidate;
}
// The queue of an untagged opcode.
constexpr std::uint32_t queue_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::kReadRequest:
    case Opcode::kAtomicRequest: return kReadRequestQn;
    case Opcode::kTerminate: return kTerminateQn;
    case Opcode::kAtomicResponse: return kAtomicResponseQn;
    default: return kSendQn;
  }
}

// Control is the RDMAP control octet, the first of RsvdULP (RFC 5040 section 4.1). These are plain wire fields: nothing
// here is checked. Rsv is not kept, since no receiver may look at it.
struct Control {
  std::uint8_t rv = kRdmapVersion;  // 2 bits
  std::uint8_t opcode = 0;          // 4 bits
  friend bool operator==(const Control&, const Control&) = default;
};

constexpr Control parse_control(std::uint8_t octet) {
  return {static_cast<std::uint8_t>(octet >> 6), static_cast<std::uint8_t>(octet & 0x0f)};
}
constexpr std::uint8_t emit_control(Control control) {
  return static_cast<std::uint8_t>((control.rv & 0x03) << 6 | (control.opcode & 0x0f));
}
constexpr std::uint8_t control_octet(Opcode opcode, std::uint8_t version = kRdmapVersion) {
  return emit_control({version, static_cast<std::uint8_t>(opcode)});
}

// ReadRequestHeader follows the DDP header of a Read Request (RFC 5040 section 4.4, Figure 6).
struct ReadRequestHeader {
  ddp::Stag sink_stag;
  std::uint64_t sink_to = 0;
  std::uint32_t size = 0;  // RDMARDSZ, octets
  ddp::Stag src_stag;
  std::uint64_t src_to = 0;
  friend bool operator==(const ReadRequestHeader&, const ReadRequestHeader&) = default;
};

// parse_read_request_header takes exactly 28 octets and returns nothing for any other length.
inline std::optional<ReadRequestHeader> parse_read_request_header(ConstBytes octets) {
  ReadRequestHeader h;
  Reader in(octets);
  if (in.u32(h.sink_stag.value) && in.u64(h.sink_to) && in.u32(h.size) && in.u32(h.src_stag.value) &&
      in.u64(h.src_to) && in.empty())
    return h;
  return std::nullopt;
}

inline std::array<std::uint8_t, kReadRequestHeaderLen> emit_read_request_header(const ReadRequestHeader& h) {
  std::array<std::uint8_t, kReadRequestHeaderLen> octets;
  Writer out(octets);
  [[maybe_unused]] const bool fits = out.u32(h.sink_stag.value) && out.u64(h.sink_to) && out.u32(h.size) &&
                                     out.u32(h.src_stag.value) && out.u64(h.src_to);
  return octets;
}

}  // namespace weft::rdmap
