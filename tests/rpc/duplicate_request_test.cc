#include "tests/rpc/world.h"

// Calls that are sent again over another connection.
namespace weft::rpcrdma::testing {
namespace {

struct DuplicateRequestTest : World {
  void listen_and_keep(ServerConfig config = {}) {
    for (ServedProgram& program : programs) program.keeps_replies = true;
    listen(config);
  }
  std::unique_ptr<Client> open() {
    auto client = connect();
    clients = {client.get()};
    expect_null_works(*client);
    num_before = file.num_calls;
    return client;
  }
  // A WRITE with an XID of the caller's.
  void write(Client& client, std::uint32_t xid, const Octets& data) {
    args = write_args(data.size());
    CallSpec spec = write_call(args, data);
    spec.xid = xid;
    ASSERT_TRUE(client.call(spec, [this](const Reply& reply) { ends.push_back(reply.status); }).ok());
  }
  // A WRITE under way whose client goes.
  void write_and_go(const Octets& data) {
    auto client = open();
    file.hold = true;
    write(*client, 77, data);
    run_until([&] { return file.held.size() == 1; });
    client.reset();
    clients.clear();
    run_until([&] { return server->num_connections() == 0; });
    file.hold = false;
    ends.clear();
  }
  void run_until_ended(std::size_t num) {
    run_until([&] { return ends.size() == num; });
  }

  Octets args;
  const Octets data = pattern(20000);
  std::size_t num_before = 0;
  std::vector<CallStatus> ends;
};

TEST_F(DuplicateRequestTest, WhatRanIsAnsweredWithoutRunningAgain) {
  if (protocol_under_test() != Protocol::k1) RecordProperty("proves", "U2-3.3.2-1 U2-3.3.2-2");
  listen_and_keep();
  auto first = open();
  write(*first, 77, data);
  run_until_ended(1);
  EXPECT_EQ(file.num_calls, num_before + 1);
  first.reset();
  auto second = open();  // from another port
  file.data.clear();
  write(*second, 77, data);
  run_until_ended(2);
  EXPECT_EQ(ends[1], CallStatus::kSuccess);
  EXPECT_EQ(file.num_calls, num_before);
  EXPECT_TRUE(file.data.empty());
  // The same XID for something else is something else.
  const Octets other = pattern(20000, 2);
  write(*second, 77, other);
  run_until_ended(3);
  EXPECT_EQ(file.data, other);
}

TEST_F(DuplicateRequestTest, WhatRunsForALostConnectionIsAnsweredOnTheNewOne) {
  const Octets data = pattern(100);  // inline: with nothing to be pulled Calls are looked at in their order
  listen_and_keep();
  write_and_go(data);
  auto second = open();
  file.hold = true;
  write(*second, 77, data);
  bool answered = false;
  CallSpec null = null_call();
  ASSERT_TRUE(second->call(null, [&](const Reply&) { answered = true; }).ok());
  run_until([&] { return file.held.size() == 2; });  // the NULL behind it arrived, so it did
  EXPECT_EQ(file.held[1].procedure, kNull);
  file.answer_held();
  run_until([&] { return answered && ends.size() == 1; });
  EXPECT_EQ(ends[0], CallStatus::kSuccess);
  EXPECT_EQ(file.data, data);
}

TEST_F(DuplicateRequestTest, WhatEndedForNobodyIsKept) {
  listen_and_keep();
  write_and_go(data);
  file.answer_held();
  auto second = open();
  write(*second, 77, data);
  run_until_ended(1);
  EXPECT_EQ(ends[0], CallStatus::kSuccess);
  EXPECT_EQ(file.num_calls, num_before);
}

TEST_F(DuplicateRequestTest, ProgramsThatDoNotAskForItRunEverything) {
  programs.back().keeps_replies = true;  // another one
  listen();
  auto first = open();
  write(*first, 77, data);
  run_until_ended(1);
  first.reset();
  auto second = open();
  write(*second, 77, data);
  run_until_ended(2);
  EXPECT_EQ(file.num_calls, num_before + 1);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
