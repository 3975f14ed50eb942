#include "tests/rpc/hostile_client.h"

#include "rpcrdma/private_data.h"

namespace weft::rpcrdma::testing {
namespace {

TEST_F(HostileClientTest, PrivateDataIsAnsweredAndItsAbsenceMeans1024) {
  RecordProperty("proves", "R1-4.3.2-03 R1-4.3.2-04 R1-4.3.2-10 R1-4.3.3-01 R1-4.3.3-05 R1-4.3.3-07");
  listen();
  open_peer();
  EXPECT_EQ(to_hex(peer->server_private_data), "f6ab0e1801000303");
  // READ of 2000 octets, nothing offered: at 1024 it does not fit, so ERR_CHUNK and no long Send.
  file.data = pattern(4000);
  v1::Header header;
  header.xid = 9;
  Octets payload;
  xdr::XdrWriter out(payload);
  emit_call(out, {9, kTestProgram, kTestVersion, kRead, {}, {}});
  out.raw(read_args(0, 2000));
  peer->send(message(header, payload));
  run_until([this] { return peer->received.size() == 1; });
  EXPECT_EQ(peer->received[0].size(), v1::kErrChunkLen);
  // 900 fit.
  payload.resize(44);
  xdr::XdrWriter(payload).u32(900);
  peer->send(message(header, payload));
  run_until([this] { return peer->received.size() == 2; });
  EXPECT_EQ(peer->received[1].size(), 28u + 24 + 4 + 900);
}

TEST_F(HostileClientTest, AReplyInvalidatesWhereBothEndsSetR) {
  RecordProperty("proves", "R1-4.3.2-15 R1-4.3.2-16 R1-4.3.2-17");
  file.data = pattern(4000);
  for (const bool server_r : {false, true}) {
    for (const bool client_r : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "server " << server_r << " client " << client_r);
      listen({.remote_invalidation = server_r});
      const auto said = emit_private_data({client_r, 4096, 4096});
      open_peer({said.begin(), said.end()});
      EXPECT_EQ(parse_private_data(peer->server_private_data).remote_invalidate, server_r);
      Octets rooms[2] = {Octets(2000), Octets(2000)};
      std::unique_ptr<verbs::Mr> regions[2];
      std::unique_ptr<verbs::Mw> windows[2];
      std::uint32_t handles[2];
      file.hold = true;
      for (std::uint32_t i = 0; i < 2; ++i) {
        const auto access = verbs::Access::kLocalWrite | verbs::Access::kMwBind;
        regions[i] = std::move(*peer->pd->reg_mr(rooms[i].data(), rooms[i].size(), access));
        windows[i] = std::move(*peer->pd->alloc_mw());
        handles[i] = peer->bind(*windows[i], *regions[i]);
        v1::Header header;
        header.xid = 90 + i;
        header.credit = 8;
        header.lists.write_list = {{Segment{handles[i], 2000, reinterpret_cast<std::uintptr_t>(rooms[i].data())}}};
        Octets payload;
        xdr::XdrWriter out(payload);
        emit_call(out, {header.xid, kTestProgram, kTestVersion, kRead, {}, {}});
        out.raw(read_args(0, 2000));
        peer->send(message(header, payload));
      }
      run_until([this] { return file.held.size() == 2; });
      std::swap(file.held[0], file.held[1]);
      file.hold = false;
      file.answer_held();
      run_until([this] { return peer->received.size() == 2; });
      EXPECT_EQ(parse(peer->received[0]).xid, 91u);
      EXPECT_TRUE(std::equal(rooms[0].begin(), rooms[0].end(), file.data.begin()));
      const bool both = server_r && client_r;
      EXPECT_EQ(peer->invalidated, both ? std::vector({handles[1], handles[0]}) : std::vector<std::uint32_t>());
      also = nullptr;
      for (auto& window : windows) window.reset();
      for (auto& region : regions) region.reset();
      peer.reset();
      server.reset();
    }
  }
}

TEST_F(HostileClientTest, EveryMalformedVectorGetsItsAnswerAndOthersAreUnharmed) {
  RecordProperty("proves", "R1-5.5-02 R1-5.2.4-04 R1-10.1-01");
  listen({.min_credits = 32});  // as the vectors' answers grant
  auto good = connect();
  clients = {good.get()};
  open_peer(from_hex("f6ab0e1801000303"));
  for (const auto& vector : load_vectors('M')) {
    if (vector.to != "responder") continue;
    peer->received.clear();
    peer->send(vector.octets);
    peer->send(load_vector("V01").octets);
    const std::size_t answers = vector.expect == "DISCARD" ? 1 : 2;
    run_until([&] { return peer->received.size() == answers; });
    if (answers == 2) {
      EXPECT_EQ(to_hex(peer->received[0]), to_hex(vector.answer)) << vector.id;
    }
    EXPECT_EQ(to_hex(peer->received.back()).substr(0, 8), "11110001") << vector.id;
  }
  EXPECT_FALSE(peer->disconnected);
  expect_null_works(*good);
}

TEST_F(HostileClientTest, MoreCallsThanGrantedEndTheConnectionOnly) {
  RecordProperty("proves", "R1-4.3-01 R1-4.3.1-12");
  listen({.credits = 4});
  auto good = connect();
  clients = {good.get()};
  expect_null_works(*good);
  open_peer();
  file.hold = true;
  for (int i = 0; i < 10; ++i) peer->send(load_vector("V01").octets);
  run_until([this] { return peer->disconnected; });
  EXPECT_LE(file.held.size(), 6u);
  file.hold = false;
  file.answer_held();
  run_until([this] { return server->num_connections() == 1; });
  expect_null_works(*good);
}

TEST_F(HostileClientTest, TheCallThatEndedItsConnectionIsRefusedOnTheNextOne) {
  RecordProperty("proves", "R1-5.5.3-03");
  for (ServedProgram& program : programs) program.keeps_replies = true;
  listen({.min_credits = 32});
  open_peer();
  peer->send(load_vector("V03").octets);
  run_until_ended();
  open_peer();
  peer->send(load_vector("V03").octets);
  run_until([this] { return peer->received.size() == 1; });
  const v1::Header answer = parse(peer->received[0]);
  EXPECT_EQ(answer.proc, v1::Proc::kError);
  EXPECT_EQ(answer.err, v1::Err::kChunk);
  EXPECT_EQ(answer.xid, parse(load_vector("V03").octets).xid);
  EXPECT_FALSE(peer->disconnected);
  EXPECT_EQ(file.num_calls, 0u);
  // Another program of that host may have the same XID.
  Octets null = load_vector("V01").octets;
  for (const std::size_t at : {std::size_t{0}, v1::kMinHeader}) {
    std::copy_n(load_vector("V03").octets.begin(), 4, null.begin() + static_cast<std::ptrdiff_t>(at));
  }
  peer->send(null);
  run_until([this] { return peer->received.size() == 2; });
  EXPECT_EQ(parse(peer->received[1]).proc, v1::Proc::kMsg);
}

struct RefusedWriteTest : HostileClientTest {
  // The received answer to this XID.
  std::optional<v1::Header> answer_to(std::uint32_t xid) const {
    for (const Octets& octets : peer->received) {
      if (parse(octets).xid == xid) return parse(octets);
    }
    return {};
  }
  void expect_err_chunk(std::uint32_t xid) {
    run_until([&] { return answer_to(xid).has_value(); });
    EXPECT_EQ(answer_to(xid)->proc, v1::Proc::kError);
    EXPECT_EQ(answer_to(xid)->err, v1::Err::kChunk);
  }
  void expect_served(std::uint32_t xid) {
    run_until([&] { return answer_to(xid).has_value(); });
    EXPECT_EQ(answer_to(xid)->proc, v1::Proc::kMsg);
  }
};

TEST_F(RefusedWriteTest, TheCallIsRefusedOnTheNextConnection) {
  RecordProperty("proves", "R1-5.5.3-03");
  file.data = pattern(4000);
  listen();
  const Octets bad = read_to(7, 3000, Segment{0xa001, 3000, 0x10000});
  open_peer();
  peer->send(bad);
  run_until_ended();
  ASSERT_EQ(file.num_calls, 1u);
  open_peer();
  peer->send(bad);
  expect_err_chunk(7);
  EXPECT_EQ(file.num_calls, 1u);
  // Under another XID it may be tried again.
  peer->send(load_vector("V01").octets);
  expect_served(parse(load_vector("V01").octets).xid);
  EXPECT_FALSE(peer->disconnected);
}

// A neighbour at the same address that knows the XIDs of a client does not have its Calls refused.
TEST_F(RefusedWriteTest, AnotherCallWithItsXidIsServed) {
  file.data = pattern(4000);
  listen();
  open_peer();
  peer->send(read_to(7, 3000, Segment{0xa001, 3000, 0x10000}));
  run_until_ended();
  for (const std::uint32_t num_calls : {2u, 3u}) {
    open_peer();
    const std::uint32_t len = 1000 * num_calls;
    peer->send(read_to(7, 4000 - len, Segment{0xa001, len, 0x10000}));
    run_until_ended();
    EXPECT_EQ(file.num_calls, num_calls);
  }
}

// Beside it another Call names permitted memory with the same handle. It has no part in the end.
TEST_F(RefusedWriteTest, NoOtherCallOfTheConnectionIs) {
  file.data = pattern(4000);
  listen();
  open_peer();
  Octets room(9000);
  auto mr =
      std::move(*peer->pd->reg_mr(room.data(), room.size(), verbs::Access::kLocalWrite | verbs::Access::kRemoteWrite));
  const std::uint64_t at = reinterpret_cast<std::uintptr_t>(room.data());
  const std::uint32_t handle = mr->rkey();
  peer->send(read_to(6, 3000, Segment{handle, 3000, at}));
  expect_served(6);
  file.hold = true;
  peer->send(read_to(7, 3000, Segment{handle, 3000, at}));
  peer->send(read_to(8, 3000, Segment{handle, 3000, at + 6001}));  // one octet too many
  peer->send(read_to(9, 3000, Segment{handle, 3000, at + 3000}));
  run_until([this] { return file.held.size() == 3; });
  file.hold = false;
  file.answer_held();
  run_until_ended();
  mr.reset();
  peer.reset();
  open_peer();
  for (const std::uint32_t xid : {6u, 7u, 9u}) {
    peer->send(read_to(xid, 500, {}));
    expect_served(xid);
  }
  peer->send(read_to(8, 3000, Segment{handle, 3000, at + 6001}));
  expect_err_chunk(8);
}

// The first has had its answer in the memory that the second has no more.
TEST_F(RefusedWriteTest, OfCallsThatNameTheSameMemoryTheLastOneIs) {
  file.data = pattern(4000);
  listen();
  open_peer();
  Octets room(3000);
  auto mr =
      std::move(*peer->pd->reg_mr(room.data(), room.size(), verbs::Access::kLocalWrite | verbs::Access::kRemoteWrite));
  const Segment target{mr->rkey(), 3000, reinterpret_cast<std::uintptr_t>(room.data())};
  peer->send(read_to(6, 3000, target));
  expect_served(6);
  mr.reset();
  peer->send(read_to(7, 3000, target));
  run_until_ended();
  open_peer();
  peer->send(read_to(6, 500, {}));
  expect_served(6);
  peer->send(read_to(7, 3000, target));
  expect_err_chunk(7);
}

TEST_F(HostileClientTest, ASegmentThatWrapsIsErrChunk) {
  RecordProperty("proves", "R1-5.5-02");
  file.data = pattern(4000);
  listen();
  open_peer();
  peer->send(read_to(7, 3000, Segment{0xa001, 3000, ~std::uint64_t{0} - 2998}));
  run_until([this] { return peer->received.size() == 1; });
  EXPECT_EQ(peer->received[0].size(), v1::kErrChunkLen);
  EXPECT_EQ(parse(peer->received[0]).err, v1::Err::kChunk);
  peer->send(load_vector("V01").octets);
  run_until([this] { return peer->received.size() == 2; });
  EXPECT_FALSE(peer->disconnected);
  EXPECT_EQ(file.num_calls, 1u) << "the second one alone";
}

TEST_F(HostileClientTest, AFloodTakesOthersNothing) {
  RecordProperty("proves", "R1-4.3.1-12");
  listen({.credits = 4});
  auto good = connect();
  clients = {good.get()};
  expect_null_works(*good);
  const std::uint32_t promised = server->memory().promised;
  open_peer();
  file.hold = true;
  for (int i = 0; i < 16; ++i) peer->send(load_vector("V01").octets);
  bool done = false;
  ASSERT_TRUE(good->call(null_call(),
                         [&](const Reply& reply) {
                           EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
                           done = true;
                         })
                  .ok());
  run_until([this] { return peer->disconnected; });
  file.hold = false;
  file.answer_held();
  run_until([&] { return done; });
  run_until([&] { return server->num_connections() == 1 && server->memory().promised == promised; });
}

// More in one turn than there are Receives of all clients, and another's Call right behind it.
TEST_F(HostileClientTest, AFloodInOneTurnTakesOthersNothing) {
  RecordProperty("proves", "R1-4.3.1-12");
  if (!server_device->caps().srq_reserve) return;  // without a reserve it takes all receives
  listen({.credits = 4});
  open_peer();
  auto good = connect();
  clients = {good.get()};
  expect_null_works(*good);
  file.hold = true;
  for (int i = 0; i < 60; ++i) peer->send(load_vector("V01").octets);
  client_device->process(Clock::now());
  bool done = false;
  ASSERT_TRUE(good->call(null_call(),
                         [&](const Reply& reply) {
                           EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
                           done = true;
                         })
                  .ok());
  client_device->process(Clock::now());  // all is there before the server looks
  run_until([this] { return peer->disconnected; });
  file.hold = false;
  file.answer_held();
  run_until([&] { return done; });
  expect_null_works(*good);
}

TEST_F(HostileClientTest, StaleHandlesEndTheConnectionOnly) {
  RecordProperty("proves", "R1-5.5.3-01 R1-10.1.1-01");
  listen();
  auto good = connect();
  clients = {good.get()};
  expect_null_works(*good);
  open_peer();
  peer->send(load_vector("V03").octets);  // its handles mean nothing here
  run_until([this] { return peer->disconnected; });
  EXPECT_TRUE(file.data.empty());
  run_until([this] { return server->num_connections() == 1; });
  // A device that moves by itself has a moment to let go of them.
  run_until([this] { return server->buffers().in_use() == 0; });
  expect_null_works(*good);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
