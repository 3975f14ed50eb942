// Two ends that keep every rule by what they have received, over a network that delivers when it likes: a conversation
// hears the posts alone, and must not find anything in them. WEFT_SEED chooses other runs than the default ones.

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <random>

#include "tests/wire_v2/tables.h"
#include "tests/wire_v2/talk.h"

namespace weft::wire_v2 {
namespace {

std::uint64_t first_seed() {
  const char* given = std::getenv("WEFT_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20260101;
}

// The knowledge of one end.
struct Knowledge {
  std::deque<Message> inbox;
  std::uint32_t num_sent = 0, num_received = 0;
  std::uint32_t num_unheard = 0;  // messages other than GRANTs received since this end's last one
  std::uint32_t limit = 1;        // wg07: of messages
  std::uint32_t granted = 1;      // cel05: of Calls
  std::uint32_t num_outstanding = 0;
  std::uint32_t next_xid = 1;
  std::uint32_t max_segment = 1048576, max_len = 4096;  // the other end's
  bool takes_calls = false;                             // the other end does
  bool told = false;
  std::uint32_t own_max_len = 4096;
  std::deque<std::uint32_t> to_answer;
  std::optional<std::pair<std::uint32_t, Bytes>> rest;  // of a Call or Reply in parts, its first part sent
  bool rest_is_call = false;
};

class Network {
 public:
  Network(Profile profile, std::uint64_t seed) : profile_(profile), random_(seed), talk_(profile) {
    // cel05: reverse Calls are taken unless told otherwise.
    for (Knowledge& end : ends_) end.takes_calls = profile == Profile::kCel05 || &end == &ends_[0];
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      const End end = below(2) == 0 ? kClient : kServer;
      if (below(3) == 0) {
        deliver(end);
      } else {
        act(end);
      }
    }
  }
  const std::vector<Violation>& violations() { return talk_.conversation().violations(); }
  std::uint32_t num_sent(End end) { return at(end).num_sent; }

 private:
  Knowledge& at(End end) { return ends_[static_cast<std::size_t>(end)]; }
  bool is_wg07() const { return profile_ == Profile::kWg07; }
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }

  void deliver(End end) {
    Knowledge& own = at(end);
    if (own.inbox.empty()) return;
    const Message message = own.inbox.front();
    own.inbox.pop_front();
    ++own.num_received;
    own.limit = message.credit;
    if (message.kind != Kind::kGrant) ++own.num_unheard;
    if (message.kind == Kind::kProperties) return learn(own, message);
    const bool ends = message.kind != Kind::kPart && message.kind != Kind::kGrant;
    if (!ends) return;
    if (message.direction == Direction::kCall) return own.to_answer.push_back(message.xid);
    --own.num_outstanding;
    own.granted = message.credit;
  }

  void learn(Knowledge& own, const Message& message) {
    for (const Property& property : message.properties) {
      std::uint32_t value = 0;
      for (const std::uint8_t octet : property.value) value = value << 8 | octet;
      if (property.id == (is_wg07() ? wg07::kRbsiz : cel05::kRbsiz)) own.max_len = value;
      if (is_wg07() && property.id == wg07::kRssiz) own.max_segment = value;
      if (property.id == (is_wg07() ? wg07::kBrs : cel05::kBrs) && &own == &ends_[1]) own.takes_calls = value > 0;
    }
  }

  void send(End end, Message message) {
    Knowledge& own = at(end);
    if (is_wg07()) {
      message.credit = own.num_received + 6;
    } else {
      message.credit = message.direction == Direction::kReply ? 1 + below(5) : kRequested;
    }
    ++own.num_sent;
    own.num_unheard = 0;
    talk_.say(end, message);
    at(end == kClient ? kServer : kClient).inbox.push_back(message);
  }

  bool may_send(End end) {
    Knowledge& own = at(end);
    if (end == kServer && own.num_received == 0) return false;
    if (end == kClient && own.num_sent > 0 && own.num_received == 0) return false;
    return !is_wg07() || own.num_sent < own.limit;
  }

  void act(End end) {
    Knowledge& own = at(end);
    const bool may_grant = is_wg07() && own.num_received > 0 && own.num_sent <= own.limit;
    if (may_grant && own.num_unheard > below(4)) return send(end, talk_.message(end, wg07::kGrant));
    if (!may_send(end)) return;
    if (own.rest) return send_rest(end);
    switch (below(4)) {
      case 0: return tell(end);
      case 1: return answer(end);
      default: return call(end);
    }
  }

