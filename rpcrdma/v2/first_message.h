#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"

// Which draft of version 2 a peer speaks: no octet of a message names it, so the first messages of a connection have to
// tell. Later messages must not be judged this way: the same error codes mean different things in the two drafts.
namespace weft::rpcrdma::v2 {

enum class Draft : std::uint8_t { kCel05, kWg07 };

// FirstMessage: the protocol of the first message that reached a server.
enum class FirstMessage : std::uint8_t { kUnknown, kVersion1, kCel05, kWg07 };

// classify_first_message judges the version and the header type; the message may still be malformed. kUnknown: another
// version, or a message of version 2 that neither draft lets a client begin with. One string of octets is a message of
// both drafts, RDMA2_REQPROP and RDMA2_CONNPROP_FINAL with a property 2 of at most 2: it counts as wg07, since no
// client of cel05 has a reason to begin with RDMA2_REQPROP.
FirstMessage classify_first_message(ConstBytes message);

// Opening: the first message of a client of version 2.
struct Opening {
  Draft draft = Draft::kWg07;
  std::uint32_t xid = 0;
  bool is_call = true;  // else properties
};

// Refusal: how a client goes on after the answer to its opening.
struct Refusal {
  enum class Meaning : std::uint8_t {
    kNone,      // no refusal of the protocol: a receiver of the opening's draft handles the answer
    kVersions,  // the server supports versions `low` to `high`
    kCel05,     // the server speaks version 2 as cel05, and not as the opening did
    kWg07,      // the server speaks version 2 as wg07, and not as the opening did
    kUnclear,   // the server cannot read the opening, in whichever draft: the client may open with a short Call
  };
  Meaning meaning = Meaning::kNone;
  std::uint32_t low = 0;  // kVersions
  std::uint32_t high = 0;
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

// refusal judges the first message that reached the client. Judge it before it is discarded as undecodable.
Refusal refusal(const Opening& opening, ConstBytes answer);

// other_draft names the profile (Profile::name) of the draft that the answer shows the server to speak, if this is not
// the draft of the opening. Empty: the answer does not show that.
std::string_view other_draft(const Opening& opening, ConstBytes answer);

}  // namespace weft::rpcrdma::v2
