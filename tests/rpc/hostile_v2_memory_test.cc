// Memory of RPC-over-RDMA version 2 as wg07 over soft RNICs: messages that are too long, handles that the peer may not
// use, and handles as a peer sees them.
#include <gmock/gmock.h>

#include <set>

#include "tests/rpc/hostile_v2.h"

namespace weft::rpcrdma::testing {
namespace {

using HostileMemoryTest = HostileV2Test;

Segment segment_of(const verbs::Mr& mr, std::uint32_t len) {
  return {.handle = mr.rkey(), .length = len, .offset = reinterpret_cast<std::uintptr_t>(mr.addr())};
}

TEST_F(HostileMemoryTest, AMessageLongerThanTheReceivesEndsTheConnection) {
  RecordProperty("proves", "W2-4.2-2");
  open();
  for (const std::size_t len : {4096u, 4097u, 8000u}) {
    V2Peer& peer = open_wg07();
    const Octets header = wg07_octets(7, kNoEndOfCredits, wg07::CallInline{});
    const Octets args = pattern(len - header.size() - 40);
    const std::size_t before_it = file.num_calls;
    peer.send(wg07_octets(7, kNoEndOfCredits, wg07::CallInline{}, rpc_call(7, kNull, args)));
    if (len <= 4096) {
      run([&] { return peer.num_received<wg07::ReplyInline>() == 2; });
      continue;
    }
    run([&] { return peer.disconnected; });
    EXPECT_EQ(file.num_calls, before_it) << "no part of it is served";
    expect_served();
  }
  expect_all_is_back();
}

// The server writes where a Call says. Memory of another connection's protection domain is not reached so.
TEST_F(HostileMemoryTest, AHandleOfAnotherConnectionIsRefused) {
  RecordProperty("proves", "W2-11.1-2");
  open();
  file.data = pattern(20000);
  V2Peer& owner = open_wg07();
  Octets room(20000, 0xa5);
  const auto mr =
      std::move(*owner.pd->reg_mr(room.data(), room.size(), verbs::Access::kLocalWrite | verbs::Access::kRemoteWrite));
  const wg07::CallInline body{.lists = {.write_list = {{segment_of(*mr, 20000)}}}};
  V2Peer& other = open_wg07();
  send(other, 7, body, rpc_call(7, kRead, read_args(0, 20000)));
  run([&] { return other.disconnected; });
  EXPECT_EQ(room, Octets(20000, 0xa5));
  send(owner, 8, body, rpc_call(8, kRead, read_args(0, 20000)));
  run([&] { return owner.num_received<wg07::ReplyInline>() == 2; });
  EXPECT_EQ(room, file.data);
  EXPECT_FALSE(owner.disconnected);
}

TEST_F(HostileMemoryTest, TheCallThatEndedItsConnectionIsRefusedOnTheNextOne) {
  RecordProperty("proves", "W2-7.3-1");
  open();
  file.data = pattern(20000);
  const Segment bad{.handle = 0xa001, .length = 20000, .offset = 0x10000};
  const wg07::CallInline body{.lists = {.write_list = {{bad}}}};
  V2Peer& peer = open_wg07();
  send(peer, 7, body, rpc_call(7, kRead, read_args(0, 20000)));
  run([&] { return peer.disconnected; });
  const std::size_t num_calls = file.num_calls;
  V2Peer& again = open_wg07();
  send(again, 7, body, rpc_call(7, kRead, read_args(0, 20000)));
  run([&] { return again.num_received<wg07::Error>() == 1; });
  EXPECT_EQ(V2Peer::word(again.received.back(), 0), 7u);
  EXPECT_FALSE(again.disconnected);
  EXPECT_EQ(file.num_calls, num_calls + 1) << "the NULL Call of the new connection";
}

// The handles that the Calls of wg07 name.
class Handles final : public verbs::testing::PostObserver {
 public:
  Handles() { verbs::testing::observe_posts(*this); }
  ~Handles() override { verbs::testing::ignore_posts(*this); }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  void on_post(std::size_t /*end*/, const verbs::SendWr& wr) override {
    if (wr.opcode != verbs::WrOpcode::kSend || wr.sg_list.size() != 1) return;
    const auto* at = reinterpret_cast<const std::uint8_t*>(wr.sg_list[0].addr);
    v2_wg07::Header header;
    ConstBytes payload;
    if (parse_message({at, wr.sg_list[0].length}, header, payload) != v2::HeaderError::kNone) return;
    const auto* call = std::get_if<wg07::CallInline>(&header.body);
    if (call == nullptr) return;
    for (const SegmentArray& chunk : call->lists.write_list) {
      for (const Segment& segment : chunk) all.push_back(segment.handle);
    }
  }
  void on_connect(std::size_t /*end*/, ConstBytes /*private_data*/) override {}

  std::vector<std::uint32_t> all;
};

TEST_F(HostileMemoryTest, HandlesShowNoPatternAndComeOnce) {
  RecordProperty("proves", "W2-11.1.2-1");
  constexpr std::size_t kNum = 1000;
  open();
  file.data = pattern(20000);
  Client& client = *good.back();
  ASSERT_EQ(client.protocol(), Protocol::k2Wg07);
  const Handles handles;
  const Octets args = read_args(0, 20000);
  Octets room(20000);
  for (std::size_t i = 0; i < kNum; ++i) {
    bool done = false;
    ASSERT_TRUE(client.call(read_call(args, room), [&](const Reply&) { done = true; }).ok());
    run([&] { return done; });
  }
  ASSERT_EQ(handles.all.size(), kNum);
  std::set<std::uint32_t> different(handles.all.begin(), handles.all.end()), steps;
  for (std::size_t i = 1; i < kNum; ++i) steps.insert(handles.all[i] - handles.all[i - 1]);
  EXPECT_EQ(different.size(), kNum);
  EXPECT_GT(steps.size(), kNum * 9 / 10) << "no step from one to the next repeats";
}

}  // namespace
}  // namespace weft::rpcrdma::testing
