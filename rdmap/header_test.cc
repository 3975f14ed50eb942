#include "rdmap/header.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "rdmap/atomic.h"

namespace weft::rdmap {
namespace {

TEST(Control, EveryOctetKeepsItsFieldsAndRsvIsIgnored) {
  for (unsigned octet = 0; octet < 256; ++octet) {
    const Control control = parse_control(static_cast<std::uint8_t>(octet));
    EXPECT_EQ(control.rv, octet / 64);
    EXPECT_EQ(control.opcode, octet % 16);
    EXPECT_EQ(emit_control(control), octet & 0xcf);
  }
  EXPECT_EQ(control_octet(Opcode::kWrite), 0x40);
  EXPECT_EQ(control_octet(Opcode::kReadRequest), 0x41);
  EXPECT_EQ(control_octet(Opcode::kReadResponse), 0x42);
  EXPECT_EQ(control_octet(Opcode::kSend), 0x43);
  EXPECT_EQ(control_octet(Opcode::kSendInvalidate), 0x44);
  EXPECT_EQ(control_octet(Opcode::kSendSe), 0x45);
  EXPECT_EQ(control_octet(Opcode::kSendSeInvalidate), 0x46);
  EXPECT_EQ(control_octet(Opcode::kTerminate), 0x47);
  EXPECT_EQ(control_octet(Opcode::kImmediate), 0x48);
  EXPECT_EQ(control_octet(Opcode::kImmediateSe), 0x49);
  EXPECT_EQ(control_octet(Opcode::kAtomicRequest), 0x4a);
  EXPECT_EQ(control_octet(Opcode::kAtomicResponse), 0x4b);
}

TEST(Control, NumbersOfTheExtensionsAreTheRegisteredOnes) {
  RecordProperty("proves", "EXT-10-01");
  EXPECT_EQ(static_cast<int>(Opcode::kImmediate), 8);
  EXPECT_EQ(static_cast<int>(Opcode::kImmediateSe), 9);
  EXPECT_EQ(static_cast<int>(Opcode::kAtomicRequest), 10);
  EXPECT_EQ(static_cast<int>(Opcode::kAtomicResponse), 11);
  EXPECT_EQ(kNumOpcodes7306, 12);
  EXPECT_EQ(kSendQn, 0u);
  EXPECT_EQ(kReadRequestQn, 1u);
  EXPECT_EQ(kTerminateQn, 2u);
  EXPECT_EQ(kAtomicResponseQn, 3u);
  EXPECT_EQ(static_cast<int>(AtomicOp::kFetchAdd), 0);
  EXPECT_EQ(static_cast<int>(AtomicOp::kCmpSwap), 2);
  for (std::uint8_t code = 0; code < 16; ++code) EXPECT_EQ(is_atomic_op(code), code == 0 || code == 2);
}

TEST(Control, OpcodesBelongToTheirModelAndQueue) {
  for (int i = 0; i < kNumOpcodes7306; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    EXPECT_EQ(is_tagged(opcode), i == 0 || i == 2);
    EXPECT_EQ(is_send(opcode), i >= 3 && i <= 6);
    EXPECT_EQ(is_immediate(opcode), i == 8 || i == 9);
    EXPECT_EQ(is_solicited(opcode), i == 5 || i == 6 || i == 9);
    EXPECT_EQ(invalidates(opcode), i == 4 || i == 6);
    EXPECT_EQ(queue_of(opcode), i == 1 || i == 10 ? 1u : i == 7 ? 2u : i == 11 ? 3u : 0u);
  }
}

TEST(ReadRequestHeader, EveryFieldHasItsOctets) {
  std::vector<std::uint8_t> octets(28);
  std::iota(octets.begin(), octets.end(), std::uint8_t{0x10});
  const auto header = parse_read_request_header(octets);
  ASSERT_TRUE(header);
  EXPECT_EQ(*header, (ReadRequestHeader{ddp::Stag{0x10111213}, 0x1415161718191a1b, 0x1c1d1e1f, ddp::Stag{0x20212223},
                                        0x2425262728292a2b}));
  const auto emitted = emit_read_request_header(*header);
  EXPECT_TRUE(std::equal(octets.begin(), octets.end(), emitted.begin()));
}

TEST(ReadRequestHeader, TakesItsOwnLengthOnly) {
  for (std::size_t len = 0; len <= 64; ++len)
    EXPECT_EQ(parse_read_request_header(std::vector<std::uint8_t>(len)).has_value(), len == 28) << len;
}

}  // namespace
}  // namespace weft::rdmap
