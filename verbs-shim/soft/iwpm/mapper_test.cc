#include "verbs-shim/soft/iwpm/mapper.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace weft::verbs::soft::iwpm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Octets = std::vector<std::uint8_t>;

constexpr std::uint64_t kHandle = 0x1122334455667788;
constexpr Endpoint kServer4{{192, 0, 2, 7}, 20049};
constexpr Endpoint kElsewhere4{{192, 0, 2, 8}, 33333};
constexpr Endpoint kClient4{{198, 51, 100, 9}, 40001};
constexpr Endpoint kLoopback4{{127, 0, 0, 1}, 20049};
constexpr Endpoint kServer6{{0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7}, 20049};
constexpr Endpoint kClient6{{0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}, 40001};
constexpr Asker::Settings kSettings{.interval = seconds(1), .tries = 3};
const TimePoint kStart{seconds(1000)};

Octets emitted(const Message& message) {
  Octets out(kMaxMessageLen, 0xa5);
  out.resize(emit_message(message, out));
  return out;
}

Octets sent_by(Asker& asker) {
  const ConstBytes octets = asker.poll_tx();
  return {octets.begin(), octets.end()};
}

Message parsed(const Octets& octets) {
  const auto result = parse_message(octets);
  EXPECT_TRUE(std::holds_alternative<Message>(result));
  return std::holds_alternative<Message>(result) ? std::get<Message>(result) : Message{};
}

Asker::Question question4(const Endpoint& accepting = kServer4) {
  return {IpVersion::k4, kHandle, accepting, kClient4};
}

Message answer4(MessageType type, const Endpoint& to) {
  return {type, IpVersion::k4, 0, kHandle, to, kClient4, {}};
}

TEST(IwpmAsker, AsksAtOnceAndAcknowledgesTheAccept) {
  for (const IpVersion ip : {IpVersion::k4, IpVersion::k6}) {
    const Endpoint server = ip == IpVersion::k4 ? kServer4 : kServer6;
    const Endpoint client = ip == IpVersion::k4 ? kClient4 : kClient6;
    Asker asker({ip, kHandle, server, client}, kSettings, kStart);
    const Message request{MessageType::kRequest, ip, 0, kHandle, server, client, client};
    EXPECT_EQ(parsed(sent_by(asker)), request);
    EXPECT_EQ(sent_by(asker), Octets{});
    Endpoint mapped = server;
    mapped.port = 33333;
    Message accept{MessageType::kAccept, ip, 0, kHandle, mapped, client, {}};
    EXPECT_TRUE(asker.on_rx(emitted(accept)));
    EXPECT_EQ(asker.answer(), (Answer{Answer::Kind::kMapped, mapped}));
    EXPECT_EQ(asker.next_timeout(), std::nullopt);
    accept.type = MessageType::kAck;
    EXPECT_EQ(parsed(sent_by(asker)), accept);
    EXPECT_EQ(sent_by(asker), Octets{});
    accept.type = MessageType::kReject;
    EXPECT_FALSE(asker.on_rx(emitted(accept)));
  }
}

TEST(IwpmAsker, AsksAgainEverySecondAndGivesUp) {
  Asker asker(question4(), kSettings, kStart);
  const Octets request = sent_by(asker);
  for (int second = 1; second < 3; ++second) {
    const TimePoint at = kStart + seconds(second);
    ASSERT_EQ(asker.next_timeout(), at);
    asker.on_timeout(at - milliseconds(1));
    EXPECT_EQ(sent_by(asker), Octets{});
    asker.on_timeout(at);
    EXPECT_EQ(sent_by(asker), request);
    EXPECT_FALSE(asker.answer());
  }
  asker.on_timeout(kStart + seconds(3));
  EXPECT_EQ(asker.answer(), (Answer{Answer::Kind::kSilent, kServer4}));
  EXPECT_EQ(asker.next_timeout(), std::nullopt);
  EXPECT_EQ(sent_by(asker), Octets{});
}

TEST(IwpmAsker, AnAnswerToALaterRequestCounts) {
  Asker asker(question4(), kSettings, kStart);
  asker.on_timeout(kStart + seconds(1));
  EXPECT_TRUE(asker.on_rx(emitted(answer4(MessageType::kAccept, kElsewhere4))));
  // The Ack, and no Request behind it.
  EXPECT_EQ(parsed(sent_by(asker)).type, MessageType::kAck);
  asker.on_timeout(kStart + seconds(2));
  EXPECT_EQ(sent_by(asker), Octets{});
  EXPECT_EQ(asker.answer(), (Answer{Answer::Kind::kMapped, kElsewhere4}));
}

