#pragma once

// The script of a conversation describes the octets on the wire, in the fields of the RFCs. Nothing here is shared with
// the tested code, and nothing is read back from the octets that it sent.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace weft::e2e {

using Octets = std::vector<std::uint8_t>;
using Json = nlohmann::ordered_json;

// Opcodes as RFC 5040 Figure 4 and RFC 7306 Figure 1 number them.
inline constexpr std::uint8_t kWrite = 0, kReadRequest = 1, kReadResponse = 2, kSend = 3, kSendInvalidate = 4,
                              kSendSe = 5, kSendSeInvalidate = 6, kTerminate = 7, kImmediate = 8, kImmediateSe = 9,
                              kAtomicRequest = 10, kAtomicResponse = 11;

// pattern is len octets that differ from message to message and from offset to offset.
Octets pattern(std::uint8_t seed, std::size_t len);
std::string hex(const Octets& octets);

// Startup is an MPA Request or Reply Frame (RFC 5044 section 7.1.1); the S bit of RFC 6581 is the top bit of res.
struct Startup {
  bool reply = false;
  bool m = false;
  bool c = true;
  bool r = false;
  std::uint8_t res = 0;
  std::uint8_t rev = 1;
  Octets private_data = {};

  Octets octets() const;
  Json json() const;
};

// Ulpdu is one DDP segment: header fields, the octets behind the header, and, where RDMAP has a header there, its
// fields.
struct Ulpdu {
  bool t = false;
  bool l = true;
  std::uint8_t dv = 1;
  std::uint8_t rv = 1;
  std::uint8_t opcode = 0;
  std::uint32_t stag = 0;           // t
  std::uint64_t to = 0;             // t
  std::uint32_t rsvd_ulp_8_39 = 0;  // the others: not t
  std::uint32_t qn = 0;
  std::uint32_t msn = 1;
  std::uint32_t mo = 0;
  Octets body = {};
  std::string rdmap_kind = {};  // "payload" or the name of the header that body is
  Json rdmap = {};

  Octets ddp_header() const;
  Octets octets() const;
  Json json() const;
};

Ulpdu tagged(std::uint8_t opcode, std::uint32_t stag, std::uint64_t to, Octets payload, bool last = true);
// Immediate Data Messages are Sends of 8 octets here. inval_stag: also of the kinds that have none, where it is the
// reserved zero.
Ulpdu send(std::uint8_t opcode, std::uint32_t inval_stag, std::uint32_t msn, std::uint32_t mo, Octets payload,
           bool last = true);

// ReadRequest is the header of RFC 5040 section 4.4.
struct ReadRequest {
  std::uint32_t sink_stag = 0;
  std::uint64_t sink_to = 0;
  std::uint32_t size = 0;
  std::uint32_t src_stag = 0;
  std::uint64_t src_to = 0;

  Octets octets() const;
};
Ulpdu read_request(std::uint32_t msn, const ReadRequest& header);

// AtomicRequest is the header of RFC 7306 section 5.2.1. FetchAdd is operation 0, CmpSwap 2.
struct AtomicRequest {
  std::uint8_t operation = 0;
  std::uint32_t request_id = 0;
  std::uint32_t stag = 0;
  std::uint64_t to = 0;
  std::uint64_t add_swap = 0;
  std::uint64_t add_swap_mask = 0;
  std::uint64_t compare = 0;
  std::uint64_t compare_mask = 0;
};
Ulpdu atomic_request(std::uint32_t msn, const AtomicRequest& header);
Ulpdu atomic_response(std::uint32_t msn, std::uint32_t request_id, std::uint64_t original);

// Triple is layer, error type and error code of a Terminate (RFC 5040 section 4.8).
struct Triple {
  std::uint8_t layer = 0;
  std::uint8_t etype = 0;
  std::uint8_t code = 0;
};
// The three forms of a Terminate: bare; M and D with the length and DDP header of the blamed segment; R besides, with
// the Read Request header that it carried.
Ulpdu terminate(Triple what);
Ulpdu terminate(Triple what, const Ulpdu& blamed);
Ulpdu terminate_read(Triple what, const Ulpdu& blamed);

}  // namespace weft::e2e
