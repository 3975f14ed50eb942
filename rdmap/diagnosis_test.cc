#include "rdmap/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "ddp/segment.h"

namespace weft::rdmap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TerminateMessage alone(std::uint8_t octet0, std::uint8_t code) {
  const std::uint8_t octets[] = {octet0, code, 0, 0};
  return parse_terminate(octets).value();
}

TerminateMessage with_untagged(Terminate what, Opcode opcode, std::uint32_t qn, std::uint32_t msn, std::uint32_t mo,
                               std::uint16_t segment_len, std::uint32_t invalidate = 0) {
  TerminateMessage m;
  m.what = what;
  m.segment_len = segment_len;
  ddp::UntaggedHeader header;
  header.rsvd_ulp = control_octet(opcode);
  header.rsvd_ulp_8_39 = invalidate;
  header.qn = qn;
  header.msn = {msn};
  header.mo = mo;
  ddp::emit_header(header, std::span(m.ddp_header).first<ddp::kUntaggedHeaderLen>());
  m.ddp_header_len = ddp::kUntaggedHeaderLen;
  return m;
}

TEST(Diagnosis, EveryRegisteredCombinationHasCauseAndAdviceForBothEnds) {
  for (const TerminateRow& row : terminate_rows()) {
    const TerminateMessage message{.what = {row.layer, row.etype, row.code}};
    SCOPED_TRACE(describe(message.what));
    for (const Course course : {Course::kReceived, Course::kSent}) {
      const Diagnosis d = diagnose(message, course);
      EXPECT_THAT(d.what, HasSubstr(describe(message.what)));
      EXPECT_FALSE(d.requirements.empty() || d.cause.empty() || d.advice.empty());
      EXPECT_TRUE(d.where.empty());
    }
  }
  // The diagnosis has no row for an unregistered code.
  for (const DiagnosisRow& row : diagnosis_rows()) {
    EXPECT_TRUE(std::ranges::any_of(terminate_rows(), [&](const TerminateRow& known) {
      return known.layer == row.layer && known.etype == row.etype && known.any_code == (row.code < 0) &&
             (known.any_code || known.code == row.code);
    })) << describe({row.layer, row.etype, static_cast<std::uint8_t>(row.code)});
  }
}

TEST(Diagnosis, SentencesHaveNeitherFullStopNorNewline) {
  for (const DiagnosisRow& row : diagnosis_rows()) {
    for (const std::string_view text : {row.cause, row.if_received, row.if_sent}) {
      ASSERT_FALSE(text.empty());
      EXPECT_NE(text.back(), '.') << text;
      EXPECT_EQ(text.find('\n'), text.npos) << text;
      EXPECT_EQ(text.find("  "), text.npos) << text;
    }
  }
}

// Each cited id is a row of the requirement tables.
TEST(Diagnosis, RequirementsAreRowsOfTheTables) {
  std::set<std::string> known;
  for (const char* table : {"mpa", "mpa2", "ddp", "rdmap", "rdmap-ext", "rdma-security"}) {
    std::ifstream file(std::string("tests/conformance/tables/") + table + ".tsv");
    ASSERT_TRUE(file) << table;
    for (std::string line; std::getline(file, line);) known.insert(line.substr(0, line.find('\t')));
  }
  for (const DiagnosisRow& row : diagnosis_rows()) {
    std::istringstream ids{std::string(row.requirement)};
    for (std::string id; ids >> id;) EXPECT_TRUE(known.contains(id)) << id;
  }
}

