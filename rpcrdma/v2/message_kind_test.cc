// What each draft's header says of the direction of its message, for every word that it can hold.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "rpcrdma/message.h"
#include "rpcrdma/v2/prefix.h"
#include "rpcrdma/v2_cel05/header.h"
#include "rpcrdma/v2_cel05/receive.h"
#include "rpcrdma/v2_wg07/header.h"
#include "rpcrdma/v2_wg07/receive.h"

namespace weft::rpcrdma::v2 {
namespace {

using Octets = std::vector<std::uint8_t>;

Octets message(std::uint32_t vers, std::uint32_t type, std::uint32_t fifth_word) {
  Octets octets;
  xdr::XdrWriter out(octets);
  for (const std::uint32_t word : {7u, vers, 1u, type, fifth_word}) out.u32(word);
  return octets;
}

constexpr std::uint32_t kNoTypeFromHere = 14;

// The type alone tells.
TEST(MessageKindV2, OfWg07) {
  using v2_wg07::Htype;
  std::map<std::uint32_t, MessageKind> kinds;  // kCall unless something else is said
  for (const Htype type : {Htype::kError, Htype::kReplyExternal, Htype::kReplyMiddle, Htype::kReplyInline}) {
    kinds[static_cast<std::uint32_t>(type)] = MessageKind::kReply;
  }
  for (std::uint32_t type = 0; type <= kNoTypeFromHere; ++type) {
    const auto at = kinds.find(type);
    const MessageKind wanted = at != kinds.end() ? at->second : MessageKind::kCall;
    EXPECT_EQ(v2_wg07::message_kind(message(2, type, 0)), wanted) << type;
    const bool is_error = type == static_cast<std::uint32_t>(Htype::kError);
    for (const std::uint32_t vers : {0u, 1u, 3u}) {
      EXPECT_EQ(v2_wg07::message_kind(message(vers, type, 0)), is_error ? MessageKind::kReply : MessageKind::kUnclear)
          << type << " of version " << vers;
    }
  }
}

// Messages and options have a word for it.
TEST(MessageKindV2, OfCel05) {
  using v2_cel05::Direction;
  using v2_cel05::Proc;
  for (std::uint32_t type = 0; type <= kNoTypeFromHere; ++type) {
    const auto proc = static_cast<Proc>(type);
    const bool has_direction = proc == Proc::kMsg || proc == Proc::kNomsg || proc == Proc::kOptional;
    const bool is_error = proc == Proc::kError;
    const bool is_reply = is_error || proc == Proc::kResprop;
    for (const Direction direction : {Direction::kCall, Direction::kReply}) {
      const bool wants_reply = has_direction ? direction == Direction::kReply : is_reply;
      EXPECT_EQ(v2_cel05::message_kind(message(2, type, static_cast<std::uint32_t>(direction))),
                wants_reply ? MessageKind::kReply : MessageKind::kCall)
          << type;
      EXPECT_EQ(v2_cel05::message_kind(message(1, type, static_cast<std::uint32_t>(direction))),
                is_error ? MessageKind::kReply : MessageKind::kUnclear)
          << type << " of version 1";
    }
    Octets cut = message(2, type, 0);
    cut.resize(cut.size() - 1);
    if (has_direction) {
      EXPECT_EQ(v2_cel05::message_kind(cut), MessageKind::kUnclear) << type;
    }
  }
}

TEST(MessageKindV2, OfAMessageWithoutAWholePrefix) {
  for (std::size_t len = 0; len < 16; ++len) {
    Octets cut = message(2, 4, 0);
    cut.resize(len);
    EXPECT_EQ(v2_wg07::message_kind(cut), MessageKind::kUnclear) << len;
    EXPECT_EQ(v2_cel05::message_kind(cut), MessageKind::kUnclear) << len;
  }
}

}  // namespace
}  // namespace weft::rpcrdma::v2
