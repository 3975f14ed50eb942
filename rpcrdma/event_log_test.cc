// The engines' log lines: each event once, with its reason, and no more lines than the budget has.
#include "rpcrdma/event_log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rpcrdma/testing/engines.h"
#include "rpcrdma/testing/log_lines.h"
#include "rpcrdma/testing/vectors.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct EventLogTest : ::testing::Test {
  void open_responder(ResponderEnd::Options options = {}) {
    options.log = &log;
    responder = std::make_unique<ResponderEnd>(memory, options);
  }
  void open_requester(RequesterEnd::Options options = {}) {
    options.log = &log;
    requester = std::make_unique<RequesterEnd>(memory, options);
  }
  void call(const Octets& octets) {
    ASSERT_TRUE(responder->qp.inject(octets));
    responder->pump();
  }
  // A Call of a program's procedure under XID 5, with these lists.
  void call(std::uint32_t program, std::uint32_t procedure, const Octets& args, const ChunkListsView& lists = {}) {
    v1::Header header;
    header.xid = 5;
    header.credit = 8;
    header.lists = lists;
    Octets payload;
    xdr::XdrWriter out(payload);
    emit_call(out, {5, program, kTestVersion, procedure, {}, {}});
    out.raw(args);
    call(message(header, payload));
  }
  void answer(ServedReply&& reply) {
    ASSERT_TRUE(responder->responder->reply(responder->service.calls.back().id, std::move(reply)));
    responder->pump();
  }

  LogLines lines;
  EventLog log{lines.log(), "peer"};
  FakeMemory memory;
  std::unique_ptr<ResponderEnd> responder;
  std::unique_ptr<RequesterEnd> requester;
};

TEST_F(EventLogTest, EveryMalformedCallHasItsLine) {
  int num = 0;
  for (const auto& vector : load_vectors('M')) {
    if (vector.to != "responder") continue;
    log = EventLog(lines.log(), "peer");
    lines.clear();
    open_responder();
    call(vector.octets);
    ASSERT_THAT(lines.warnings(), ElementsAre(StartsWith("peer 192.0.2.1:700: "))) << vector.id;
    const std::string line = lines.warnings().front();
    if (vector.expect == "DISCARD") {
      EXPECT_THAT(line, HasSubstr("a message was discarded: ")) << vector.id;
    } else {
      EXPECT_TRUE(line.find("ERR_VERS: ") != std::string::npos || line.find("ERR_CHUNK: ") != std::string::npos ||
                  line.find("GARBAGE_ARGS: ") != std::string::npos)
          << vector.id << ": " << line;
    }
    EXPECT_FALSE(line.ends_with(": ")) << vector.id << ": " << line;
    ++num;
  }
  EXPECT_GT(num, 10);
}

TEST_F(EventLogTest, AReplyThatFitsNothingHasItsLine) {
  open_responder();
  call(kTestProgram, kReaddir, {});
  ServedReply reply;
  reply.results = pattern(10000);
  answer(std::move(reply));
  EXPECT_THAT(lines.all(), ElementsAre(AllOf(HasSubstr("XID 0x5: ERR_CHUNK: "), HasSubstr("no Reply chunk"))));
  EXPECT_THAT(lines.warnings(), IsEmpty()) << "clients may ask again with more room";
}

TEST_F(EventLogTest, WhatRpcRefusesHasItsLine) {
  open_responder();
  call(4711, kNull, {});
  EXPECT_THAT(lines.all(), ElementsAre(HasSubstr("XID 0x5: refused: ")));
  EXPECT_THAT(lines.warnings(), IsEmpty());
  lines.clear();
  call(kTestProgram, kNull, {});
  ServedReply reply;
  reply.accept = ServedReply::Accept::kGarbageArgs;
  answer(std::move(reply));
  EXPECT_THAT(lines.all(), ElementsAre(HasSubstr("XID 0x5: GARBAGE_ARGS: ")));
  EXPECT_THAT(lines.warnings(), IsEmpty());
}

// The second of three segments is not the peer's own.
TEST_F(EventLogTest, ARefusedReadIsNamedOnce) {
  open_responder({.ord = 1});
  Octets data = pattern(64);
  const FakeMr mr(memory, {data.data(), data.size(), verbs::Access::kRemoteRead});
  const auto at = reinterpret_cast<std::uintptr_t>(data.data());
  const auto position = static_cast<std::uint32_t>(40 + write_position());
  ChunkListsView lists;
  lists.read_list = {
      {position, {mr.rkey(), 16, at}}, {position, {0xdead, 16, 0x77000}}, {position, {mr.rkey(), 32, at}}};
  call(kTestProgram, kWrite, write_args(64), lists);
  ASSERT_TRUE(responder->endpoint->refused_read());
  responder->responder->on_read_refused(*responder->endpoint->refused_read());
  responder->responder->on_read_refused(*responder->endpoint->refused_read());
  EXPECT_THAT(lines.all(), ElementsAre(EndsWith("an RDMA Read of handle 0xdead at offset 0x77000")));
  EXPECT_EQ(lines.warnings(), lines.all());
}

