// Memory that a Responder keeps while the peer or the queue pair still uses it, and its promises to a service.
#include "rpcrdma/testing/responder.h"

namespace weft::rpcrdma::testing {
namespace {

struct ResponderMemoryTest : ResponderTest {
  std::size_t num_sending() const {
    std::size_t num = 0;
    for (std::uint32_t send = 0; send < end->endpoint->config().num_sends; ++send) {
      num += end->responder->is_sending(SendSlot{send}) ? 1 : 0;
    }
    return num;
  }
};

// The fake verbs abort when octets that a queued request sends change, or their region goes.
TEST_F(ResponderMemoryTest, NothingIsTrimmedWhileASendIsOutstanding) {
  open();
  v1::Header header;
  header.lists.write_list = {{writable(9000)}};
  end->service.answer = [&](ServedCall& served) {
    end->responder->reply(served.id, item_reply(pattern(9000, static_cast<std::uint8_t>(served.xid)), {0, 0, 0, 0}));
  };
  end->qp.hold_completions = true;
  call(kRead, header);
  ASSERT_EQ(end->qp.sent.size(), 1u);
  ASSERT_EQ(num_sending(), 1u);
  end->responder->trim();
  EXPECT_EQ(num_sending(), 1u);
  EXPECT_GT(end->pool.in_use(), 0u) << "what the Write shows";
  // A Buffer that another would get now, and fill.
  Buffer other = end->pool.take(9000);
  ASSERT_TRUE(other);
  std::fill(other.octets().begin(), other.octets().end(), std::uint8_t{0xff});
  end->qp.release();
  end->qp.hold_completions = false;
  end->pump();
  other = Buffer{};
  EXPECT_EQ(num_sending(), 0u);
  EXPECT_EQ(end->budget.used(), 0u);
  EXPECT_EQ(end->pool.in_use(), 0u);
  EXPECT_EQ(rooms[0], pattern(9000, 1));
  // Now it may be trimmed, and serves on; ids of before name no Call.
  const ServedCallId before = end->service.calls.at(0).id;
  end->service.calls.clear();
  end->responder->trim();
  call(kRead, header);
  EXPECT_EQ(rooms[0], pattern(9000, 2));
  EXPECT_NE(end->service.calls.at(0).id, before);
  EXPECT_FALSE(end->responder->reply(before, {}));
}

TEST_F(ResponderMemoryTest, NothingIsTrimmedWhileACallWaitsForItsAnswer) {
  open();
  call(kNull);
  ASSERT_EQ(end->service.calls.size(), 1u);
  end->responder->trim();
  EXPECT_TRUE(end->responder->reply(end->service.calls[0].id, {}));
  end->pump();
  EXPECT_EQ(end->qp.sent.size(), 1u);
}

// The room is the largest of the ways for results: inline, Write chunks, Reply chunk.
TEST_F(ResponderMemoryTest, ResultRoomIsTheLargestWayThatTheCallOffers) {
  open({.reply_threshold = 4096, .max_item = 100000});
  const auto room_with = [&](const v1::Header& header) {
    std::size_t room = 0, used = 0;
    end->service.answer = [&](ServedCall& served) {
      room = served.result_room;
      used = end->budget.used();
      EXPECT_TRUE(end->pool.take(room)) << "as promised";
      end->responder->reply(served.id, {});
    };
    call(kRead, header);
    EXPECT_EQ(used, room) << "reserved before the service hears of the Call";
    EXPECT_EQ(end->budget.used(), 0u);
    return room;
  };
  v1::Header none, small, one, two, reply_chunk, both, huge;
  small.lists.write_list = {{writable(100)}};
  one.lists.write_list = {{writable(9000)}};
  two.lists.write_list = {{writable(9000), writable(1)}, {writable(500)}};
  reply_chunk.lists.reply_chunk = SegmentArray{writable(20000), writable(4)};
  both.lists.write_list = {{writable(30000)}};
  both.lists.reply_chunk = SegmentArray{writable(20000)};
  huge.lists.write_list = {{writable(200000)}};
  EXPECT_EQ(room_with(none), 4096u);
  EXPECT_EQ(room_with(small), 4096u);
  EXPECT_EQ(room_with(one), 9000u);
  EXPECT_EQ(room_with(two), 9501u) << "all Write chunks together";
  EXPECT_EQ(room_with(reply_chunk), 20004u);
  EXPECT_EQ(room_with(both), 30000u) << "results go one way or the other";
  EXPECT_EQ(room_with(huge), 100000u) << "nobody fills more than max_item";
}

// Whatever room its chunks offer.
TEST_F(ResponderMemoryTest, ACallHoldsNoMoreThanTheLongestResultsOfItsProcedure) {
  open({.reply_threshold = 4096, .max_item = 100000});
  for (ServedProgram& program : end->programs) {
    program.results_of = [](std::uint32_t procedure) {
      return ResultsOf{.longest = procedure == kRead ? 30000u : 100u};
    };
  }
  const auto used_by = [&](std::uint32_t procedure, const v1::Header& header) {
    std::size_t used = 0;
    end->service.answer = [&](ServedCall& served) {
      used = end->budget.used();
      EXPECT_EQ(served.result_room, used);
      end->responder->reply(served.id, {});
    };
    call(procedure, header);
    return used;
  };
  v1::Header item, reply_chunk, small;
  item.lists.write_list = {{writable(90000)}};
  reply_chunk.lists.reply_chunk = SegmentArray{writable(90000)};
  small.lists.reply_chunk = SegmentArray{writable(20000)};
  EXPECT_EQ(used_by(kRead, item), 30000u);
  EXPECT_EQ(used_by(kRead, reply_chunk), 30000u);
  EXPECT_EQ(used_by(kRead, small), 20000u);
  EXPECT_EQ(used_by(kNull, reply_chunk), 4096u) << "as much as fits a message";
}

}  // namespace
}  // namespace weft::rpcrdma::testing
