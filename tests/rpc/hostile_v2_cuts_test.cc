// Calls of RPC-over-RDMA version 2 that are cut at every octet.
#include <gmock/gmock.h>

#include "tests/rpc/hostile_v2.h"

namespace weft::rpcrdma::testing {
namespace {

using CutTest = HostileV2Test;

Octets call_of_wg07() {
  wg07::CallInline body;
  body.lists.read_list = {{72, Segment{9, 400, 0}}};
  body.lists.write_list = {{Segment{7, 400, 0}}};
  body.lists.reply_chunk = SegmentArray{Segment{8, 400, 0}};
  return wg07_octets(5, kNoEndOfCredits, body, rpc_call(5, kWrite, write_args(400)));
}

Octets call_of_cel05() {
  cel05::Msg body;
  body.lists.read_list = {{72, Segment{9, 400, 0}}};
  body.lists.write_list = {{Segment{7, 400, 0}}};
  body.lists.reply_chunk = SegmentArray{Segment{8, 400, 0}};
  return cel05_octets(5, body, rpc_call(5, kWrite, write_args(400)));
}

// Each cut is answered or dropped.
TEST_F(CutTest, EveryCutOfACallOfWg07) {
  open();
  V2Peer& peer = open_wg07();
  const Octets whole = call_of_wg07();
  const std::size_t before_it = file.num_calls;
  for (std::size_t len = 1; len < whole.size(); ++len) {
    run([&] { return peer.num_credits() > 0 || peer.disconnected; });
    ASSERT_FALSE(peer.disconnected) << len;
    peer.send(part_of(whole, 0, len));
    turn();
  }
  settle();
  EXPECT_EQ(file.num_calls, before_it) << "no cut is a Call";
  const std::size_t num_replies = peer.num_received<wg07::ReplyInline>();  // GARBAGE_ARGS
  send(peer, 6, wg07::CallInline{}, rpc_call(6));
  run([&] { return peer.num_received<wg07::ReplyInline>() == num_replies + 1; }, kServed);
  expect_served();
  expect_all_is_back();
}

TEST_F(CutTest, EveryCutOfAClientsFirstCall) {
  open();
  const std::size_t before_it = file.num_calls;
  for (const Octets& whole : {call_of_wg07(), call_of_cel05()}) {
    for (std::size_t len = 1; len < whole.size(); ++len) {
      open_raw().send(part_of(whole, 0, len));
      settle();
      if (peers.size() == 40) peers.clear();
    }
    expect_served();
  }
  EXPECT_EQ(file.num_calls, before_it + 2 * 2 * good.size()) << "no cut is a Call";
  expect_all_is_back();
}

TEST_F(CutTest, EveryCutOfAPart) {
  open();
  V2Peer& peer = open_wg07();
  const Octets first = wg07_octets(5, kNoEndOfCredits, wg07::CallMiddle{400}, rpc_call(5));
  const std::size_t before_it = file.num_calls;
  for (std::size_t len = 1; len < first.size(); ++len) {
    run([&] { return peer.num_credits() > 0 || peer.disconnected; });
    ASSERT_FALSE(peer.disconnected) << len;
    peer.send(part_of(first, 0, len));
    turn();
    send(peer, 5, wg07::CallInline{}, Octets(3));
  }
  settle();
  EXPECT_EQ(file.num_calls, before_it) << "no cut is a Call";
  EXPECT_EQ(server->memory().calls, 0u);
  send(peer, 6, wg07::CallInline{}, rpc_call(6));
  run([&] { return peer.num_received<wg07::ReplyInline>() == 2; }, kServed);
  expect_served();
  expect_all_is_back();
}

TEST_F(CutTest, EveryCutOfACallOfCel05) {
  open();
  V2Peer& peer = open_cel05();
  const Octets whole = call_of_cel05();
  const std::size_t before_it = file.num_calls;
  for (std::size_t len = 1; len < whole.size(); ++len) {
    peer.send(part_of(whole, 0, len));
    settle();
    ASSERT_FALSE(peer.disconnected) << len;
  }
  EXPECT_EQ(file.num_calls, before_it) << "no cut is a Call";
  const std::size_t num = peer.received.size();
  peer.send(cel05_octets(6, cel05::Msg{}, rpc_call(6)));
  run([&] { return peer.received.size() == num + 1; }, kServed);
  expect_served();
  expect_all_is_back();
}

}  // namespace
}  // namespace weft::rpcrdma::testing
