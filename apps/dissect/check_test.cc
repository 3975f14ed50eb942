// What --check says of a violation: where its octets are.
#include "apps/dissect/check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "apps/dissect/fault_log.h"
#include "apps/dissect/testing/printed.h"
#include "apps/dissect/testing/rpc2.h"
#include "mpa/crc32c.h"
#include "mpa/fpdu.h"

namespace weft::apps::dissect {
namespace {

using ::testing::HasSubstr;
using testing::message;
using testing::Octets;
using testing::pattern;
using testing::Printed;
using testing::rpc_call;
using testing::rpc_reply;
using testing::startup;
using testing::tagged;
using testing::untagged;
using testing::Wire;

// Checked: a connection, and what --check prints of it.
struct Checked {
  Printed printed;
  Check check{printed.file()};
  Dissector dissector{{}, check};
  Wire wire;

  explicit Checked(bool markers = false) : wire(dissector, markers) {}

  void send(Wire::End from, const Octets& ulpdu) { wire.send(from, wire.fpdu(from, ulpdu), 60000); }
  std::string end() {
    dissector.finish();
    check.on_capture_end({});
    return printed.text();
  }
};

std::string check_ulpdu(const Octets& ulpdu) {
  Checked checked;
  checked.wire.open();
  checked.send(Wire::kClient, ulpdu);
  return checked.end();
}

TEST(CheckTest, ShowsTheFieldOfASegment) {
  EXPECT_THAT(check_ulpdu(untagged(rdmap::Opcode::kSend, 3, pattern(8))),
              HasSubstr("\n    ULPDU [10:4] 00 00 00 03\n"));
  Octets reserved = untagged(rdmap::Opcode::kSend, 1, pattern(8));
  reserved[1] |= 0x10;
  EXPECT_THAT(check_ulpdu(reserved), HasSubstr("\n    ULPDU [1:1] 53\n"));
  Octets no_queue = untagged(rdmap::Opcode::kSend, 1, pattern(8));
  no_queue[9] = 9;
  EXPECT_THAT(check_ulpdu(no_queue), HasSubstr("\n    ULPDU [6:4] 00 00 00 09\n"));
  EXPECT_THAT(check_ulpdu(tagged(rdmap::Opcode::kWrite, 1, UINT64_MAX, pattern(8))),
              HasSubstr("\n    ULPDU [6:8] ff ff ff ff ff ff ff ff\n"));
}

TEST(CheckTest, ShowsTheStagOfASendThatInvalidatesNone) {
  Octets send = untagged(rdmap::Opcode::kSend, 1, pattern(8));
  send[5] = 9;
  EXPECT_THAT(check_ulpdu(send), HasSubstr("\n    ULPDU [2:4] 00 00 00 09\n"));
}

// DDP refuses the queue before RDMAP looks at the opcode.
TEST(CheckTest, AQueueThatDoesNotExistIsOneFault) {
  Octets no_queue = untagged(rdmap::Opcode::kSend, 1, pattern(8));
  no_queue[9] = 9;
  EXPECT_THAT(check_ulpdu(no_queue), ::testing::EndsWith("1 violation in 3 MPA frames of 1 iWARP connection\n"));
}

TEST(CheckTest, ShowsTheBitsOfAMarkerThatAreSentAsZero) {
  constexpr std::size_t kReservedHalfAt = 0, kFpduptrAt = 3;
  for (const auto& [at, bit, shown] :
       {std::tuple{kReservedHalfAt, 0x80, "80 00 00 00"}, {kFpduptrAt, 0x01, "00 00 00 01"}}) {
    Checked marked(true);
    marked.wire.open(true);
    Octets fpdu = marked.wire.fpdu(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, pattern(8)));
    fpdu[at] |= static_cast<std::uint8_t>(bit);
    const std::size_t covered = fpdu.size() - mpa::kCrcLen;
    mpa::emit_crc(std::span(fpdu).last<mpa::kCrcLen>(), mpa::crc32c(ConstBytes(fpdu).first(covered)));
    marked.wire.send(Wire::kClient, fpdu);
    EXPECT_THAT(marked.end(), HasSubstr(fmt::format("\n    FPDU [0:4] {}\n", shown)));
  }
}

TEST(CheckTest, ShowsTheCrcThePadAndTheMarker) {
  Checked checked;
  checked.wire.open();
  Octets bad_crc = checked.wire.fpdu(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, pattern(8)));
  bad_crc.resize(bad_crc.size() - 4);
  bad_crc.insert(bad_crc.end(), {1, 2, 3, 4});
  checked.wire.send(Wire::kClient, bad_crc);
  EXPECT_THAT(checked.end(), HasSubstr("\n    FPDU [28:4] 01 02 03 04\n"));

