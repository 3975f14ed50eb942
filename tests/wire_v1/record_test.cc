#include "tests/wire_v1/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "rpcrdma/testing/fake_verbs.h"
#include "tests/vectors/vector_file.h"
#include "verbs-shim/api/testing/post_tap.h"

namespace weft::wire_v1 {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Bytes = std::vector<std::uint8_t>;

Bytes vector_named(const std::string& name) {
  for (const vectors::Record& record : vectors::read_vector_file("tests/vectors/rpcrdma1-vectors.txt")) {
    if (record.name == name) return vectors::from_hex(record.find("hex").value());
  }
  ADD_FAILURE() << name;
  return {};
}

void put(Bytes& octets, std::size_t at, std::uint32_t word) {
  for (std::size_t i = 0; i < 4; ++i) octets.at(at + i) = static_cast<std::uint8_t>(word >> (24 - 8 * i));
}

struct WireV1Record : testing::Test {
  std::string send(const Bytes& octets) { return record.line_of({}, octets, xids, fault); }
  // The text of the message at an end that has posted nothing yet.
  static std::string alone(const Bytes& octets) {
    WireV1Record other;
    return other.send(octets);
  }
  std::string rdma(verbs::WrOpcode opcode, std::uint32_t handle, std::uint64_t offset, const Bytes& octets) {
    verbs::SendWr wr;
    wr.opcode = opcode;
    wr.rkey = handle;
    wr.remote_addr = offset;
    return record.line_of(wr, octets, xids, fault);
  }
  void TestBody() override {}

  EndRecord record;
  Xids xids;
  std::string fault;
};

// A Call with two read segments: XID at 0 and 76, of the segments the handles at 24 and 48, the offsets behind them.
constexpr std::size_t kXid = 0, kRpcXid = 76, kHandle1 = 24, kOffset1 = 32, kHandle2 = 48, kOffset2 = 56;

TEST_F(WireV1Record, SaysWhatACallHolds) {
  EXPECT_THAT(
      send(vector_named("V03")),
      HasSubstr("Send Call xid 1 credits 32 read @96 h1+0:4096 read @96 h2+0:999 header 76 payload 96 octets "));
  EXPECT_EQ(fault, "");
}

TEST_F(WireV1Record, IsTheSameWhateverTheXidsHandlesAndAddresses) {
  const Bytes octets = vector_named("V03");
  Bytes other = octets;
  put(other, kXid, 0xabad1dea);
  put(other, kRpcXid, 0xabad1dea);
  put(other, kHandle1, 0x12345678);
  put(other, kOffset1, 0x5555);
  put(other, kHandle2, 0x9abcdef0);
  put(other, kOffset2 + 4, 0x1000);
  EXPECT_EQ(alone(other), alone(octets));
}

TEST_F(WireV1Record, IsAnotherForEveryOtherOctet) {
  const Bytes octets = vector_named("V03");
  const std::string line = alone(octets);
  for (std::size_t at = 0; at < octets.size(); ++at) {
    const std::size_t word = at / 4 * 4;
    const bool is_random = word == kXid || word == kRpcXid || word == kHandle1 || word == kHandle2 ||
                           word - kOffset1 < 8 || word - kOffset2 < 8;
    Bytes other = octets;
    other[at] ^= 1;
    if (!is_random) {
      EXPECT_NE(alone(other), line) << at;
    }
  }
}

TEST_F(WireV1Record, OneHandleAndXidIsOneNumber) {
  Bytes octets = vector_named("V03");
  const std::string first = send(octets);
  EXPECT_EQ(send(octets), first);
  put(octets, kHandle2, 0xa001);  // the first segment's handle, 4100 octets further
  put(octets, kOffset2 + 4, 0x10000);
  put(octets, kOffset2, 0);
  put(octets, kXid, 5);
  put(octets, kRpcXid, 5);
  EXPECT_THAT(send(octets), HasSubstr("xid 2"));
  EXPECT_THAT(send(octets), Not(HasSubstr("h2")));
}

TEST_F(WireV1Record, SaysWhatIsReadAndWritten) {
  EXPECT_EQ(rdma(verbs::WrOpcode::kRdmaRead, 7, 4096, Bytes(100)), "Read h1+0:100");
  EXPECT_EQ(rdma(verbs::WrOpcode::kRdmaRead, 7, 4196, Bytes(60)), "Read h1+100:60");
  EXPECT_EQ(rdma(verbs::WrOpcode::kRdmaRead, 7, 4000, Bytes(60)), "Read h1-96:60");
  EXPECT_THAT(rdma(verbs::WrOpcode::kRdmaWrite, 9, 0, {1, 2, 3}), HasSubstr("Write h2+0:3 octets "));
  EXPECT_NE(rdma(verbs::WrOpcode::kRdmaWrite, 9, 0, {1, 2, 3}), rdma(verbs::WrOpcode::kRdmaWrite, 9, 0, {1, 2, 4}));
}

TEST_F(WireV1Record, AWrittenReplyBeginsWithAnyXid) {
  send(vector_named("V11"));  // XID 1111000b
  const Bytes reply = {0x11, 0x11, 0, 0x0b, 0, 0, 0, 1};
  const std::string line = rdma(verbs::WrOpcode::kRdmaWrite, 9, 0, reply);
  EXPECT_THAT(line, HasSubstr("of an RPC message"));
  xids = {77};
  EXPECT_EQ(rdma(verbs::WrOpcode::kRdmaWrite, 9, 0, {0, 0, 0, 77, 0, 0, 0, 1}), line);
}

TEST_F(WireV1Record, SaysWhatIsWrong) {
  send(vector_named("M23"));
  EXPECT_THAT(fault, HasSubstr("another XID"));
}

// The posts that a test hears of from the tap.
struct Heard : verbs::testing::PostObserver {
  Heard() { verbs::testing::observe_posts(*this); }
  ~Heard() override { verbs::testing::ignore_posts(*this); }
  void on_post(std::size_t end, const verbs::SendWr& wr) override {
    ends.push_back(end);
    ids.push_back(wr.wr_id);
  }
  void on_connect(std::size_t, std::span<const std::uint8_t>) override {}
  std::vector<std::size_t> ends;
  std::vector<std::uint64_t> ids;
};

TEST(PostTap, HearsWhatEachEndPosts) {
  rpcrdma::testing::FakeMemory memory;
  rpcrdma::testing::FakeCq cq;
  rpcrdma::testing::FakeQp one(memory, cq), two(memory, cq);
  const Heard heard;
  for (std::uint64_t id = 0; id < 3; ++id) {
    ASSERT_TRUE((id == 1 ? two : one).post_send({.wr_id = id}).ok());
  }
  one.fail_post_send = true;
  ASSERT_FALSE(one.post_send({.wr_id = 4}).ok());
  EXPECT_THAT(heard.ids, ElementsAre(0, 1, 2));
  EXPECT_EQ(heard.ends[0], heard.ends[2]);
  EXPECT_LT(heard.ends[0], heard.ends[1]);
}

}  // namespace
}  // namespace weft::wire_v1
