#pragma once

#include <cstdint>
#include <optional>

#include "rpcrdma/negotiation.h"
#include "rpcrdma/policies.h"
#include "rpcrdma/transport_error.h"

namespace weft::rpcrdma {

// VersionSearch says how a client begins its next connection, where it does not know which version the server speaks.
// Negotiation asks over one connection; this is what the client remembers across connections. Until the server
// answers, it makes the client repeat a question once, turn back once, and then repeat once more: five connections at
// most, besides those of ReconnectPolicy. A value without I/O or clock.
class VersionSearch {
 public:
  // What follows the end of a connection.
  enum class Next : std::uint8_t {
    kPolicy,    // what follows the end of any connection
    kAskAgain,  // at once another connection, with the same question
    kVersion1,  // at once another connection, which speaks version 1 without a question: the last resort
  };

  // Whether this connection, or the next one, speaks version 1 without a question.
  bool is_last_resort() const { return is_last_resort_; }
  // The versions to ask for: those that a refusal of version 1 named. Empty: all.
  const std::optional<VersionRange>& range() const { return range_; }
  // Whether the last question had no answer, and nothing was left to do at once. There is a server, but no version.
  bool is_unanswered() const { return is_unanswered_; }

  // on_answer: the server answered in this version, and did not refuse it.
  void on_answer(Protocol spoken);
  // on_unanswered: the connection ended before `asked` was answered. end: what Negotiation::on_end said of it.
  // is_newer: other clients know that the server speaks a newer version than 1.
  Next on_unanswered(const Negotiation::Step& end, const Profile& asked, bool is_newer);
  // on_end: the connection ended after its version was known, or was never made. The next one asks.
  void on_end() { is_last_resort_ = false; }
  // turn_back: the server refuses version 1, the last resort, and speaks these versions.
  void turn_back(const VersionRange& named);

 private:
  bool is_last_resort_ = false;
  bool is_unanswered_ = false;
  std::optional<VersionRange> range_;
  bool spoke_newer_ = false;      // the server's last answer was in a newer version than 1
  bool has_asked_again_ = false;  // since the last answer, or since it turned back
  bool has_turned_back_ = false;  // since the last answer
};

}  // namespace weft::rpcrdma
