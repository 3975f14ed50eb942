#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "mpa/wire/bytes.h"

namespace weft::mpa {

// StartupFault is a way in which the startup of a connection can fail (RFC 5044 section 7.1, RFC 6581).
enum class StartupFault : std::uint8_t {
  kForeign,         // octets that begin no MPA frame
  kBothInitiators,  // a Request where a Reply is due
  kBothResponders,  // a Reply where a Request is due
  kRevision,        // a Rev that cannot be worked with
  kRdmacBits,       // Rev 0 without M=1 and C=1
  kPrivateDataLen,  // PD_Length above 512
  kNoWords,         // S=1 without the words of RFC 6581, or S that does not answer the other's
  kSurplus,         // octets before it was the peer's turn
  kSilent,          // no whole frame in time
  kClosed,          // TCP closed with no octet of a frame
  kCutShort,        // TCP closed inside a frame
  kLost,            // TCP reset, or lost in another way
  kNoRtr,           // no ready-to-receive message in time
  kRejected,        // a Reply with R=1
  kOwnPrivateData,  // our own private data does not fit
};

// StartupHint is what somebody who meets a fault should know. The sentences have neither capital nor full stop; they
// are empty where that end cannot meet it.
struct StartupHint {
  StartupFault fault = StartupFault::kForeign;
  std::string_view requirement;  // id of the row of tests/conformance/tables
  std::string_view initiator_cause;
  std::string_view initiator_advice;
  std::string_view responder_cause;
  std::string_view responder_advice;
};
std::span<const StartupHint> startup_hints();
const StartupHint& startup_hint(StartupFault fault);

// foreign_protocol names the protocol that a peer's first octets belong to ("HTTP", "TLS" ...); empty where it is none
// that people run into.
std::string_view foreign_protocol(ConstBytes octets);

// printable writes a peer's octets so that a log or a terminal can take them: at most most_octets of them, in quotation
// marks, with \xNN for what is no printable ASCII, \xNN{4} where four in a row are the same, and "..." where there are
// more.
std::string printable(ConstBytes octets, std::size_t most_octets = 32);

}  // namespace weft::mpa