  Checked padded;
  padded.wire.open();
  Octets bad_pad = padded.wire.fpdu(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, pattern(7)));
  bad_pad[27] = 0xee;
  const std::size_t covered = bad_pad.size() - mpa::kCrcLen;
  mpa::emit_crc(std::span(bad_pad).last<mpa::kCrcLen>(), mpa::crc32c(ConstBytes(bad_pad).first(covered)));
  padded.wire.send(Wire::kClient, bad_pad);
  EXPECT_THAT(padded.end(), HasSubstr("PAD is not zero\n    the receiver does not look at it\n    FPDU [27:1] ee\n"));

  Checked marked(true);
  marked.wire.open(true);
  Octets bad_marker = marked.wire.fpdu(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, pattern(8)));
  bad_marker[3] ^= 4;
  marked.wire.send(Wire::kClient, bad_marker);
  EXPECT_THAT(marked.end(), HasSubstr("\n    FPDU [0:4] 00 00 00 04\n"));
}

TEST(CheckTest, ShowsTheFieldOfAStartupFrame) {
  Checked checked;
  checked.wire.syn(Wire::kClient);
  checked.wire.syn(Wire::kServer);
  Octets request = startup(mpa::FrameKind::kRequest);
  request[17] = 9;
  checked.wire.send(Wire::kClient, request);
  EXPECT_THAT(checked.end(), HasSubstr("\n    frame [17:1] 09\n"));
}

TEST(CheckTest, ShowsTheListsAndTheWordsOfATransportHeader) {
  Checked checked;
  checked.wire.open();
  rpcrdma::v1::Header call;
  call.xid = 5;
  call.credit = 1;
  checked.send(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, message(call, rpc_call(5, 0, {}))));
  rpcrdma::v1::Header reply;
  reply.xid = 5;
  reply.credit = 0;
  reply.lists.write_list = {{{.handle = 0x99, .length = 8, .offset = 0}}};
  checked.send(Wire::kServer, untagged(rdmap::Opcode::kSend, 1, message(reply, rpc_reply(5, {}))));
  const std::string text = checked.end();
  EXPECT_THAT(text, HasSubstr("\n    message [8:4] 00 00 00 00\n"));
  // 1, one segment, 0x99, 8, 0; no more Write chunks; no Reply chunk. No Read list stands before it.
  EXPECT_THAT(text, HasSubstr("\n    message [16:36] 00 00 00 00 00 00 00 01 00 00 00 01 00 00 00 99 00 00 00 08 "
                              "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n"));
}

// The chunk lists stand behind the words of the header's type.
TEST(CheckTest, ShowsTheFieldOfAVersion2Header) {
  const auto check = [](const Octets& call, const Octets& reply) {
    Checked checked;
    checked.wire.open();
    checked.send(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, call));
    if (!reply.empty()) checked.send(Wire::kServer, untagged(rdmap::Opcode::kSend, 1, reply));
    return checked.end();
  };
  using testing::Cel05;
  using testing::Wg07;
  EXPECT_THAT(check(Cel05::call(1, {}, 9), {}), HasSubstr("\n    message [20:4] 00 00 00 09\n"));
  EXPECT_THAT(check(Wg07::call(1, {}, 9), {}), HasSubstr("\n    message [16:4] 00 00 00 09\n"));
  // One Write chunk, of one segment: 6, 8, 0; no more Write chunks; no Reply chunk. cel05 has a Read list before it.
  constexpr std::string_view kChunks =
      "00 00 00 01 00 00 00 01 00 00 00 06 00 00 00 08 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00";
  EXPECT_THAT(check(Cel05::call(1, testing::write_chunk(5, 8)), Cel05::reply(1, testing::write_chunk(6, 8))),
              HasSubstr(fmt::format("message [24:36] 00 00 00 00 {}\n", kChunks)));
  EXPECT_THAT(check(Wg07::call(1, testing::write_chunk(5, 8)), Wg07::reply(1, testing::write_chunk(6, 8))),
              HasSubstr(fmt::format("message [16:28] {}\n", kChunks.substr(0, 28 * 3 - 1))));
}

