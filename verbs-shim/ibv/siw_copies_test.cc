#include "verbs-shim/ibv/siw_copies.h"

#include <gtest/gtest.h>

#include <array>

namespace weft::verbs::ibv {
namespace {

SendWr request(WrOpcode opcode, std::span<const Sge> sges, SendFlags flags = SendFlags::kNone) {
  SendWr wr;
  wr.opcode = opcode;
  wr.sg_list = sges;
  wr.send_flags = flags;
  return wr;
}

TEST(SiwCopies, WritesAndSendsOfAPageAreSentWithoutACopy) {
  const std::array<Sge, 1> page{{{.addr = 0, .length = 4096, .lkey = 1}}};
  for (const WrOpcode opcode : {WrOpcode::kRdmaWrite, WrOpcode::kSend, WrOpcode::kSendWithInv}) {
    EXPECT_TRUE(is_sent_without_copy(request(opcode, page)));
  }
  // Their octets come from the peer.
  for (const WrOpcode opcode : {WrOpcode::kRdmaRead, WrOpcode::kLocalInv, WrOpcode::kBindMw}) {
    EXPECT_FALSE(is_sent_without_copy(request(opcode, page)));
  }
  EXPECT_FALSE(is_sent_without_copy(request(WrOpcode::kSend, page, SendFlags::kInline)));
}

TEST(SiwCopies, TheWholeListCounts) {
  std::array<Sge, 2> list{{{.addr = 0, .length = 4000, .lkey = 1}, {.addr = 8192, .length = 95, .lkey = 1}}};
  EXPECT_FALSE(is_sent_without_copy(request(WrOpcode::kRdmaWrite, list)));
  list[1].length = 96;
  EXPECT_TRUE(is_sent_without_copy(request(WrOpcode::kRdmaWrite, list)));
  list[0].length = list[1].length = 0x80000000;  // no sum in 32 bits
  EXPECT_TRUE(is_sent_without_copy(request(WrOpcode::kRdmaWrite, list)));
  EXPECT_FALSE(is_sent_without_copy(request(WrOpcode::kRdmaWrite, {})));
}

TEST(SiwCopies, RoomIsTakenUntilItIsGivenBack) {
  HiddenRoom room;
  EXPECT_FALSE(room.take());
  room.add(2);
  EXPECT_TRUE(room.take());
  EXPECT_TRUE(room.take());
  EXPECT_FALSE(room.take());
  room.add(1);
  EXPECT_TRUE(room.take());
  EXPECT_FALSE(room.take());
}

}  // namespace
}  // namespace weft::verbs::ibv