  void send_rest(End end) {
    Knowledge& own = at(end);
    const auto [xid, octets] = *own.rest;
    Message last = own.rest_is_call ? talk_.call(end, xid) : talk_.reply(end, xid);
    last.payload = octets;
    own.rest.reset();
    send(end, last);
  }

  void tell(End end) {
    Knowledge& own = at(end);
    if (own.told || own.num_received == 0) return;
    own.told = true;
    if (is_wg07()) {
      const std::vector<Property> properties = {{wg07::kRssiz, word(1 + below(8000))},
                                                {wg07::kRbsiz, word(4096 + below(4096))},
                                                {wg07::kSbsiz, word(8192)},
                                                {wg07::kBrs, word(3)}};
      own.own_max_len = 8192;
      return send(end, talk_.properties(end, wg07::kConnpropFinal, properties));
    }
    const std::vector<Property> properties = {{cel05::kRbsiz, word(4096 + below(4096))},
                                              {cel05::kBrs, word(below(3) > 0 ? 2 : 0)}};
    own.own_max_len = 8192;
    send(end, talk_.properties(end, cel05::kConnprop, properties));
  }

  void answer(End end) {
    Knowledge& own = at(end);
    if (own.to_answer.empty()) return;
    const std::uint32_t xid = own.to_answer.front();
    own.to_answer.pop_front();
    // One message at a time until the server has sent one that is no error.
    if (own.num_sent > 0 && below(8) == 0) return send(end, talk_.error(end, xid, kErrBadXdr));
    if (is_wg07() && below(3) == 0) {
      const Bytes whole = rpc_reply(xid, 20);
      own.rest.emplace(xid, slice(whole, 16, whole.size()));
      own.rest_is_call = false;
      return send(end, talk_.reply_part(end, xid, slice(whole, 0, 16), 28));
    }
    send(end, talk_.reply(end, xid, below(2) == 0 ? 0 : own_room(end)));
  }

  // The octets of arguments or results that fit, in a message that is not the first.
  std::size_t own_room(End end) {
    constexpr std::size_t kHeaders = 84;
    Knowledge& own = at(end);
    return (std::min(own.max_len, own.own_max_len) - kHeaders) / 4 * 4;
  }

  void call(End end) {
    Knowledge& own = at(end);
    if (!own.takes_calls || own.num_outstanding >= kRequested) return;
    if (!is_wg07() && own.num_outstanding >= own.granted) return;
    const std::uint32_t xid = own.next_xid++;
    ++own.num_outstanding;
    if (is_wg07() && below(4) == 0) {
      const Bytes whole = rpc_call(xid, 20);
      own.rest.emplace(xid, slice(whole, 16, whole.size()));
      own.rest_is_call = true;
      return send(end, talk_.part(end, xid, slice(whole, 0, 16), 44));
    }
    constexpr std::uint32_t kLeastBody = 40;
    if (is_wg07() && below(4) == 0 && own.max_segment >= kLeastBody) {
      return send(end, talk_.external_call(end, xid, {xid, own.max_segment / 4 * 4, 0}));
    }
    send(end, talk_.call(end, xid, own.num_sent == 0 || below(2) == 0 ? 0 : own_room(end)));
  }

  static constexpr std::uint32_t kRequested = 4;  // unanswered Calls

  Profile profile_;
  std::mt19937_64 random_;
  Talk talk_;
  std::array<Knowledge, 2> ends_;
};

struct WireV2Lag : testing::TestWithParam<Profile> {};

TEST_P(WireV2Lag, EndsThatKeepTheRulesBreakNone) {
  constexpr int kRuns = 200, kSteps = 400;
  std::uint32_t num_sent = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + kRuns; ++seed) {
    Network network(GetParam(), seed);
    network.run(kSteps);
    for (const Violation& violation : network.violations()) {
      ADD_FAILURE() << "WEFT_SEED=" << seed << ": " << violation.rule << ", event " << violation.event << ": "
                    << violation.text;
    }
    num_sent += std::min(network.num_sent(kClient), network.num_sent(kServer));
  }
  EXPECT_GT(num_sent, 20u * kRuns);
}

INSTANTIATE_TEST_SUITE_P(Drafts, WireV2Lag, testing::Values(Profile::kCel05, Profile::kWg07),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace weft::wire_v2