TEST(IwpmAsker, ARejectAndARefusalLeadToTheUnmappedPort) {
  Asker rejected(question4(), kSettings, kStart);
  EXPECT_TRUE(rejected.on_rx(emitted(answer4(MessageType::kReject, kServer4))));
  EXPECT_EQ(rejected.answer(), (Answer{Answer::Kind::kRejected, kServer4}));
  EXPECT_EQ(sent_by(rejected), Octets{});
  Asker refused(question4(), kSettings, kStart);
  refused.on_refused();
  EXPECT_EQ(refused.answer(), (Answer{Answer::Kind::kNoMapper, kServer4}));
  EXPECT_EQ(refused.next_timeout(), std::nullopt);
  refused.on_timeout(kStart + seconds(10));
  EXPECT_EQ(refused.answer()->kind, Answer::Kind::kNoMapper);
}

TEST(IwpmAsker, WhatAnswersAnotherQuestionIsIgnored) {
  Asker asker(question4(), kSettings, kStart);
  sent_by(asker);
  const Message accept = answer4(MessageType::kAccept, kElsewhere4);
  std::vector<Octets> others;
  for (const MessageType type : {MessageType::kRequest, MessageType::kAck}) {
    others.push_back(emitted(answer4(type, kElsewhere4)));
  }
  Message other = accept;
  other.assochandle ^= 1;
  others.push_back(emitted(other));
  other = accept;
  other.ip = IpVersion::k6;
  others.push_back(emitted(other));
  for (std::size_t len = 0; len < kMessageLen; ++len) {
    others.push_back(emitted(accept));
    others.back().resize(len);
  }
  others.push_back(emitted(accept));
  others.back().push_back(0);
  others.push_back(emitted(accept));
  others.back()[0] |= 0x40;
  for (const Octets& octets : others) {
    EXPECT_FALSE(asker.on_rx(octets));
    EXPECT_FALSE(asker.answer());
    EXPECT_EQ(sent_by(asker), Octets{});
  }
  EXPECT_TRUE(asker.on_rx(emitted(accept)));
}

struct Lead {
  IpVersion ip;
  Endpoint asked;
  Endpoint told;
  std::optional<Endpoint> to;
};

