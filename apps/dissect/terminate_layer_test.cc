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

// RFC 6581: IRD or RTR that do not suit; RFC 5040: a catastrophic error of the whole RNIC.
TEST(TerminateLayer, FailuresWithoutAFaultOfTheOtherSideAreNoViolation) {
  const auto body = [](std::uint8_t layer_etype, std::uint8_t code) { return Octets{layer_etype, code, 0, 0}; };
  EXPECT_THAT(findings_of(body(0x20, 0x06)), UnorderedElementsAre());
  EXPECT_THAT(findings_of(body(0x20, 0x07)), UnorderedElementsAre());
  EXPECT_THAT(findings_of(body(0x02, 0x08)), UnorderedElementsAre());
  EXPECT_THAT(findings_of(body(0x02, 0x07)), UnorderedElementsAre("RDMAP-4.8-08"));
}

TEST(TerminateLayer, TheOrderOfSiwIsNamed) {
  constexpr std::uint8_t kSwappedOwnOfDdp = 0x01, kSwappedMd = 0x03;
  EXPECT_THAT(findings_of(terminate(kSwappedOwnOfDdp, kSwappedMd, 20)), UnorderedElementsAre("RDMAP-4.8-02"));
}

// Fields: the fields of RDMAP as "NAME: VALUE".
struct Fields final : Listener {
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
  Fields told;
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
