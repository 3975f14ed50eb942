#include "tests/wire_v2/conversation.h"

#include <algorithm>

#include "tests/wire_v1/decoder.h"
#include "tests/wire_v2/decoder.h"
#include "tests/wire_v2/reply.h"
#include "tests/wire_v2/tables.h"

namespace weft::wire_v2 {
namespace {

constexpr std::size_t kFirstMessage = 1024;  // octets: the server may know version 1 only
constexpr std::size_t kDefaultThreshold = 4096;

std::uint32_t word_at(Octets octets, std::size_t index) {
  std::uint32_t word = 0;
  for (std::size_t i = 4 * index; i < 4 * index + 4; ++i) word = word << 8 | octets[i];
  return word;
}

bool is_rpc(const Message& message) {
  return message.kind == Kind::kInline || message.kind == Kind::kPart || message.kind == Kind::kExternal;
}

bool has_chunks(const Message& message) {
  return !message.call.empty() || !message.reads.empty() || !message.writes.empty() || message.reply;
}

std::vector<Segment> segments_of(const Message& message) {
  std::vector<Segment> segments;
  for (const ReadSegment& read : message.call) segments.push_back(read.target);
  for (const ReadSegment& read : message.reads) segments.push_back(read.target);
  for (const Chunk& chunk : message.writes) segments.insert(segments.end(), chunk.begin(), chunk.end());
  if (message.reply) segments.insert(segments.end(), message.reply->begin(), message.reply->end());
  return segments;
}

}  // namespace

Conversation::Conversation(Profile profile, std::uint32_t num_before)
    : profile_(profile), sides_{Side(profile, num_before), Side(profile, num_before)} {}

void Conversation::report(const Rules& rules, const char* text) {
  violations_.push_back({rules.in(profile_), text, event_});
}

void Conversation::send(End from, Octets octets, std::optional<std::uint32_t> invalidated) {
  ++event_;
  judge_start(from, octets.size());
  ++side(from).num_sent;
  if (goes_on_in_version_1(from, octets)) return on_version_1(from, octets);
  const auto decoded = decode(octets, profile_);
  if (const auto* fault = std::get_if<Fault>(&decoded)) {
    violations_.push_back({fault->rule, fault->text, event_});
    return on_malformed(from, octets);
  }
  const auto& message = std::get<Message>(decoded);
  tally_.add(message);
  judge_credits(from, message);
  judge_len(from, message, octets.size());
  on_message(from, message, invalidated);
  if (from == End::kServer && message.kind != Kind::kError) starts_ = false;
}

void Conversation::judge_start(End from, std::size_t len) {
  const std::size_t sent = side(End::kClient).num_sent, answered = side(End::kServer).num_sent;
  credits_are_moot_ = false;
  if (from == End::kServer) {
    if (sent == 0) report({"R2-8-2", "W2-4.3-3"}, "the server speaks first");
    return;
  }
  if (sent == 0 && len > kFirstMessage) {
    report({"R2-8-3", "W2-4.3-4"}, "the first message is longer than 1024 octets");
  }
  if (starts_ && sent > answered) {
    credits_are_moot_ = true;
    report({"R2-8-1", "W2-4.3-1"}, "the client sends a second message before the server has answered");
  }
}

bool Conversation::goes_on_in_version_1(End from, Octets octets) {
  constexpr std::size_t kTwoWords = 8;
  const auto& versions = side(from).versions;
  if ((!versions && !other(from).versions) || octets.size() < kTwoWords) return false;
  const std::uint32_t version = word_at(octets, 1);
  if (versions && (version < versions->first || version > versions->second)) {
    credits_are_moot_ = true;
    report({"R2-8.2-2", "W2-7.1.1-2"}, "a message is of a version that the other end does not know");
  }
  return version == 1;
}

void Conversation::on_version_1(End from, Octets octets) {
  const auto decoded = wire_v1::decode(octets);
  if (const auto* fault = std::get_if<wire_v1::Fault>(&decoded)) {
    violations_.push_back({"R1-5-01", fault->text, event_});
    return;
  }
  const auto kind = std::get<wire_v1::Message>(decoded).kind;
  const bool is_error = kind == wire_v1::Kind::kErrVers || kind == wire_v1::Kind::kErrChunk;
  if (from == End::kServer && !is_error) starts_ = false;
}

void Conversation::judge_len(End from, const Message& message, std::size_t len) {
  const Side& own = side(from);
  const Side& peer = other(from);
  if (from == End::kClient && own.num_sent == 1) return;  // judge_start
  const std::uint32_t rbsiz = profile_ == Profile::kCel05 ? cel05::kRbsiz : wg07::kRbsiz;
  if (len > peer.properties.most(rbsiz, own.received)) {
    return report({"R2-3.3-3", "W2-4.2.2-1"}, "a message is larger than the Receive buffers of the other end");
  }
  if (profile_ == Profile::kCel05) {
    const auto limit = property_talk_.limit(from == End::kClient);
    if (limit && len > *limit) {
      report({"R2-6.2.1-7", ""}, "a message is larger than the buffers that its sender asked the other end to have");
    }
    return;
  }
  if (len > own.properties.last(wg07::kSbsiz)) report({"", "W2-5.2-1"}, "a message is larger than its sender's SBSIZ");
  if (message.kind == Kind::kProperties && len > kDefaultThreshold) {
    report({"", "W2-6.3.4-1"}, "properties do not fit the default threshold");
  }
}

void Conversation::judge_credits(End from, const Message& message) {
  Side& own = side(from);
  Side& peer = other(from);
  if (profile_ == Profile::kCel05) return;  // counts Calls: on_call
  const bool is_grant = message.kind == Kind::kGrant;
  if (own.grants.on_send(is_grant, message.credit, own.received)) {
    report({"", "W2-4.2.1.1-1"}, "a GRANT answers a GRANT");
  }
  peer.grants.on_post(is_grant, event_);
  if (!own.message_credits.send(is_grant) && !credits_are_moot_) {
    report({"", "W2-4.2.1-8"}, "a message is beyond the limit that the other end announced");
  }
  own.received = std::max(own.received, own.message_credits.proved());
  // An end that does not know version 2 counts by another version's rules (W2-4.3-2).
  const bool is_version_error = message.kind == Kind::kError && message.error.code == kErrVers;
  if (is_version_error && message.error.words.at(1) < 2) return;
  switch (peer.message_credits.announce(message.credit, event_)) {
    case MessageCredits::Announced::kGood: return;
    case MessageCredits::Announced::kGoesBack: return report({"", "W2-4.2.1-11"}, "the credit limit goes back");
    case MessageCredits::Announced::kTooLarge: return report({"", "W2-4.2.1-10"}, "the credit limit is too large");
  }
}

void Conversation::on_malformed(End from, Octets octets) {
  constexpr std::size_t kPrefix = 16;
  // It takes a Receive all the same.
  side(from).message_credits.send(false);
  other(from).grants.on_post(false, event_);
  if (octets.size() < kPrefix) return;
  Request request;
  request.header.profile = profile_;
  request.header.kind = Kind::kError;  // no Reply answers it
  request.header.xid = word_at(octets, 0);
  request.header.version = word_at(octets, 1);
  request.event = event_;
  side(from).requests.add(std::move(request));
}

void Conversation::on_message(End from, const Message& message, std::optional<std::uint32_t> invalidated) {
  const auto told = [this](const Rules& rules, const char* text) { report(rules, text); };
  if (is_rpc(message)) return on_rpc(from, message, invalidated);
  judge_invalidation(nullptr, message, invalidated, told);
  if (profile_ == Profile::kWg07) {
    side(from).parts.on_message(message, [this](const char* rule, const char* text) { report({"", rule}, text); });
  }
  switch (message.kind) {
    case Kind::kError: return on_error(from, message);
    case Kind::kOption: return on_option(from, message);
    case Kind::kProperties: return on_properties(from, message);
    default: return;
  }
}

void Conversation::on_rpc(End from, const Message& message, std::optional<std::uint32_t> invalidated) {
  Parts& parts = side(from).parts;
  Parts::Place place = Parts::Place::kAlone;
  if (profile_ == Profile::kWg07) {
    place = parts.on_message(message, [this](const char* rule, const char* text) { report({"", rule}, text); });
    const bool is_whole = place == Parts::Place::kAlone || place == Parts::Place::kEnds;
    if (is_whole && message.kind == Kind::kInline) {
      const Octets payload = place == Parts::Place::kEnds ? Octets(parts.payload()) : Octets(message.payload);
      if (const auto fault = judge_payload(message, payload)) {
        violations_.push_back({fault->rule, fault->text, event_});
      }
    }
  }
  if (message.direction == Direction::kCall) {
    judge_invalidation(nullptr, message, invalidated,
                       [this](const Rules& rules, const char* text) { report(rules, text); });
    on_call(from, message, place);
  } else {
    on_reply(from, message, place, invalidated);
  }
}

void Conversation::on_call(End from, const Message& message, Parts::Place place) {
  Side& own = side(from);
  judge_segments(from, message);
  if (from == End::kServer) judge_reverse(from, message);
  if (own.parts.is_forgotten()) return;
  if (place == Parts::Place::kJoins || place == Parts::Place::kEnds) {
    if (Request* call = own.requests.find_rpc(message.xid)) {
      call->header = message;
      call->event = event_;
      call->is_whole = place == Parts::Place::kEnds;
    }
    return;
  }
  if (own.requests.find_rpc(message.xid) != nullptr) {
    report({"R1-7.1.4-03", "W2-3.1.3-1"}, "a Call has the XID of one that was not answered");
  }
  if (profile_ == Profile::kCel05) {
    if (!own.rpc_credits.call(message.credit) && !credits_are_moot_) {
      report({"R2-7.2.2-10", ""}, "there are more unanswered Calls than were granted");
    }
    own.received = std::max(own.received, own.rpc_credits.proved());
  }
  own.requests.add({message, event_, true, message.kind != Kind::kPart, {}});
}

// The sizes that the Responder told.
void Conversation::judge_segments(End from, const Message& message) {
  if (profile_ == Profile::kCel05) return;
  const Side& own = side(from);
  const Properties& limits = other(from).properties;
  const auto segments = segments_of(message);
  const auto is_long = [&](const Segment& segment) { return segment.length > limits.most(wg07::kRssiz, own.received); };
  if (std::ranges::any_of(segments, is_long)) report({"", "W2-5.2-3"}, "a segment is longer than the peer's RSSIZ");
  if (segments.size() > limits.most(wg07::kRcsiz, own.received)) {
    report({"", "W2-5.2-4"}, "there are more segments than the peer's RCSIZ");
  }
}

// The sizes that the client told for Calls to it.
void Conversation::judge_reverse(End from, const Message& message) {
  enum Cel05 : std::uint32_t { kInline = 1 };
  enum Wg07 : std::uint32_t { kSimple = 1, kContinued = 2 };
  const bool is_cel05 = profile_ == Profile::kCel05;
  const std::uint32_t support = other(from).properties.most(is_cel05 ? cel05::kBrs : wg07::kBrs, side(from).received);
  if (support == 0) return report({"R2-6.2.2-2", "W2-4.6.3-1"}, "the client takes no reverse-direction Calls");
  const bool has_chunk = has_chunks(message);
  if (has_chunk && support <= (is_cel05 ? std::uint32_t{kInline} : std::uint32_t{kContinued})) {
    return report({"R2-6.2.2-3", "W2-5.2.5-2"}, "the client takes no reverse-direction Calls with chunks");
  }
  if (message.kind == Kind::kPart && support == kSimple) {
    report({"", "W2-5.2.5-2"}, "the client takes no reverse-direction Calls in parts");
  }
}

void Conversation::on_reply(End from, const Message& message, Parts::Place place,
                            std::optional<std::uint32_t> invalidated) {
  const auto told = [this](const Rules& rules, const char* text) { report(rules, text); };
  Side& requester = other(from);
  Request* call = requester.requests.find_rpc(message.xid);
  const bool is_first = place == Parts::Place::kAlone || place == Parts::Place::kBegins;
  const bool is_answer = call != nullptr && call->is_whole;
  if (!is_answer && is_first) report({"R2-7.2.2-3", "W2-3.1.3-1"}, "a Reply answers no Call");
  judge_invalidation(call, message, invalidated, told);
  if (!is_answer) return;
  side(from).received = std::max(side(from).received, call->event);
  if (message.kind == Kind::kPart) return;
  judge_reply(*call, message, told);
  requester.requests.close(call);
  if (profile_ == Profile::kCel05) requester.rpc_credits.answer(message.credit, event_);
}

void Conversation::on_option(End from, const Message& message) {
  if (message.direction == Direction::kCall) {
    return side(from).requests.add({message, event_, false, true, {}});
  }
  Request* request = other(from).requests.find_option(message.xid);
  if (request == nullptr) return report({"R2-7.2.2-3", ""}, "an RDMA2_OPTIONAL Reply answers no Call");
  other(from).requests.close(request);
}

void Conversation::on_error(End from, const Message& message) {
  Side& requester = other(from);
  Request* request = requester.requests.find_any(message.xid);
  if (request == nullptr) return report({"R2-7.2.4-2", "W2-7-2"}, "an error has the XID of no request");
  if (request->header.version != message.version) {
    report({"R2-7.2.4-2", "W2-7-2"}, "an error has another version than its request");
  }
  side(from).received = std::max(side(from).received, request->event);
  if (message.error.code == kErrVers) requester.versions = {message.error.words.at(0), message.error.words.at(1)};
  requester.parts.forget(message.xid);
  property_talk_.on_error(from == End::kServer, message.xid);
  if (profile_ == Profile::kCel05 && request->is_rpc) {
    // The sender of RDMA2_ERR_VERS may count by another version's rules (R2-8.2-6).
    if (message.error.code == kErrVers) {
      requester.rpc_credits.keep_answer(event_);
    } else {
      requester.rpc_credits.answer(message.credit, event_);
    }
  }
  requester.requests.close(request);
}

void Conversation::on_properties(End from, const Message& message) {
  Side& own = side(from);
  const bool is_cel05 = profile_ == Profile::kCel05;
  if (is_cel05) {
    property_talk_.on_message(from == End::kClient, message, own.properties, event_,
                              [this](const char* rule, const char* text) {
                                report({rule, ""}, text);
                              });
  } else {
    for (const Property& property : message.properties) own.properties.set(property, event_);
  }
  // A RESPROP is an answer itself.
  if (!is_cel05 || message.type != cel05::kResprop) own.requests.add({message, event_, false, true, {}});
}

void Conversation::rdma_read(End by, const Segment& segment) {
  ++event_;
  if (!other(by).requests.offers_read(segment)) {
    report({"R1-4.1-01", "W2-4-1"}, "an RDMA Read is outside what an unanswered Call offers");
  }
}

void Conversation::rdma_write(End by, const Segment& segment) {
  ++event_;
  if (!other(by).requests.offers_write(segment)) {
    report({"R1-4.1-01", "W2-4-1"}, "an RDMA Write is outside what an unanswered Call offers");
  }
}

}  // namespace weft::wire_v2