// A rule without octets of its own is about the frame.
TEST(CheckTest, ShowsTheFrameOtherwise) {
  EXPECT_THAT(check_ulpdu(pattern(10)), HasSubstr("\n    FPDU [0:16] 00 0a 01 08 "));
}

// A rule about both sides needs both, whole and in their order. --check says where it stops.
TEST(CheckTest, SaysFromWhereRulesAboutBothSidesAreNotJudged) {
  constexpr std::string_view kText = "connection 1: rules about both sides are not judged from packet ";
  Checked healthy;
  healthy.wire.open();
  healthy.send(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, pattern(8)));
  EXPECT_THAT(healthy.end(), ::testing::Not(HasSubstr("not judged")));

  Checked lost;
  lost.wire.open();
  lost.wire.lose(Wire::kClient, lost.wire.fpdu(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, pattern(8))));
  lost.send(Wire::kServer, untagged(rdmap::Opcode::kSend, 1, pattern(8)));
  EXPECT_THAT(lost.end(), HasSubstr("connection 1: rules that need the missing bytes are not judged from packet "
                                    "5 on: a packet acknowledges bytes that the capture does not have before it\n"
                                    "0 violations in "));

  Checked late;
  late.send(Wire::kClient, untagged(rdmap::Opcode::kSend, 8, pattern(8)));
  late.send(Wire::kClient, untagged(rdmap::Opcode::kSend, 9, pattern(8)));
  EXPECT_THAT(late.end(), HasSubstr(std::string(kText) + "1 on: the capture begins in the middle of the connection"));

  Checked swapped;
  swapped.wire.open();
  const Octets fpdu = swapped.wire.fpdu(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, pattern(800)));
  TcpSegment second = swapped.wire.segment(Wire::kClient, {});
  const Octets first_half(fpdu.begin(), fpdu.begin() + 400), second_half(fpdu.begin() + 400, fpdu.end());
  second.seq += 400;
  second.payload = second_half;
  second.payload_len = second_half.size();
  swapped.wire.on_segment(second);
  swapped.wire.send(Wire::kClient, first_half);
  EXPECT_THAT(swapped.end(), ::testing::Not(HasSubstr("not judged")));  // TCP has put the halves together
}

TEST(CheckTest, NamesAFewOfManyUnjudgedConnections) {
  Printed printed;
  Check check(printed.file());
  for (std::uint32_t id = 1; id <= 100; ++id)
    check.on_unjudged({.connection = id, .packet = id, .what = "rules", .why = "a reason"});
  check.on_capture_end({});
  const std::string text = printed.text();
  EXPECT_EQ(std::ranges::count(text, '\n'), 18);
  EXPECT_THAT(text, HasSubstr("\nand 84 more lines about rules that are not judged\n"));
}

Octets terminate_of(std::uint8_t layer_etype, std::uint8_t code, const Octets& ulpdu) {
  Octets body{layer_etype, code, 0xc0, 0, 0, static_cast<std::uint8_t>(ulpdu.size())};
  body.insert(body.end(), ulpdu.begin(), ulpdu.begin() + 18);
  return untagged(rdmap::Opcode::kTerminate, 1, body);
}

// A Terminate says what the other side did wrong: the violation is the other side's.
TEST(CheckTest, ABlameBelongsToTheOtherSide) {
  Checked checked;
  checked.wire.open();
  const Octets send = untagged(rdmap::Opcode::kSend, 1, pattern(8));
  checked.send(Wire::kClient, send);
  checked.send(Wire::kServer, terminate_of(0x12, 0x02, send));
  const std::string text = checked.end();
  EXPECT_THAT(text, HasSubstr("connection 1, client (the server says so): DDP-7.2-09 ("));
  EXPECT_THAT(text, HasSubstr("\n    message [0:4] 12 02 c0 00\n"));
  EXPECT_THAT(text, HasSubstr("\n1 violation in "));
}

