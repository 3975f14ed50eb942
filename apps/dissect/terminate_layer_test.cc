// The parts of a Terminate against its M, D and R bits (RFC 5040 section 4.8).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "apps/dissect/testing/wire.h"

namespace weft::apps::dissect {
namespace {

using testing::Octets;
using ::testing::UnorderedElementsAre;

// Findings of a Terminate with these octets, whose error is the sender's own: it blames nobody.
std::vector<std::string> findings_of(const Octets& body) {
  testing::Told told;
  Dissector dissector({}, told);
  testing::Wire wire(dissector);
  wire.open();
  wire.send(testing::Wire::kClient,
            wire.fpdu(testing::Wire::kClient, testing::untagged(rdmap::Opcode::kSend, 1, testing::pattern(8))));
  wire.send(testing::Wire::kClient,
            wire.fpdu(testing::Wire::kClient, testing::tagged(rdmap::Opcode::kWrite, 0, 0, testing::pattern(8))));
  wire.send(testing::Wire::kServer,
            wire.fpdu(testing::Wire::kServer, testing::untagged(rdmap::Opcode::kTerminate, 1, body)));
  dissector.finish();
  return told.findings;
}

// Control octets, and `len` octets behind them; the first ones are a DDP Segment Length, and a header with T =
// `tagged`.
Octets terminate(std::uint8_t layer_etype, std::uint8_t bits, std::size_t len, bool tagged = false) {
  Octets body{layer_etype, 0, bits, 0};
  body.resize(4 + len);
  if (len > 2) body[6] = tagged ? 0xc1 : 0x41;
  if (len > 3 && (bits & 0x20) != 0) body[7] = rdmap::control_octet(rdmap::Opcode::kReadRequest);
  return body;
}

constexpr std::uint8_t kOwnOfDdp = 0x10, kOwnOfRdmap = 0x00;
constexpr std::uint8_t kM = 0x80, kD = 0x40, kR = 0x20;

TEST(TerminateLayer, PartsThatAreAnnouncedAndThereAreNoViolation) {
  EXPECT_THAT(findings_of(terminate(kOwnOfDdp, 0, 0)), UnorderedElementsAre());
  EXPECT_THAT(findings_of(terminate(kOwnOfDdp, kM, 2)), UnorderedElementsAre());
  EXPECT_THAT(findings_of(terminate(kOwnOfDdp, kD, 20)), UnorderedElementsAre());
  EXPECT_THAT(findings_of(terminate(kOwnOfDdp, kM | kD, 16, true)), UnorderedElementsAre());
  EXPECT_THAT(findings_of(terminate(kOwnOfDdp, kM | kD | kR, 48)), UnorderedElementsAre());
  EXPECT_THAT(findings_of(terminate(kOwnOfDdp, kR, 28)), UnorderedElementsAre());
}

TEST(TerminateLayer, APartThatIsAnnouncedAndMissingIsNamed) {
  EXPECT_THAT(findings_of(terminate(kOwnOfDdp, kM, 1)), UnorderedElementsAre("RDMAP-4.8-15"));
  EXPECT_THAT(findings_of(terminate(kOwnOfDdp, kM | kD, 0)), UnorderedElementsAre("RDMAP-4.8-15", "RDMAP-4.8-16"));
  EXPECT_THAT(findings_of(terminate(kOwnOfDdp, kM | kD, 19)), UnorderedElementsAre("RDMAP-4.8-16"));
  EXPECT_THAT(findings_of(terminate(kOwnOfDdp, kM | kD, 15, true)), UnorderedElementsAre("RDMAP-4.8-16"));
  EXPECT_THAT(findings_of(terminate(kOwnOfDdp, kM | kD | kR, 47)), UnorderedElementsAre("RDMAP-4.8-18"));
  EXPECT_THAT(findings_of(terminate(kOwnOfDdp, kR, 0)), UnorderedElementsAre("RDMAP-4.8-18"));
}

TEST(TerminateLayer, APartThatNoBitAnnouncesIsNamed) {
  EXPECT_THAT(findings_of(terminate(kOwnOfDdp, 0, 20)), UnorderedElementsAre("RDMAP-4.8-01"));
  EXPECT_THAT(findings_of(terminate(kOwnOfDdp, kM, 20)), UnorderedElementsAre("RDMAP-4.8-01"));
  EXPECT_THAT(findings_of(terminate(kOwnOfDdp, kM | kD, 48)), UnorderedElementsAre("RDMAP-4.8-01"));
  EXPECT_THAT(findings_of(terminate(kOwnOfDdp, kM | kD | kR, 49)), UnorderedElementsAre("RDMAP-4.8-01"));
}

TEST(TerminateLayer, ReservedBitsAreNamed) {
  EXPECT_THAT(findings_of({kOwnOfDdp, 0, 0x01, 0}), UnorderedElementsAre("RDMAP-4.8-12"));
  EXPECT_THAT(findings_of({kOwnOfDdp, 0, 0, 0x80}), UnorderedElementsAre("RDMAP-4.8-12"));
}

TEST(TerminateLayer, ALocalErrorHasNoHeader) {
  EXPECT_THAT(findings_of(terminate(kOwnOfRdmap, kM | kD, 20)), UnorderedElementsAre("RDMAP-4.8-17"));
}

// A Terminate about a message with this opcode.
Octets about(rdmap::Opcode opcode, std::uint8_t layer_etype, std::uint8_t bits) {
  Octets body = terminate(layer_etype, bits, (bits & kR) != 0 ? 48 : 20);
  body[7] = rdmap::control_octet(opcode);
  return body;
}

TEST(TerminateLayer, TheRdmapHeaderIsThatOfAReadRequest) {
  using enum rdmap::Opcode;
  EXPECT_THAT(findings_of(about(kReadRequest, kOwnOfDdp, kM | kD | kR)), UnorderedElementsAre());
  EXPECT_THAT(findings_of(about(kSend, kOwnOfDdp, kM | kD | kR)), UnorderedElementsAre("RDMAP-7.1-03"));
  EXPECT_THAT(findings_of(about(kAtomicRequest, kOwnOfDdp, kM | kD | kR)), UnorderedElementsAre("EXT-8.1-02"));
}

TEST(TerminateLayer, AProtectionErrorOfAReadRequestHasItsHeader) {
  using ::testing::Contains;
  using ::testing::Not;
  constexpr std::uint8_t kProtection = 0x01;
  EXPECT_THAT(findings_of(about(rdmap::Opcode::kReadRequest, kProtection, kM | kD)), Contains("RDMAP-7.1-04"));
  EXPECT_THAT(findings_of(about(rdmap::Opcode::kReadRequest, kProtection, kM | kD | kR)),
              Not(Contains("RDMAP-7.1-04")));
  EXPECT_THAT(findings_of(about(rdmap::Opcode::kSendInvalidate, kProtection, kM | kD)), Not(Contains("RDMAP-7.1-04")));
}

TEST(TerminateLayer, AnErrorOfASegmentHasItsHeader) {
  using ::testing::Contains;
  using ::testing::Not;
  constexpr std::uint8_t kTaggedBuffer = 0x11, kUntaggedBuffer = 0x12;
  EXPECT_THAT(findings_of(terminate(kTaggedBuffer, 0, 0)), Contains("RDMAP-7.1-03"));
  EXPECT_THAT(findings_of(terminate(kUntaggedBuffer, 0, 0)), Contains("RDMAP-7.1-03"));
  EXPECT_THAT(findings_of(terminate(kUntaggedBuffer, kM | kD, 20)), Not(Contains("RDMAP-7.1-03")));
}

TEST(TerminateLayer, AnErrorOfTheLlpHasNoHeader) {
  using ::testing::Contains;
  constexpr std::uint8_t kLlp = 0x20;
  EXPECT_THAT(findings_of(terminate(kLlp, kM | kD, 20)), Contains("RDMAP-7.1-02"));
}

// The client has sent MSN 1.
TEST(TerminateLayer, TheTerminatedMessageHasCome) {
  constexpr std::size_t kMsnAt = 6 + 10 + 3;
  for (const std::uint8_t msn : Octets{0, 1, 2}) {
    Octets body = about(rdmap::Opcode::kSend, kOwnOfDdp, kM | kD);
    body[kMsnAt] = msn;
    if (msn == 2) {
      EXPECT_THAT(findings_of(body), UnorderedElementsAre("RDMAP-7.1-03"));
    } else {
      EXPECT_THAT(findings_of(body), UnorderedElementsAre());
    }
  }
}

// Two messages with the same fault: the Terminate is about the first one.
TEST(TerminateLayer, TheFirstFaultIsDescribed) {
  constexpr std::uint8_t kMsnRangeCode = 0x03, kUntaggedBuffer = 0x12;
  const auto findings_about = [](bool is_first) {
    testing::Told told;
    Dissector dissector({}, told);
    testing::Wire wire(dissector);
    wire.open();
    const Octets first = testing::untagged(rdmap::Opcode::kSend, 5, testing::pattern(8));
    const Octets second = testing::untagged(rdmap::Opcode::kSend, 9, testing::pattern(8));
    for (const Octets& message : {first, second}) {
      wire.send(testing::Wire::kClient, wire.fpdu(testing::Wire::kClient, message));
    }
    Octets body{kUntaggedBuffer, kMsnRangeCode, kM | kD, 0, 0, 26};
    const Octets& named = is_first ? first : second;
    body.insert(body.end(), named.begin(), named.begin() + 18);
    told.findings.clear();
    wire.send(testing::Wire::kServer,
              wire.fpdu(testing::Wire::kServer, testing::untagged(rdmap::Opcode::kTerminate, 1, body)));
    return told.findings;
  };
  using ::testing::Contains;
  using ::testing::Not;
  EXPECT_THAT(findings_about(true), Not(Contains("RDMAP-7.1-05")));
  EXPECT_THAT(findings_about(false), Contains("RDMAP-7.1-05"));
}

// RFC 6581: IRD or RTR that do not suit; RFC 5040: a catastrophic error of the whole RNIC.
// The fault of the other side is one, however often a Terminate names it.
TEST(TerminateLayer, AnotherTerminateBlamesNoFurtherMessage) {
  testing::Told told;
  Dissector dissector({}, told);
  testing::Wire wire(dissector);
  wire.open();
  wire.send(testing::Wire::kClient,
            wire.fpdu(testing::Wire::kClient, testing::untagged(rdmap::Opcode::kSend, 1, testing::pattern(8))));
  for (const std::uint32_t msn : {1u, 2u}) {
    const Octets crc_error{0x20, 0x02, 0, 0};
    wire.send(testing::Wire::kServer,
              wire.fpdu(testing::Wire::kServer, testing::untagged(rdmap::Opcode::kTerminate, msn, crc_error)));
  }
  EXPECT_THAT(told.findings, UnorderedElementsAre("MPA-8-04", "RDMAP-5.4-09"));
}

TEST(TerminateLayer, FailuresWithoutAFaultOfTheOtherSideAreNoViolation) {
  const auto body = [](std::uint8_t layer_etype, std::uint8_t code) { return Octets{layer_etype, code, 0, 0}; };
  EXPECT_THAT(findings_of(body(0x20, 0x05)), UnorderedElementsAre());
  EXPECT_THAT(findings_of(body(0x02, 0x08)), UnorderedElementsAre());
  EXPECT_THAT(findings_of(body(0x02, 0x07)), UnorderedElementsAre("RDMAP-4.8-08"));
}

TEST(TerminateLayer, TheOrderOfSiwIsNamed) {
  constexpr std::uint8_t kSwappedOwnOfDdp = 0x01, kSwappedMd = 0x03;
  EXPECT_THAT(findings_of(terminate(kSwappedOwnOfDdp, kSwappedMd, 20)), UnorderedElementsAre("RDMAP-4.8-02"));
}

// RdmapFields: the fields of RDMAP as "NAME: VALUE".
struct RdmapFields final : Listener {
  std::vector<std::string> fields;

