#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/wire_v2/credits.h"
#include "tests/wire_v2/grants.h"
#include "tests/wire_v2/message.h"
#include "tests/wire_v2/parts.h"
#include "tests/wire_v2/properties.h"
#include "tests/wire_v2/property_talk.h"
#include "tests/wire_v2/requests.h"
#include "tests/wire_v2/rpc.h"
#include "tests/wire_v2/tally.h"

namespace weft::wire_v2 {

enum class End : std::uint8_t {
  kClient,  // which connected
  kServer,
};

// Violation: a forbidden act of one end; `event` counts from 1.
struct Violation {
  std::string rule;
  std::string text;
  std::size_t event = 0;
};

// Conversation judges the posts of the two ends of one connection, in the order of posting. It does not hear of
// receipts: an end may act on older news until a later message proves that it has heard more. If ERR_VERS makes the
// ends go on in version 1, wire_v1's decoder judges each message alone.
class Conversation {
 public:
  // num_before: first messages in other versions that the client sent and the server refused. They count as messages
  // of either end.
  explicit Conversation(Profile profile, std::uint32_t num_before = 0);

  // A Send, with the handle that it invalidates.
  void send(End from, Octets octets, std::optional<std::uint32_t> invalidated = {});
  // An RDMA Read or Write that this end posts; the segment is the other end's.
  void rdma_read(End by, const Segment& segment);
  void rdma_write(End by, const Segment& segment);

  const std::vector<Violation>& violations() const { return violations_; }
  // The Calls of this end that no Reply and no error answered.
  std::vector<std::uint32_t> unanswered(End end) const { return side(end).requests.unanswered(); }
  const Tally& tally() const { return tally_; }

 private:
  struct Side {
    Side(Profile profile, std::uint32_t num_before) : properties(profile), message_credits(num_before) {}
    std::size_t num_sent = 0;
    std::size_t received = 0;  // the last event of the other end that this one must have heard of
    Properties properties;
    RpcCredits rpc_credits;
    MessageCredits message_credits;
    Grants grants;
    Parts parts;
    Requests requests;
    std::optional<std::pair<std::uint32_t, std::uint32_t>> versions;  // which the other end said that it knows
  };

  Side& side(End end) { return sides_[static_cast<std::size_t>(end)]; }
  const Side& side(End end) const { return sides_[static_cast<std::size_t>(end)]; }
  Side& other(End end) { return side(end == End::kClient ? End::kServer : End::kClient); }
  void report(const Rules& rules, const char* text);

  void judge_start(End from, std::size_t len);
  void judge_len(End from, const Message& message, std::size_t len);
  void judge_credits(End from, const Message& message);
  void judge_segments(End from, const Message& message);
  void judge_reverse(End from, const Message& message);
  bool goes_on_in_version_1(End from, Octets octets);
  void on_version_1(End from, Octets octets);
  void on_malformed(End from, Octets octets);
  void on_message(End from, const Message& message, std::optional<std::uint32_t> invalidated);
  void on_rpc(End from, const Message& message, std::optional<std::uint32_t> invalidated);
  void on_call(End from, const Message& message, Parts::Place place);
  void on_reply(End from, const Message& message, Parts::Place place, std::optional<std::uint32_t> invalidated);
  void on_option(End from, const Message& message);
  void on_error(End from, const Message& message);
  void on_properties(End from, const Message& message);

  Profile profile_;
  std::array<Side, 2> sides_;
  PropertyTalk property_talk_;
  bool starts_ = true;             // until the server has sent a message that is no error
  bool credits_are_moot_ = false;  // the message breaks another rule that keeps it from being sent
  std::size_t event_ = 0;
  std::vector<Violation> violations_;
  Tally tally_;
};

}  // namespace weft::wire_v2