TEST(CheckTest, ABlameOfAViolationThatIsNamedAlreadyDoesNotCount) {
  Checked checked;
  checked.wire.open();
  const Octets send = untagged(rdmap::Opcode::kSend, 3, pattern(8));
  checked.send(Wire::kClient, send);
  checked.send(Wire::kServer, terminate_of(0x12, 0x03, send));
  std::string text = checked.end();
  EXPECT_THAT(text, HasSubstr("client (the server says so): "));
  EXPECT_THAT(text, HasSubstr("\n    the same violation as that of packet 5, and not counted again\n"));
  EXPECT_THAT(text, HasSubstr("\n1 violation in "));

  // The Terminate of a bad CRC has no header: the rule is the same.
  Checked crc;
  crc.wire.open();
  Octets bad = crc.wire.fpdu(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, pattern(8)));
  bad.back() ^= 1;
  crc.wire.send(Wire::kClient, bad);
  crc.send(Wire::kServer, untagged(rdmap::Opcode::kTerminate, 1, {0x20, 0x02, 0, 0}));
  text = crc.end();
  EXPECT_THAT(text, HasSubstr("the same violation as that of packet 5"));
  EXPECT_THAT(text, HasSubstr("\n1 violation in "));

  // Another message of the same side is blamed: two violations.
  Checked two;
  two.wire.open();
  two.send(Wire::kClient, send);
  two.send(Wire::kServer, terminate_of(0x12, 0x02, untagged(rdmap::Opcode::kSend, 1, pattern(8))));
  text = two.end();
  EXPECT_THAT(text, ::testing::Not(HasSubstr("the same violation")));
  EXPECT_THAT(text, HasSubstr("\n2 violations in "));
}

// A connection whose client has to send Markers, or not; the octets that it sends instead of an FPDU, and the answer.
std::string check_unreadable(bool markers, const Octets& octets) {
  Checked checked;
  checked.wire.syn(Wire::kClient);
  checked.wire.syn(Wire::kServer);
  checked.wire.send(Wire::kClient, startup(mpa::FrameKind::kRequest));
  checked.wire.send(Wire::kServer, startup(mpa::FrameKind::kReply, markers));
  checked.wire.send(Wire::kClient, octets);
  checked.send(Wire::kServer, untagged(rdmap::Opcode::kTerminate, 1, {0x20, 0x03, 0, 0}));
  return checked.end();
}

// The words of a Send stand where the receiver looks for a Marker and for a ULPDU_Length, which is 0.
TEST(CheckTest, OctetsWithoutTheMarkersThatWereAgreedAreOneViolation) {
  mpa::testing::NaiveFramer framer(true, false);
  Octets fpdus = framer.frame(untagged(rdmap::Opcode::kSend, 1, pattern(8)));
  const Octets more = framer.frame(untagged(rdmap::Opcode::kSend, 2, Octets(2000)));
  fpdus.insert(fpdus.end(), more.begin(), more.end());
  const std::string text = check_unreadable(true, fpdus);
  EXPECT_THAT(text, HasSubstr("connection 1, client: MPA-7.1.1-08"));
  EXPECT_THAT(text, HasSubstr("\n1 violation in "));
}
TEST(CheckTest, AUlpduLengthOf0IsOneViolation) {
  const std::string text = check_unreadable(false, Octets(8));
  EXPECT_THAT(text, HasSubstr("connection 1, client: MPA-3-09"));
  EXPECT_THAT(text, HasSubstr("the same violation as that of packet 5"));
  EXPECT_THAT(text, HasSubstr("\n1 violation in "));
}
// The FPDU is not whole, and the Terminate is an answer to it all the same.
TEST(CheckTest, ATerminateMayAnswerTheFrontOfAnFpdu) {
  const std::string text = check_unreadable(false, Octets{0xff, 0xff, 0, 0});
  EXPECT_THAT(text, HasSubstr("client (the server says so): MPA-"));
  EXPECT_THAT(text, HasSubstr("\n1 violation in "));
}

// The oldest finding is forgotten, and a Terminate that blames it counts.
TEST(CheckTest, FindingsThatATerminateMayBlameAreBounded) {
  const auto num_violations = [](std::uint32_t num_more) {
    Checked checked;
    checked.wire.open();
    const Octets first = untagged(rdmap::Opcode::kSend, 3, pattern(8));
    checked.send(Wire::kClient, first);
    for (std::uint32_t i = 1; i <= num_more; ++i) {
      checked.send(Wire::kClient, untagged(rdmap::Opcode::kSend, 3 + 2 * i, pattern(8)));
    }
    checked.send(Wire::kServer, terminate_of(0x12, 0x03, first));
    checked.end();
    return checked.check.num_violations();
  };
  EXPECT_EQ(num_violations(FaultLog::kMaxFaults - 1), FaultLog::kMaxFaults);
  EXPECT_EQ(num_violations(FaultLog::kMaxFaults), FaultLog::kMaxFaults + 2);
}

}  // namespace
}  // namespace weft::apps::dissect