  void on_connection(const Connection&) override {}
  void on_frame(const Frame& frame) override {
    for (const Layer& layer : frame.layers) {
      if (layer.kind != LayerKind::kRdmap) continue;
      for (const Field& field : layer.fields) fields.push_back(std::string(field.name) + ": " + field.value);
    }
  }
  void on_connection_end(std::uint32_t, const TcpCounters&) override {}
};

// siw's control octets: as they stand, and as siw meant them.
TEST(TerminateLayer, BothReadingsOfSiwAreFields) {
  RdmapFields told;
  Dissector dissector({.fields = true}, told);
  testing::Wire wire(dissector);
  wire.open();
  // DDP, tagged buffer error, base or bounds; M and D.
  wire.send(testing::Wire::kServer,
            wire.fpdu(testing::Wire::kServer, testing::untagged(rdmap::Opcode::kTerminate, 1, [] {
                        Octets body = terminate(0x21, 0x03, 20);
                        body[1] = 0x02;
                        return body;
                      }())));
  dissector.finish();
  EXPECT_THAT(told.fields,
              ::testing::IsSupersetOf({"Layer: 2", "EType: 1", "M (DDP Segment Length): 0", "D (DDP header): 0",
                                       "Layer, as siw wrote it: 1", "EType, as siw wrote it: 2",
                                       "M, as siw wrote it: 1", "D, as siw wrote it: 1", "R, as siw wrote it: 0"}));
}

}  // namespace
}  // namespace weft::apps::dissect
