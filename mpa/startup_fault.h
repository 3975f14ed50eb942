#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace weft::mpa {

// StartupFault is the reason why the startup of a connection failed (RFC 5044 section 7.1, RFC 6581).
enum class StartupFault : std::uint8_t {
  kForeign,         // octets that do not begin an MPA frame
  kBothInitiators,  // a Request where a Reply is due
  kBothResponders,  // a Reply where a Request is due
  kRevision,        // an unsupported Rev
  kRdmacBits,       // Rev 0 without M=1 and C=1
  kPrivateDataLen,  // PD_Length above 512
  kNoWords,         // S=1 without the words of RFC 6581, or an S that does not answer the other end's
  kSurplus,         // octets before it was the peer's turn
  kSilent,          // no whole frame in time
  kClosed,          // TCP closed with no octet of a frame
  kCutShort,        // TCP closed inside a frame
  kLost,            // TCP was reset, or lost in another way
  kNoRtr,           // no ready-to-receive message in time
  kRejected,        // a Reply with R=1
  kOwnPrivateData,  // our own private data does not fit
};

// StartupHint explains a fault to the user. Its sentences have neither capital letter nor full stop. A sentence is
// empty if its end cannot meet the fault.
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

// foreign_protocol names the protocol of a peer's first octets ("HTTP", "TLS" ...). It returns an empty text for an
// unknown protocol.
std::string_view foreign_protocol(ConstBytes octets);

// printable makes a peer's octets safe for a log or a terminal: at most most_octets of them, in quotation marks. \xNN
// stands for an octet that is not printable ASCII, \xNN{4} for four equal ones in a row, "..." for octets left out.
std::string printable(ConstBytes octets, std::size_t most_octets = 32);

}  // namespace weft::mpa