TEST(Diagnosis, TellsTheMessageFromTheHeadersThatCameBack) {
  const TerminateMessage send = with_untagged({Layer::kDdp, 2, 2}, Opcode::kSend, 0, 5, 0, 82);
  EXPECT_EQ(diagnose(send, Course::kReceived).where, "a Send: queue 0 MSN 5 MO 0, 82 bytes with its header");

  TerminateMessage write{.what = {Layer::kDdp, 1, 0}, .segment_len = 1038};
  ddp::TaggedHeader header;
  header.rsvd_ulp = control_octet(Opcode::kWrite);
  header.stag = {0x1234};
  header.to = 0x7f0000001000;
  ddp::emit_header(header, std::span(write.ddp_header).first<ddp::kTaggedHeaderLen>());
  write.ddp_header_len = ddp::kTaggedHeaderLen;
  EXPECT_EQ(diagnose(write, Course::kSent).where,
            "an RDMA Write: STag 0x00001234 TO 0x7f0000001000, 1038 bytes with its header");

  TerminateMessage read = with_untagged(kReadBaseBounds, Opcode::kReadRequest, 1, 7, 0, 46);
  read.rdma_header = emit_read_request_header({{0x11}, 0x2000, 4096, {0x22}, 0x3000});
  read.has_rdma_header = true;
  EXPECT_EQ(diagnose(read, Course::kReceived).where,
            "a Read Request: queue 1 MSN 7 MO 0, 46 bytes with its header; it reads 4096 bytes from STag 0x00000022 "
            "TO 0x3000 into STag 0x00000011 TO 0x2000");

  const auto invalidate = with_untagged(kInvalidateOperation, Opcode::kSendInvalidate, 0, 1, 0, 18, 0xab);
  EXPECT_THAT(diagnose(invalidate, Course::kReceived).where, HasSubstr("to invalidate STag 0x000000ab"));
}

TEST(Diagnosis, TheQueueDecidesWhatNoBufferMeans) {
  const Terminate no_buffer{Layer::kDdp, 2, 2};
  const Diagnosis send = diagnose(with_untagged(no_buffer, Opcode::kSend, 0, 1, 0, 0), Course::kReceived);
  EXPECT_THAT(send.cause, HasSubstr("credits"));
  EXPECT_THAT(send.advice, AllOf(HasSubstr("ClientConfig::credits"),
                                 HasSubstr("Linux siw also a smaller ClientConfig::inline_threshold")));
  const Diagnosis read = diagnose(with_untagged(no_buffer, Opcode::kReadRequest, 1, 1, 0, 0), Course::kReceived);
  EXPECT_THAT(read.cause, AllOf(HasSubstr("IRD"), Not(HasSubstr("credits"))));
  EXPECT_THAT(read.advice, HasSubstr("SoftConfig::ord"));
}

TEST(Diagnosis, AdviceDependsOnWhoRefused) {
  const TerminateMessage too_long{.what = {Layer::kDdp, 2, 5}};
  EXPECT_THAT(diagnose(too_long, Course::kReceived).advice, HasSubstr("a smaller ClientConfig::inline_threshold"));
  EXPECT_THAT(diagnose(too_long, Course::kSent).advice, HasSubstr("a larger ClientConfig::inline_threshold"));
}

// siw writes 02 07 for "no matching RTR", the RFC 20 07. Each has another meaning in the other's order.
TEST(Diagnosis, ControlOctetsThatMeanSomethingInBothOrdersAreReadTwice) {
  const Diagnosis a = diagnose(alone(0x02, 0x07), Course::kReceived);
  EXPECT_THAT(a.what, HasSubstr("(0/2/07)"));
  EXPECT_EQ(a.told, "which from Linux siw would mean MPA: no matching RTR option (2/0/07)");
  EXPECT_THAT(a.cause, HasSubstr("where the peer is Linux siw: no ready-to-receive message"));
  EXPECT_THAT(a.advice, HasSubstr("SoftConfig::rtr"));
  const Diagnosis b = diagnose(alone(0x20, 0x07), Course::kReceived);
  EXPECT_THAT(b.what, HasSubstr("(2/0/07)"));
  EXPECT_THAT(b.told, HasSubstr("(0/2/07)"));

  // Only one order makes sense: 12 06 is DDP's, and 21 06 can only be siw's writing of it.
  EXPECT_EQ(diagnose(alone(0x12, 0x06), Course::kReceived).told, "");
  const Diagnosis version = diagnose(alone(0x21, 0x06), Course::kReceived);
  EXPECT_THAT(version.what, HasSubstr("(1/2/06)"));
  EXPECT_THAT(version.told, AllOf(HasSubstr("read as Linux siw writes it"), HasSubstr("(2/1/06)")));
  EXPECT_EQ(version.requirements, "DDP-7.2-13");

  // Octets that mean the same in both orders have one reading, and so have our own Terminates.
  EXPECT_EQ(diagnose(alone(0x11, 0x04), Course::kReceived).told, "");
  EXPECT_EQ(diagnose(alone(0x20, 0x07), Course::kSent).told, "");
}