// A Responder remembers a bounded number of its Writes. It forgets the oldest.
TEST_F(EventLogTest, OfManyWritesTheLastOnesAreKnownWhenOneIsRefused) {
  constexpr std::uint32_t kLen = 16, kNumKnown = 256, kNumForgotten = 2;
  open_responder();
  Octets room(kLen * (kNumForgotten + kNumKnown));
  const FakeMr mr(memory, {room.data(), room.size(), verbs::Access::kLocalWrite | verbs::Access::kRemoteWrite});
  const auto at = reinterpret_cast<std::uintptr_t>(room.data());
  for (std::uint32_t i = 0; i < kNumForgotten + kNumKnown; ++i) {
    ChunkListsView lists;
    lists.write_list = {{{mr.rkey(), kLen, at + i * kLen}}};
    call(kTestProgram, kRead, {}, lists);
    ServedReply reply;
    reply.results = {0, 0, 0, 0};
    reply.add_item(responder->pool.take(kLen), kLen);
    answer(std::move(reply));
  }
  for (std::uint32_t i = 0; i < kNumForgotten; ++i) {
    responder->responder->on_write_refused(mr.rkey(), at + i * kLen);
  }
  EXPECT_THAT(lines.all(), IsEmpty());
  responder->responder->on_write_refused(mr.rkey(), at + kNumForgotten * kLen);
  EXPECT_THAT(lines.all(), ElementsAre(HasSubstr("an RDMA Write of handle")));
}

// The second Call stands in the first one's place, and no Buffer that the first one had is long enough for it.
TEST_F(EventLogTest, ShortMemoryIsToldOnceForEachCall) {
  open_responder();
  Octets data = pattern(100000);
  const FakeMr mr(memory, {data.data(), data.size(), verbs::Access::kRemoteRead});
  const auto offset = reinterpret_cast<std::uintptr_t>(data.data());
  int ms = 0;
  for (const std::uint32_t len : {64u, 100000u}) {
    lines.clear();
    memory.faults.and_all_later_ones = true;
    memory.faults.fail_registration_at = memory.faults.registrations + 1;
    ChunkListsView lists;
    lists.read_list = {{static_cast<std::uint32_t>(40 + write_position()), {mr.rkey(), len, offset}}};
    call(kTestProgram, kWrite, write_args(len), lists);
    for (int i = 0; i < 5; ++i) responder->responder->on_time(at(++ms));
    EXPECT_THAT(lines.warnings(), ElementsAre(HasSubstr("XID 0x5: waits: there is no memory"))) << len;
    memory.faults = {};
    responder->responder->on_time(at(++ms));
    responder->pump();
    answer({});
  }
}

struct NoSendBuffers : EventLogTest {
  void ask_without_memory() {
    pd.fail_registration = true;
    open_responder({.sends = &sends});
    responder->service.answer = [this](ServedCall& call) { responder->responder->reply(call.id, {}); };
    call(kTestProgram, kNull, {});
    for (int i = 0; i < 5; ++i) responder->responder->on_time(at(i));
    EXPECT_THAT(lines.warnings(), ElementsAre(HasSubstr("XID 0x5: its answer waits: there is no memory")));
  }

  FakePd pd{memory};
  MessagePool sends{pd, 4096 + Responder::kSendExtra, 16};
};

TEST_F(NoSendBuffers, AnAnswerLeavesWhenMemoryComesBack) {
  ask_without_memory();
  pd.fail_registration = false;
  ASSERT_TRUE(responder->responder->next_timeout());
  responder->responder->on_time(at(5));
  responder->pump();
  EXPECT_EQ(responder->qp.sent.size(), 1u);
  EXPECT_FALSE(responder->responder->next_timeout());
  for (const int ms : {60000, 120000}) responder->responder->on_time(at(ms));
  EXPECT_FALSE(responder->endpoint->failure());
}

TEST_F(NoSendBuffers, AnAnswerThatNoMemoryComesForEndsItsConnection) {
  ask_without_memory();
  const auto due = responder->responder->next_timeout();
  ASSERT_TRUE(due);
  responder->responder->on_time(*due - std::chrono::milliseconds(1));
  EXPECT_FALSE(responder->endpoint->failure());
  responder->responder->on_time(*due);
  EXPECT_EQ(responder->endpoint->failure(), "there was no memory for an answer for 30000 ms");
}

