// A server of cel05 that calls its client. The client has not said that it takes chunks in the reverse direction
// (draft-cel-nfsv4-rpcrdma-version-two-05 section 6.2.2).
#include <gmock/gmock.h>

#include "rpcrdma/testing/reverse.h"
#include "rpcrdma/v2_cel05/header.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
namespace cel05 = v2_cel05;

struct Cel05ReverseTest : ReverseTest {
  Cel05ReverseTest() { open_server({.chunks = true, .protocol = Protocol::k2Cel05}); }
  // The lists of the Call that was sent last, which must have its message inline.
  ChunkListsView sent_lists() {
    cel05::Header header;
    ConstBytes payload;
    EXPECT_EQ(parse_message(server->qp.sent.back(), header, payload), v2::HeaderError::kNone);
    EXPECT_TRUE(std::holds_alternative<cel05::Msg>(header.body));
    EXPECT_EQ(std::get<cel05::Msg>(header.body).direction, cel05::Direction::kCall);
    return std::get<cel05::Msg>(header.body).lists;
  }
};

TEST_F(Cel05ReverseTest, ACallThatFitsNoMessageWithoutChunksIsNotSent) {
  RecordProperty("proves", "R2-6.2-2 R2-6.2.2-3");
  const std::size_t most = kMaxReverseCall - 36 - 40;  // transport header and Call header
  const Octets longest(most), longer(most + 4);
  call_client(call_of(callback_binding(), 1, longer));
  run();
  EXPECT_THAT(reverse_ended, ElementsAre(CallStatus::kLocalError));
  EXPECT_THAT(server->qp.sent, IsEmpty());
  call_client(call_of(callback_binding(), 1, longest));
  run();
  ASSERT_THAT(server->qp.sent, SizeIs(1));
  EXPECT_EQ(server->qp.sent[0].size(), kMaxReverseCall);
}

TEST_F(Cel05ReverseTest, ItemsGoInlineAndNoChunkIsOfferedForTheReply) {
  RecordProperty("proves", "R2-6.2-2 R2-6.2.2-3");
  const Octets data = pattern(2000), args = write_args(data.size());
  CallSpec spec = call_of(test_binding(), kWrite, args);
  spec.items = ArgumentItem{write_position(), ConstBytes(data)};
  spec.max_results = 30000;
  call_client(spec);
  run();
  ASSERT_THAT(server->qp.sent, SizeIs(1));
  EXPECT_EQ(sent_lists(), ChunkListsView{});
  EXPECT_GT(server->qp.sent[0].size(), data.size());
  EXPECT_EQ(memory.num_remote(), 0u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
