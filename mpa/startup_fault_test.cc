#include "mpa/startup_fault.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "mpa/startup.h"

namespace weft::mpa {
namespace {

using Octets = std::vector<std::uint8_t>;

Octets octets_of(std::string_view text) {
  return {text.begin(), text.end()};
}

TEST(StartupFault, EachHasARowAndBothSidesThatCanMeetItAreTold) {
  std::set<StartupFault> seen;
  for (const StartupHint& hint : startup_hints()) {
    EXPECT_TRUE(seen.insert(hint.fault).second);
    EXPECT_EQ(&startup_hint(hint.fault), &hint);
    EXPECT_EQ(hint.initiator_cause.empty(), hint.initiator_advice.empty());
    EXPECT_EQ(hint.responder_cause.empty(), hint.responder_advice.empty());
    EXPECT_FALSE(hint.initiator_cause.empty() && hint.responder_cause.empty());
    for (const auto text : {hint.initiator_cause, hint.initiator_advice, hint.responder_cause, hint.responder_advice}) {
      EXPECT_FALSE(text.ends_with('.')) << text;
      EXPECT_EQ(text.find('\n'), text.npos) << text;
    }
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(StartupFault::kOwnPrivateData) + 1);
}

TEST(StartupFault, RequirementsAreRowsOfTheTables) {
  std::set<std::string> known;
  for (const char* table : {"mpa", "mpa2"}) {
    std::ifstream file(std::string("tests/conformance/tables/") + table + ".tsv");
    ASSERT_TRUE(file) << table;
    for (std::string line; std::getline(file, line);) known.insert(line.substr(0, line.find('\t')));
  }
  for (const StartupHint& hint : startup_hints()) EXPECT_TRUE(known.contains(std::string(hint.requirement)));
}

TEST(StartupFault, ForeignProtocolsAreKnownByTheirFirstOctets) {
  EXPECT_EQ(foreign_protocol(octets_of("HTTP/1.1 400 Bad Request\r\n")), "HTTP");
  EXPECT_EQ(foreign_protocol(octets_of("GET / HTTP/1.1\r\n")), "HTTP");
  EXPECT_EQ(foreign_protocol(octets_of("SSH-2.0-OpenSSH_9.2p1\r\n")), "SSH");
  EXPECT_EQ(foreign_protocol(octets_of("220 mail.example ESMTP")), "SMTP or FTP");
  EXPECT_EQ(foreign_protocol(Octets{0x16, 3, 1, 2, 0}), "TLS");
  EXPECT_EQ(foreign_protocol(Octets{0x15, 3, 3, 0, 2, 2, 10}), "TLS");
  // A NULL Call of NFSv3, and its Reply.
  const Octets call = {0x80, 0, 0, 40, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa3, 0, 0, 0, 3};
  EXPECT_EQ(foreign_protocol(call), "ONC RPC over plain TCP");
  const Octets reply = {0x80, 0, 0, 24, 1, 2, 3, 4, 0, 0, 0, 1, 0, 0, 0, 0};
  EXPECT_EQ(foreign_protocol(reply), "ONC RPC over plain TCP");
  Octets version = octets_of("6.29");
  version.resize(16);
  EXPECT_EQ(foreign_protocol(version), "perftest's exchange of parameters over plain TCP");
}

TEST(StartupFault, OtherOctetsAreNotGuessedAt) {
  for (const Octets& octets :
       {Octets{}, Octets(64, 0), Octets(64, 0xff), octets_of("hello"), octets_of("MPA ID Rep Frame"),
        Octets{0x80, 0, 0, 40, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 3}, Octets{0x16, 3},
        octets_of("6.29.1\0\0\0\0\0\0\0\0\0\0")})
    EXPECT_EQ(foreign_protocol(octets), "");
  // A prefix of something known is not known yet, and reads no further than it goes.
  const Octets call = {0x80, 0, 0, 40, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2};
  for (std::size_t len = 0; len < call.size(); ++len) {
    const Octets cut(call.begin(), call.begin() + static_cast<std::ptrdiff_t>(len));
    EXPECT_EQ(foreign_protocol(cut), "") << len;
  }
}

TEST(StartupFault, AnyOctetsAreMadePrintableAndShort) {
  EXPECT_EQ(printable(octets_of("plain words")), "\"plain words\"");
  EXPECT_EQ(printable(octets_of("a\"b\\c\r\n\x1b[31m")), R"("a\x22b\x5cc\x0d\x0a\x1b[31m")");
  EXPECT_EQ(printable({}), "\"\"");
  Octets all(256);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i);
  const std::string text = printable(all, 256);
  for (const char c : text) EXPECT_TRUE(c >= 0x20 && c < 0x7f);
  EXPECT_EQ(printable(octets_of("0123456789"), 4), "\"0123\"...");
  EXPECT_EQ(printable(Octets(4096, 0)), "\"\\x00{32}\"...");
  EXPECT_EQ(printable(Octets{'a', 0, 0, 0, 'b', 1, 1, 1, 1, 2}), R"("a\x00\x00\x00b\x01{4}\x02")");
  Octets mixed(4096);
  for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] = static_cast<std::uint8_t>(i % 2);
  EXPECT_LE(printable(mixed).size(), 4 * 32 + 5u);
}

TEST(StartupFault, BadFramesNameTheirs) {
  const auto fault_of = [](std::string_view text, FrameKind kind) {
    const auto parsed = parse_startup_frame(octets_of(text), kind);
    const auto* bad = std::get_if<BadFrame>(&parsed);
    return bad != nullptr ? std::optional(bad->fault) : std::nullopt;
  };
  EXPECT_EQ(fault_of("HTTP/1.1 400", FrameKind::kReply), StartupFault::kForeign);
  EXPECT_EQ(fault_of("MPA ID Req Frame", FrameKind::kReply), StartupFault::kBothInitiators);
  EXPECT_EQ(fault_of("MPA ID Rep Frame", FrameKind::kRequest), StartupFault::kBothResponders);
  EXPECT_EQ(fault_of("MPA ID Req Frame@\1\x2\1", FrameKind::kRequest), StartupFault::kPrivateDataLen);
  EXPECT_EQ(fault_of({"MPA ID Req Frame\x50\2\0\0", 20}, FrameKind::kRequest), StartupFault::kNoWords);

  StartupFrame frame;
  frame.rev = 3;
  EXPECT_EQ(std::get<BadFrame>(evaluate_request(frame, {})).fault, StartupFault::kRevision);
  frame.rev = 0;
  EXPECT_EQ(std::get<BadFrame>(evaluate_request(frame, {.permissive = true})).fault, StartupFault::kRdmacBits);
  const StartupFrame request = make_request({}, {});
  StartupFrame reply;
  reply.kind = FrameKind::kReply;
  EXPECT_EQ(std::get<BadFrame>(evaluate_reply(reply, request, {})).fault, StartupFault::kNoWords);
  reply.rev = 3;
  EXPECT_EQ(std::get<BadFrame>(evaluate_reply(reply, request, {})).fault, StartupFault::kRevision);
}

}  // namespace
}  // namespace weft::mpa
