// The accusations of Terminates, weighed against the octets: each code is confirmed, refuted, and not to be seen.
#include "apps/dissect/accusation.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "apps/dissect/testing/court.h"
#include "ddp/untagged_queue.h"

namespace weft::apps::dissect {
namespace {

using rdmap::Layer;
using rdmap::Opcode;
using rdmap::Terminate;
using testing::Court;
using testing::kStag;
using testing::Octets;
using testing::offer;
using testing::pattern;
using testing::read_request;
using testing::startup;
using testing::Talk;
using testing::Wire;
using testing::with;

constexpr std::uint32_t kOther = 0x88;

Octets atomic_request(std::uint32_t msn, std::uint8_t to) {
  Octets body(52);
  body[19] = to;
  return testing::untagged(Opcode::kAtomicRequest, msn, body);
}

Octets invalidate(std::uint32_t msn, const Octets& payload, std::uint32_t stag) {
  Octets ulpdu = testing::untagged(Opcode::kSendInvalidate, msn, payload);
  for (std::size_t i = 0; i < 4; ++i) ulpdu[2 + i] = static_cast<std::uint8_t>(stag >> (24 - 8 * i));
  return ulpdu;
}

using Play = std::function<void(Court&)>;

// Case: conversations that end before the Terminate. Null: there is none with this verdict.
struct Case {
  Layer layer;
  std::uint8_t etype, code;
  Play confirmed, refuted, unseen;
  bool has_header = true;
};

void send_one(Court& court) {
  court.open();
  court.send();
}
void write_one(Court& court) {
  court.open();
  court.write();
}
void nothing(Court& court) {
  court.open();
  court.named = testing::untagged(Opcode::kSend, 1, pattern(8));
}
void read_one(Court& court) {
  court.open();
  court.say(read_request(1, kStag, 0, 100));
}
void read_of_nothing(Court& court) {
  court.open();
  court.say(read_request(1, kStag, 0, 0));
}
void invalidate_one(Court& court) {
  court.open();
  court.say(invalidate(1, pattern(8), kStag));
}
void behind_a_gap(Court& court) {
  court.open();
  court.lose();
}
// The memory is not the client's to give away, or is not offered.
void read_what_is_not_offered(Court& court) {
  court.open();
  court.accuse_server();
  court.say(read_request(1, kOther, 0, 100));
}
void read_beyond(Court& court) {
  court.open();
  court.accuse_server();
  court.say(read_request(1, kStag, 0, 1001));
}
void write_what_is_not_offered(Court& court) {
  court.open();
  court.accuse_server();
  court.write(kOther);
}
void write_beyond(Court& court) {
  court.open();
  court.accuse_server();
  court.write(kStag, 0, 1001);
}
void invalidate_what_is_not_offered(Court& court) {
  court.open();
  court.accuse_server();
  rpcrdma::v1::Header header;
  header.xid = 2;
  header.credit = Talk::kCredits;
  header.lists = offer(kStag, 0);
  court.say(invalidate(++court.msn, testing::message(header, testing::rpc_reply(2, {})), kOther));
}
Play say(Octets ulpdu) {
  return [ulpdu = std::move(ulpdu)](Court& court) {
    court.open();
    court.say(ulpdu);
  };
}
void too_many_calls(Court& court) {
  court.open();
  court.talk.call(1);
  court.talk.reply(1, {}, 1);
  court.talk.call(2);
  rpcrdma::v1::Header header;
  header.xid = 3;
  header.credit = 1;
  court.say(testing::untagged(Opcode::kSend, 3, testing::message(header, testing::rpc_call(3, 0, {}))));
}
void bad_crc(Court& court) {
  court.open();
  Octets fpdu = court.talk.wire.fpdu(Wire::kClient, testing::untagged(Opcode::kSend, 1, pattern(40)));
  fpdu[30] ^= 4;
  court.talk.wire.send(Wire::kClient, fpdu);
}
void no_length(Court& court) {
  court.open();
  court.talk.wire.send(Wire::kClient, Octets(24));
}
void offset(Court& court) {
  court.open();
  court.say(testing::untagged(Opcode::kSend, 1, pattern(8), 0, false));
  court.say(testing::untagged(Opcode::kSend, 1, pattern(8), 40, true));
}
void offset_that_follows(Court& court) {
  court.open();
  court.say(testing::untagged(Opcode::kSend, 1, pattern(8), 0, false));
  court.say(testing::untagged(Opcode::kSend, 1, pattern(8), 8, true));
}
void bad_startup(Court& court) {
  court.talk.wire.syn(Wire::kClient);
  court.talk.wire.syn(Wire::kServer);
  Octets request = startup(mpa::FrameKind::kRequest);
  request[16] |= 0x0f;  // Res
  request[17] = 9;      // Rev
  court.talk.wire.send(Wire::kClient, request);
  court.talk.wire.send(Wire::kServer, startup(mpa::FrameKind::kReply));
}
// The Reply is not in the capture.
void no_reply(Court& court) {
  court.talk.wire.syn(Wire::kClient);
  court.talk.wire.syn(Wire::kServer);
  court.talk.wire.send(Wire::kClient, startup(mpa::FrameKind::kRequest));
  court.talk.wire.lose(Wire::kServer, startup(mpa::FrameKind::kReply));
  for (std::uint32_t i = 0; i < 3; ++i) {
    court.talk.wire.send(Wire::kServer,
                         court.talk.wire.fpdu(Wire::kServer, testing::untagged(Opcode::kSend, i + 1, pattern(60))));
  }
}
// The initiator, which is the client, gives up at once.
Play set_up(mpa::EnhancedWords request, mpa::EnhancedWords reply) {
  return [request, reply](Court& court) {
    court.open_enhanced(request, reply);
    court.accused = Wire::kServer;
  };
}

constexpr mpa::EnhancedWords kIrd4Ord4{.ird = 4, .ord = 4};
constexpr mpa::EnhancedWords kWrite{.a = true, .c = true, .ird = 4, .ord = 4};
constexpr mpa::EnhancedWords kRead{.a = true, .d = true, .ird = 4, .ord = 4};

std::vector<Case> cases() {
  const Octets request = testing::untagged(Opcode::kSend, 1, pattern(8));
  const Octets written = testing::tagged(Opcode::kWrite, kStag, 0, pattern(8));
  const Octets wrapping = testing::tagged(Opcode::kWrite, kStag, UINT64_MAX - 3, pattern(8));
  const Octets queue9 = with(request, 9, 9);
  return {
      {Layer::kRdma, 1, 0x00, read_what_is_not_offered, send_one, read_one},
      {Layer::kRdma, 1, 0x01, read_beyond, read_of_nothing, read_one},
      {Layer::kRdma, 1, 0x02, read_what_is_not_offered, send_one, read_one},
      {Layer::kRdma, 1, 0x03, read_what_is_not_offered, send_one, read_one},
      {Layer::kRdma, 1, 0x04, say(read_request(1, kStag, UINT64_MAX - 3, 8)), read_one,
       [](Court& court) {
         court.open();
         court.lose();
         court.named = read_request(1, kStag, UINT64_MAX - 3, 8);
       }},
      {Layer::kRdma, 1, 0x09, invalidate_what_is_not_offered, send_one, invalidate_one},
      {Layer::kRdma, 1, 0xff, invalidate_what_is_not_offered, send_one, read_one},
      {Layer::kRdma, 2, 0x05, say(with(request, 1, 0x83)), send_one, behind_a_gap, false},
      {Layer::kRdma, 2, 0x06, say(with(request, 1, 0x4d)), send_one,
       [](Court& court) {
         court.open();
         court.say(testing::untagged(Opcode::kImmediate, 1, pattern(8)));
       }},
      {Layer::kRdma, 2, 0x07, say(atomic_request(1, 3)), nothing, send_one, false},
      {Layer::kRdma, 2, 0x09, invalidate_what_is_not_offered, send_one, invalidate_one},
      {Layer::kRdma, 2, 0xff, too_many_calls, nothing, send_one},
      {Layer::kDdp, 1, 0x00, write_what_is_not_offered, send_one, write_one},
      {Layer::kDdp, 1, 0x01, write_beyond,
       [](Court& court) {
         court.open();
         court.write(kStag, 0, 0);
       },
       write_one},
      {Layer::kDdp, 1, 0x02, write_what_is_not_offered, send_one, write_one},
      {Layer::kDdp, 1, 0x03, say(wrapping), write_one,
       [wrapping](Court& court) {
         court.open();
         court.lose();
         court.named = wrapping;
       }},
      {Layer::kDdp, 1, 0x04, say(with(written, 0, 0xc2)), write_one,
       [written](Court& court) {
         court.open();
         court.lose();
         court.named = with(written, 0, 0xc2);
       }},
      {Layer::kDdp, 2, 0x01, say(queue9), send_one,
       [queue9](Court& court) {
         court.open();
         court.lose();
         court.named = queue9;
       }},
      {Layer::kDdp, 2, 0x02, too_many_calls, write_one, send_one},
      {Layer::kDdp, 2, 0x03, say(with(request, 13, 5)), send_one, behind_a_gap},
      {Layer::kDdp, 2, 0x04, offset, send_one, offset_that_follows},
      {Layer::kDdp, 2, 0x05, say(testing::untagged(Opcode::kReadRequest, 1, pattern(40))),
       [](Court& court) {
         court.open();
         court.send(0);
       },
       send_one},
      {Layer::kDdp, 2, 0x06, say(with(request, 0, 0x42)), send_one,
       [request](Court& court) {
         court.open();
         court.lose();
         court.named = with(request, 0, 0x42);
       }},
      {Layer::kDdp, 3, 0x00, nullptr, send_one, nullptr, false},
      {Layer::kLlp, 0, 0x02, bad_crc, send_one, behind_a_gap, false},
      {Layer::kLlp, 0, 0x03, no_length, send_one, behind_a_gap, false},
      {Layer::kLlp, 0, 0x04, bad_startup, send_one, no_reply, false},
      {Layer::kLlp, 0, 0x06, set_up(kIrd4Ord4, {.ird = 4, .ord = 5}), set_up(kIrd4Ord4, kIrd4Ord4), nullptr, false},
      {Layer::kLlp, 0, 0x07, set_up(kWrite, kRead), set_up(kWrite, kWrite), nullptr, false},
  };
}

std::string name(const Terminate& what) {
  return fmt::format("{}/{}/{:02x}", static_cast<int>(what.layer), what.etype, what.code);
}

TEST(Accusation, EveryCodeIsConfirmedRefutedAndUnseen) {
  const auto check = [](const Case& one, const Play& play, Verdict due) {
    if (!play) return;
    Court court;
    play(court);
    const Terminate what{one.layer, one.etype, one.code};
    const auto verdict = court.verdict(what, one.has_header);
    EXPECT_TRUE(verdict == due) << name(what) << " is " << (verdict ? verdict_str(*verdict) : "not weighed") << ", and "
                                << verdict_str(due)
                                << " is due; findings: " << ::testing::PrintToString(court.talk.told.findings)
                                << ::testing::PrintToString(court.talk.told.whats);
  };
  for (const Case& one : cases()) {
    check(one, one.confirmed, Verdict::kConfirmed);
    check(one, one.refuted, Verdict::kRefuted);
    check(one, one.unseen, Verdict::kUnseen);
  }
}

// The message has a fault, and not the one of which the Terminate speaks. A receiver may find either of two first.
TEST(Accusation, AnotherFaultOfTheMessageConfirmsNoCodeThatItsHeaderContradicts) {
  const Octets request = testing::untagged(Opcode::kSend, 1, pattern(8));
  const Octets odd_msn = with(request, 13, 5);
  const auto verdict_of = [](const Octets& ulpdu, const Terminate& what) {
    Court court;
    say(ulpdu)(court);
    return court.verdict(what, true);
  };
  EXPECT_EQ(verdict_of(odd_msn, {Layer::kDdp, 2, 0x03}), Verdict::kConfirmed);
  EXPECT_EQ(verdict_of(odd_msn, {Layer::kDdp, 2, 0x02}), Verdict::kConfirmed) << "no buffer has this MSN";
  EXPECT_EQ(verdict_of(odd_msn, {Layer::kDdp, 2, 0x06}), Verdict::kRefuted) << "its DV is right";
  EXPECT_EQ(verdict_of(odd_msn, {Layer::kRdma, 2, 0x05}), Verdict::kRefuted) << "its RV is right";
  EXPECT_EQ(verdict_of(odd_msn, {Layer::kDdp, 2, 0x01}), Verdict::kRefuted) << "its queue is one of RFC 5040";
  EXPECT_EQ(verdict_of(with(odd_msn, 0, 0x42), {Layer::kDdp, 2, 0x03}), Verdict::kConfirmed) << "two faults";
  EXPECT_EQ(verdict_of(with(odd_msn, 0, 0x42), {Layer::kDdp, 2, 0x06}), Verdict::kConfirmed) << "two faults";
}

// Codes of right receivers, and of RNICs, for a fault that the dissector names by another code.
TEST(Accusation, ACodeThatAReceiverMayChooseIsConfirmed) {
  const auto expect = [](const Play& play, const Terminate& what, Verdict due) {
    Court court;
    play(court);
    EXPECT_EQ(court.verdict(what, true), due) << name(what) << ::testing::PrintToString(court.talk.told.findings);
  };
  const Terminate rights{Layer::kRdma, 1, 0x02}, no_buffer{Layer::kDdp, 2, 0x02}, wraps{Layer::kRdma, 1, 0x04};
  // DDP-A-07.
  expect(write_what_is_not_offered, rights, Verdict::kConfirmed);
  expect(invalidate_what_is_not_offered, rights, Verdict::kConfirmed);
  // DDP-A-02: any MSN with a buffer is good, and this one has none.
  expect(
      [](Court& court) {
        court.open_enhanced(kIrd4Ord4, kIrd4Ord4);
        court.say(read_request(9, kStag, 0, 100));
      },
      no_buffer, Verdict::kConfirmed);
  // siw goes by the opcode, and looks at QN and T later or never.
  const Octets request = testing::untagged(Opcode::kSend, 1, pattern(8));
  expect(say(with(request, 9, 1)), {Layer::kDdp, 2, 0x01}, Verdict::kConfirmed);
  expect(say(with(request, 1, 0x40)), {Layer::kDdp, 1, 0x00}, Verdict::kConfirmed);
  // EXT-X-04.
  Octets beyond = atomic_request(1, 0xfc);
  std::fill_n(beyond.begin() + ddp::kUntaggedHeaderLen + 12, 7, 0xff);
  expect(say(beyond), wraps, Verdict::kConfirmed);
  // DDP-A-04: the second segment begins anew.
  const Octets first = testing::untagged(Opcode::kSend, 1, pattern(8), 0, false);
  expect(
      [first](Court& court) {
        court.open();
        court.say(first);
        court.say(first);
      },
      {Layer::kDdp, 2, 0x04}, Verdict::kUnseen);
}

// RFC 5040 Figure 10: an error of remote protection may be about a Send with Invalidate.
TEST(Accusation, ASendWithInvalidateMayHaveAnInvalidStagOrOneOfAnotherStream) {
  for (const int code : {0x00, 0x03}) {
    for (const auto& [play, due] : {std::pair(Play(invalidate_what_is_not_offered), Verdict::kConfirmed),
                                    std::pair(Play(invalidate_one), Verdict::kUnseen)}) {
      Court court;
      play(court);
      EXPECT_EQ(court.verdict({Layer::kRdma, 1, static_cast<std::uint8_t>(code)}, true), due) << code;
    }
  }
}

// A receiver that has no RDMA Read under way may look at the opcode first.
TEST(Accusation, AnRdmaReadResponseThatNobodyAskedForMayBeAnUnexpectedOpcode) {
  for (const bool has_header : {true, false}) {
    Court court;
    court.open();
    court.say(testing::tagged(Opcode::kReadResponse, 0x99, 0, pattern(8)));
    EXPECT_EQ(court.verdict(rdmap::kUnexpectedOpcode, has_header), Verdict::kConfirmed) << has_header;
  }
}

// A refuted accusation is the accuser's violation, and the accused side has none.
TEST(Accusation, TheAccuserIsAtFaultIfTheOctetsRefuteIt) {
  struct Blamed final : Listener {
    std::vector<std::string> by;
    void on_connection(const Connection&) override {}
    void on_frame(const Frame& frame) override {
      for (const Finding& finding : frame.findings) by.emplace_back(side_str(culprit(frame, finding)));
    }
    void on_connection_end(std::uint32_t, const TcpCounters&) override {}
  };
  for (const Case& one : cases()) {
    if (!one.refuted) continue;
    Blamed blamed;
    Dissector dissector({}, blamed);
    Court court;
    court.talk.wire.on_segment = [&](const TcpSegment& segment) { dissector.on_segment(segment); };
    one.refuted(court);
    blamed.by.clear();
    court.named.resize(std::max<std::size_t>(court.named.size(), 18));
    const std::string accuser = court.accused == Wire::kClient ? "server" : "client";
    (void)court.verdict({one.layer, one.etype, one.code}, one.has_header);
    dissector.finish();
    EXPECT_THAT(blamed.by, ::testing::Not(::testing::IsEmpty())) << name({one.layer, one.etype, one.code});
    EXPECT_THAT(blamed.by, ::testing::Each(accuser)) << name({one.layer, one.etype, one.code});
  }
}

TEST(Accusation, FailuresOfTheSenderAccuseNobody) {
  for (const Trial& trial : trials()) {
    if (trial.proof != Trial::Proof::kOwn || !trial.without.empty()) continue;
    Court court;
    send_one(court);
    const Terminate what{trial.layer, trial.etype, static_cast<std::uint8_t>(std::max(trial.code, 0))};
    EXPECT_FALSE(court.verdict(what, false)) << name(what);
    EXPECT_THAT(court.talk.told.findings, ::testing::IsEmpty()) << name(what);
  }
}

std::set<std::string> names_of(std::span<const rdmap::TerminateRow> rows) {
  std::set<std::string> names;
  for (const auto& row : rows) names.insert(name({row.layer, row.etype, row.any_code ? std::uint8_t{0} : row.code}));
  return names;
}

TEST(Accusation, EveryCodeHasATrialAndACase) {
  std::set<std::string> tried, played;
  for (const Trial& one : trials()) {
    const Terminate what{one.layer, one.etype, static_cast<std::uint8_t>(std::max(one.code, 0))};
    tried.insert(name(what));
    if (one.proof == Trial::Proof::kOwn && (one.without.empty() || one.code == 5)) played.insert(name(what));
  }
  for (const Case& one : cases()) played.insert(name({one.layer, one.etype, one.code}));
  EXPECT_EQ(tried, names_of(rdmap::terminate_rows()));
  EXPECT_EQ(played, tried);
  std::ifstream in("tests/conformance/tables/terminate-codes.tsv");
  std::set<std::string> in_table;
  std::string line;
  for (std::getline(in, line); std::getline(in, line);) {
    std::istringstream words(line);
    std::string layer, etype, code;
    words >> layer >> etype >> code;
    const auto number = [](const std::string& text) {
      return text == "any" ? 0 : static_cast<int>(std::stoul(text, nullptr, 16));
    };
    in_table.insert(name({static_cast<Layer>(number(layer)), static_cast<std::uint8_t>(number(etype)),
                          static_cast<std::uint8_t>(number(code))}));
  }
  EXPECT_EQ(in_table, tried);
}

// ---- words that siw writes in another order, and what may be unknown to a receiver

TEST(Accusation, TheOtherReadingOfSiwCounts) {
  // 0/2/06 as siw writes it reads as 2/0/06: the sender is the responder, which has no IRD to lack.
  Court court;
  court.open();
  court.say(testing::untagged(Opcode::kImmediate, 1, pattern(8)));
  EXPECT_NE(court.verdict({Layer::kRdma, 2, 0x06}, false), Verdict::kRefuted);
}

// A fault for which no receiver ends a connection confirms nothing.
TEST(Accusation, ASmallFaultConfirmsNoOther) {
  Court court;
  court.open();
  court.say(with(testing::untagged(Opcode::kSend, 1, pattern(8)), 0, 0x45));  // Rsvd of DDP
  EXPECT_EQ(court.verdict({Layer::kRdma, 2, 0x05}, true), Verdict::kRefuted);
}

}  // namespace
}  // namespace weft::apps::dissect
