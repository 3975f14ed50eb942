#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "rpcrdma/profile.h"
#include "rpcrdma/transport_error.h"

namespace weft::rpcrdma {

// Negotiation finds out which version of RPC-over-RDMA a server speaks. The client asks by a probe: a NULL Call in one
// of its versions, before any other message. An answer in this version decides. A refusal leads to a probe in another
// version, over the same connection. Each version is asked once. A server that stays silent or hangs up is taken to
// speak version 1 alone, and needs another connection. A value without I/O or clock.
//
// Every responder answers a probe: the program of the NULL Call is reserved (RFC 5531 section 13.4.1), so an engine
// refuses it without the help of a service, and a server of another version refuses its header. It is longer than the
// shortest header of version 1, and shorter than its threshold (R2-8-3).
class Negotiation {
 public:
  struct Config {
    Profiles profiles;               // best first
    const Profile* known = nullptr;  // one of these, which the server spoke before: asked first; null: none
    std::uint32_t credits = 32;      // requested
    std::uint32_t first_xid = 0;     // best random
    // The server named these versions when it refused version 1 over an earlier connection; one of the profiles has one
    // of them. Others are not asked for.
    std::optional<VersionRange> range = {};
  };

  struct Step {
    enum class Kind : std::uint8_t {
      kIgnore,      // the message means nothing
      kKeep,        // the message is no answer: it is for the engines, once the version is known
      kProbe,       // send emit_probe() over this connection
      kDecided,     // the server speaks `profile`
      kLastResort,  // connect again, and speak version 1 without a probe
      kUnanswered,  // version 1 is not left, but nothing shows that the server speaks no other: `why`
      kFailed,      // there is no version for this server: `why`
    };
    Kind kind = Kind::kIgnore;
    const Profile* profile = nullptr;  // kDecided
    std::uint32_t credit = 0;          // kDecided: the credit word of the answer
    std::string why = {};              // kUnanswered, kFailed: one line
  };

  explicit Negotiation(Config config);

  // The profile of the probe that is to be sent, or that waits for its answer.
  const Profile& asked() const { return *asked_; }
  // emit_probe writes the probe and returns its length, at most Profile::default_threshold octets of any version.
  std::size_t emit_probe(MutBytes out) const;
  // on_message: a message came while a probe waits for its answer.
  Step on_message(ConstBytes message);
  // on_end: the connection ended, or the answer took too long. why: one line, which Step::why begins with.
  Step on_end(const std::string& why);

 private:
  Step judge(ConstBytes message);
  Step on_refused();
  std::string versions_of_both() const;
  Profiles missing_profiles() const;
  const Profile* first_question() const;
  bool may_ask(const Profile& profile) const;
  bool is_open(const Profile& profile) const;

  Config config_;
  Profiles refused_;
  std::optional<VersionRange> range_;             // of the last refusal that had one
  std::optional<std::uint32_t> refused_version_;  // by the same refusal
  const Profile* asked_;
  std::uint32_t xid_;
  std::string_view draft_;            // a refusal came from an engine of this profile; empty: none did
  const Profile* excused_ = nullptr;  // its probe met an error that says nothing of versions, and is asked again
  bool failed_ = false;
  ReceivedReply reply_;
};

}  // namespace weft::rpcrdma