TEST_F(EventLogTest, DiscardedRepliesHaveTheirLines) {
  open_requester();
  const auto called = requester->requester->call(call_of(test_binding()), {});
  ASSERT_TRUE(called.ok());
  v1::Header header = parse(requester->qp.sent.at(0));
  const std::uint32_t xid = header.xid;
  header.lists.read_list = {{0, {1, 2, 3}}};
  ASSERT_TRUE(requester->qp.inject(message(header, rpc_reply(xid))));
  ASSERT_TRUE(requester->qp.inject(Octets(12)));
  header.xid = xid + 1;
  ASSERT_TRUE(requester->qp.inject(message(header, rpc_reply(xid + 1))));
  requester->pump();
  EXPECT_THAT(lines.all(), ElementsAre(HasSubstr("Read list present in a Reply"), HasSubstr("too short"),
                                       HasSubstr("no Call that waits has its XID")));
  EXPECT_EQ(lines.warnings().size(), 3u) << "no Call of this client had the XID";
  EXPECT_THAT(lines.all().front(), StartsWith(fmt::format("peer 192.0.2.2:2049: XID {:#x}: ", xid)));
  EXPECT_THAT(lines.all().back(), HasSubstr(fmt::format("XID {:#x}: ", xid + 1)));
  requester->requester->cancel(*called);
  header.xid = xid;
  ASSERT_TRUE(requester->qp.inject(message(header, rpc_reply(xid))));
  requester->pump();
  EXPECT_THAT(lines.all().back(), HasSubstr("no Call that waits has its XID"));
  EXPECT_EQ(lines.warnings().size(), 3u) << "one that comes late breaks no rule";
}

// The server's Call may have the XID of a Call of the client.
TEST_F(EventLogTest, ACallForAClientThatTakesNoneIsNamed) {
  open_requester();
  ASSERT_TRUE(requester->requester->call(call_of(test_binding()), {}).ok());
  const std::uint32_t own = parse(requester->qp.sent.at(0)).xid;
  for (const std::uint32_t xid : {77u, own}) {
    Octets payload;
    xdr::XdrWriter out(payload);
    emit_call(out, {xid, kTestProgram, kTestVersion, kNull, {}, {}});
    v1::Header inline_call, long_call;
    inline_call.xid = long_call.xid = xid;
    long_call.proc = v1::Proc::kNomsg;
    long_call.lists.read_list = {{0, {1, 60, 0}}};
    for (const Octets& octets : {message(inline_call, payload), message(long_call, {})}) {
      lines.clear();
      ASSERT_TRUE(requester->qp.inject(octets));
      requester->pump();
      EXPECT_THAT(lines.warnings(),
                  ElementsAre(fmt::format("peer 192.0.2.2:2049: XID {:#x}: a Call of the server was discarded: this "
                                          "client takes no Calls; one with ClientConfig::reverse_programs does",
                                          xid)));
      EXPECT_EQ(lines.all(), lines.warnings());
    }
  }
}

// A peer costs a bounded number of lines, however much it sends. One of them counts the withheld lines.
TEST_F(EventLogTest, AFloodMeetsTheBudget) {
  open_responder();
  const auto bad = load_vector("M01").octets;
  const auto flood = [&] {
    for (int i = 0; i < 1000; ++i) call(bad);
  };
  log.on_time(at(0));
  flood();
  EXPECT_EQ(lines.all().size(), 50u);
  lines.clear();
  log.on_time(at(999));
  flood();
  EXPECT_THAT(lines.all(), IsEmpty());
  log.on_time(at(1000));
  flood();
  ASSERT_EQ(lines.all().size(), 10u);
  EXPECT_THAT(lines.all()[0], EndsWith("(1950 lines before this one were withheld)"));
  EXPECT_THAT(lines.all()[1], ::testing::Not(HasSubstr("withheld")));
}

TEST_F(EventLogTest, WithoutASinkNothingIsWritten) {
  log = EventLog({}, "peer");
  open_responder();
  call(load_vector("M01").octets);
  verbs::Log warnings = lines.log();
  warnings.least = verbs::LogLevel::kWarn;
  log = EventLog(warnings, "peer");
  call(4711, kNull, {});
  EXPECT_THAT(lines.all(), IsEmpty());
}

// A peer could hide a warning behind Calls that are refused.
TEST_F(EventLogTest, LinesBelowTheLeastLevelTakeNoneOfTheBudget) {
  verbs::Log warnings = lines.log();
  warnings.least = verbs::LogLevel::kWarn;
  log = EventLog(warnings, "peer");
  open_responder();
  for (int i = 0; i < 1000; ++i) call(4711, kNull, {});
  call(load_vector("M01").octets);
  EXPECT_THAT(lines.all(), ElementsAre(::testing::Not(HasSubstr("withheld"))));
}

}  // namespace
}  // namespace weft::rpcrdma::testing