TEST(Diagnosis, SiwsReadingCountsWhereItsHeaderBitsGiveItAway) {
  // An oversized Send, as siw answers it: code 2, the payload's length, and a Read whose MSN is made up.
  TerminateMessage send = with_untagged({Layer::kRdma, 2, 2}, Opcode::kSend, 0, 9, 0, 4096);
  send.what = {static_cast<Layer>(2), 1, 2};
  send.siw = Terminate{Layer::kDdp, 2, 2};
  const Diagnosis d = diagnose(send, Course::kReceived);
  EXPECT_THAT(d.what, HasSubstr("no buffer available (1/2/02)"));
  EXPECT_THAT(d.told, HasSubstr("(2/1/02)"));
  EXPECT_EQ(d.where, "a Send: queue 0 MSN 9 MO 0, 4096 bytes of payload");
  EXPECT_EQ(d.requirements, "DDP-7.2-09");

  TerminateMessage read = with_untagged({Layer::kDdp, 0, 1}, Opcode::kReadRequest, 1, 4096, 0, 0);
  read.siw = kReadBaseBounds;
  EXPECT_EQ(diagnose(read, Course::kReceived).where.find("MSN"), std::string::npos);
}

TEST(Diagnosis, UnregisteredCodesAreSaidToBeThat) {
  const Diagnosis d = diagnose(alone(0x35, 0x42), Course::kReceived);
  EXPECT_THAT(one_line(d), AllOf(HasSubstr("unknown layer"), HasSubstr("unregistered"), HasSubstr("Try: ")));
  EXPECT_TRUE(d.requirements.empty());
}

TEST(Diagnosis, OneLineAndSeveral) {
  const Diagnosis d{
      .what = "what", .told = "told", .where = "where", .requirements = "X-1", .cause = "cause", .advice = "advice"};
  EXPECT_EQ(one_line(d), "what; told, for where [X-1]. Likely cause: cause. Try: advice");
  EXPECT_EQ(to_lines(d),
            "what\n  reading:      told\n  refused:      where\n  requirement:  X-1\n  likely cause: cause\n"
            "  try:          advice");
  EXPECT_EQ(one_line({.what = "what"}), "what");
  EXPECT_EQ(to_lines({.what = "what"}), "what");
  EXPECT_EQ(hints({.advice = "advice"}), "Try: advice");
}

// No octets of a peer's make it stumble.
TEST(Diagnosis, AnyControlOctetsAndAnyCutAreSafe) {
  std::vector<std::uint8_t> body(kTerminateMaxLen, 0xa5);
  for (unsigned octet0 = 0; octet0 < 256; ++octet0) {
    for (const unsigned bits : {0x00u, 0x03u, 0x07u, 0xc0u, 0xe0u}) {
      body[0] = static_cast<std::uint8_t>(octet0);
      body[2] = static_cast<std::uint8_t>(bits);
      body[3] = 0;
      body[6] = static_cast<std::uint8_t>(octet0 * 7);
      for (const std::size_t len : {4u, 6u, 20u, 24u, 48u, 52u}) {
        const std::vector<std::uint8_t> cut(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(len));
        const std::string line = one_line(diagnose(parse_terminate(cut).value(), Course::kReceived));
        EXPECT_EQ(line.find('\n'), std::string::npos);
        EXPECT_LT(line.size(), 2000u);
      }
    }
  }
}

}  // namespace
}  // namespace weft::rdmap
