// The parts of an RPC message of 2-wg07, beside the bound over all connections.
#include "apps/dissect/message_parts.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::apps::dissect {
namespace {

constexpr std::uint32_t kXid = 7;
const std::vector<std::uint8_t> kPart = {0, 0, 0, kXid, 1, 2, 3, 4};

const TransportHeader kMiddle{{.xid = kXid, .is_middle = true}};
const TransportHeader kLast{{.xid = kXid, .has_payload = true}};

TEST(MessageParts, JoinsThem) {
  HeldMessages held;
  MessageParts parts(held);
  EXPECT_FALSE(parts.ends(kLast));
  parts.take(kMiddle, kPart);
  ASSERT_TRUE(parts.ends(kLast));
  const MessageParts::Joined joined = parts.join(kPart);
  EXPECT_EQ(joined.octets.size(), 2 * kPart.size());
  EXPECT_EQ(joined.len, 2 * kPart.size());
  EXPECT_EQ(held.now, 0u);
  EXPECT_FALSE(parts.ends(kLast));
}

TEST(MessageParts, AMessageIsCutAtItsBound) {
  HeldMessages held;
  MessageParts parts(held);
  std::vector<std::uint8_t> part(MessageParts::kMax * 2 / 3);
  part[3] = kXid;
  for (int i = 0; i < 3; ++i) {
    parts.take(kMiddle, part);
    EXPECT_LE(held.now, 2 * MessageParts::kMax);
  }
  const MessageParts::Joined joined = parts.join(kPart);
  EXPECT_EQ(joined.octets.size(), MessageParts::kMax);
  EXPECT_EQ(joined.len, 3 * part.size() + kPart.size());
  EXPECT_EQ(held.now, 0u);
}

// The last part is the last part even if the others found no room, or were empty: it is no message of its own.
TEST(MessageParts, ThatWereNotKeptStillHaveALastOne) {
  HeldMessages held{.now = HeldMessages::kMax};
  MessageParts parts(held);
  for (const ConstBytes first : {ConstBytes(kPart), ConstBytes()}) {
    parts.take(kMiddle, first);
    Frame frame;
    parts.judge({{.xid = kXid + 1, .has_payload = true}}, frame);
    EXPECT_EQ(frame.findings.size(), 1u) << "inside the parts";
    ASSERT_TRUE(parts.ends(kLast));
    const MessageParts::Joined joined = parts.join(kPart);
    EXPECT_EQ(joined.len, first.size() + kPart.size());
    EXPECT_FALSE(parts.ends(kLast));
    EXPECT_EQ(held.now, HeldMessages::kMax);
  }
}

}  // namespace
}  // namespace weft::apps::dissect