TEST(IwpmAsker, FollowsAnAcceptOnlyWhereItMayLead) {
  constexpr Address kMappedLoopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  constexpr Address kLoopback6{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  constexpr Address kMulticast6{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  const std::vector<Lead> leads = {
      {IpVersion::k4, kServer4, {kServer4.address, 1}, Endpoint{kServer4.address, 1}},
      {IpVersion::k4, kServer4, {{}, 33333}, Endpoint{kServer4.address, 33333}},
      {IpVersion::k4, kServer4, {kServer4.address, 0}, std::nullopt},
      {IpVersion::k4, kServer4, {{127, 0, 0, 1}, 22}, std::nullopt},
      {IpVersion::k4, kServer4, {{224, 0, 0, 1}, 22}, std::nullopt},
      {IpVersion::k4, kServer4, {{255, 255, 255, 255}, 22}, std::nullopt},
      {IpVersion::k4, kLoopback4, {{127, 0, 0, 9}, 22}, Endpoint{{127, 0, 0, 9}, 22}},
      {IpVersion::k6, kServer6, {{}, 33333}, Endpoint{kServer6.address, 33333}},
      {IpVersion::k6, kServer6, {kClient6.address, 33333}, Endpoint{kClient6.address, 33333}},
      {IpVersion::k6, kServer6, {kLoopback6, 22}, std::nullopt},
      {IpVersion::k6, kServer6, {kMappedLoopback, 22}, std::nullopt},
      {IpVersion::k6, kServer6, {kMulticast6, 22}, std::nullopt},
      {IpVersion::k6, {kLoopback6, 7}, {kLoopback6, 22}, Endpoint{kLoopback6, 22}},
  };
  for (std::size_t i = 0; i < leads.size(); ++i) {
    SCOPED_TRACE(i);
    const Lead& lead = leads[i];
    Asker asker({lead.ip, kHandle, lead.asked, kClient4}, kSettings, kStart);
    EXPECT_EQ(asker.on_rx(emitted({MessageType::kAccept, lead.ip, 0, kHandle, lead.told, kClient4, {}})),
              lead.to.has_value());
    ASSERT_EQ(asker.answer().has_value(), lead.to.has_value());
    if (!lead.to) continue;
    EXPECT_EQ(asker.answer(), (Answer{Answer::Kind::kMapped, *lead.to}));
  }
}

// ---- the accepting peer

std::optional<Endpoint> real_port(IpVersion, const Endpoint& asked) {
  return asked.port == 20049 ? std::optional(asked) : std::nullopt;
}

Octets answered(Answerer& answerer, const Octets& octets, TimePoint now = kStart) {
  Octets out(kMessageLen, 0xa5);
  out.resize(answerer.on_rx(octets, real_port, now, out));
  return out;
}

Message request4(std::uint16_t port) {
  return {MessageType::kRequest, IpVersion::k4, 2, kHandle, {kServer4.address, port}, kClient4, kElsewhere4};
}

TEST(IwpmAnswerer, AcceptsWhereSomebodyListensAndRejectsElsewhere) {
  Answerer answerer;
  EXPECT_EQ(parsed(answered(answerer, emitted(request4(20049)))),
            (Message{MessageType::kAccept, IpVersion::k4, 2, kHandle, kServer4, kClient4, {}}));
  EXPECT_EQ(parsed(answered(answerer, emitted(request4(20050)))),
            (Message{MessageType::kReject, IpVersion::k4, 2, kHandle, {kServer4.address, 20050}, kClient4, {}}));
  const Message request6{MessageType::kRequest, IpVersion::k6, 0, kHandle, kServer6, kClient6, kClient6};
  EXPECT_EQ(parsed(answered(answerer, emitted(request6))),
            (Message{MessageType::kAccept, IpVersion::k6, 0, kHandle, kServer6, kClient6, {}}));
  EXPECT_EQ(answerer.counters().accepts, 2u);
  EXPECT_EQ(answerer.counters().rejects, 1u);
}

TEST(IwpmAnswerer, SaysWhatTheLookupFound) {
  Answerer answerer;
  Octets out(kMessageLen, 0xa5);
  out.resize(answerer.on_rx(
      emitted(request4(20049)), [](IpVersion, const Endpoint&) { return std::optional(kElsewhere4); }, kStart, out));
  EXPECT_EQ(parsed(out), (Message{MessageType::kAccept, IpVersion::k4, 2, kHandle, kElsewhere4, kClient4, {}}));
}

TEST(IwpmAnswerer, OnlyRequestsAreAnswered) {
  Answerer answerer;
  for (const MessageType type : {MessageType::kAccept, MessageType::kReject}) {
    EXPECT_EQ(answered(answerer, emitted(answer4(type, kServer4))), Octets{});
  }
  EXPECT_EQ(answerer.counters().ignored, 2u);
  EXPECT_EQ(answered(answerer, emitted(answer4(MessageType::kAck, kServer4))), Octets{});
  EXPECT_EQ(answerer.counters().acks, 1u);
  const Octets request = emitted(request4(20049));
  for (std::size_t len = 0; len < request.size(); ++len) {
    EXPECT_EQ(answered(answerer, Octets(request.begin(), request.begin() + static_cast<std::ptrdiff_t>(len))),
              Octets{});
  }
  EXPECT_EQ(answerer.counters().ignored, 2u + request.size());
}

TEST(IwpmAnswerer, AFloodGetsABoundedNumberOfAnswers) {
  Answerer answerer({.per_second = 10, .burst = 4});
  const Octets request = emitted(request4(20049));
  const auto flood = [&](TimePoint now) {
    int num = 0;
    for (int i = 0; i < 1000; ++i) num += answered(answerer, request, now).empty() ? 0 : 1;
    return num;
  };
  EXPECT_EQ(flood(kStart), 4);
  EXPECT_EQ(flood(kStart), 0);
  EXPECT_EQ(flood(kStart + milliseconds(99)), 0);
  EXPECT_EQ(flood(kStart + milliseconds(100)), 1);
  EXPECT_EQ(flood(kStart + milliseconds(350)), 2);
  EXPECT_EQ(flood(kStart + seconds(100)), 4);
  EXPECT_EQ(answerer.counters().accepts, 11u);
  EXPECT_EQ(answerer.counters().over_limit, 6000u - 11u);
}

TEST(IwpmAnswerer, GarbageIsNeitherAnsweredNorFollowed) {
  std::mt19937 random(20261122);
  Answerer answerer({.per_second = 1000000, .burst = 1000000});
  for (int i = 0; i < 20000; ++i) {
    Octets octets(random() % 80);
    for (std::uint8_t& octet : octets) octet = static_cast<std::uint8_t>(random());
    const Octets reply = answered(answerer, octets);
    // 64 octets with a first one of 0x04 or 0x06 are a Request. The other octets do not matter.
    const bool request = octets.size() == kRequestLen && (octets[0] == 0x04 || octets[0] == 0x06);
    EXPECT_EQ(reply.size(), request ? kMessageLen : 0u);
    Asker asker(question4(), kSettings, kStart);
    EXPECT_FALSE(asker.on_rx(octets));
  }
}

// The whole exchange: each end understands the other's messages.
TEST(IwpmPair, ConnectorFindsTheMappedPort) {
  Asker asker(question4(), kSettings, kStart);
  Answerer answerer;
  Octets out(kMessageLen);
  const Octets request = sent_by(asker);
  out.resize(answerer.on_rx(
      request,
      [](IpVersion, const Endpoint& asked) {
        return std::optional(Endpoint{asked.address, 33333});
      },
      kStart, out));
  ASSERT_TRUE(asker.on_rx(out));
  EXPECT_EQ(asker.answer(), (Answer{Answer::Kind::kMapped, {kServer4.address, 33333}}));
  EXPECT_EQ(answered(answerer, sent_by(asker)), Octets{});
  EXPECT_EQ(answerer.counters().acks, 1u);
}

}  // namespace
}  // namespace weft::verbs::soft::iwpm
