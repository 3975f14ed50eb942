// Clients over TCP that take all they can from others. Beside each of them a client that behaves well is served.
#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <list>

#include "apps/onc_tcp/record.h"
#include "spdlog/spdlog.h"
#include "tests/gateway/to_rdma_world.h"
#include "verbs-shim/api/log_budget.h"
#include "verbs-shim/soft/testing/failing_calls.h"

namespace weft::gateway::testing {
namespace {

using boost::asio::ip::tcp;

constexpr std::size_t kMib = 1 << 20;

// Several READs in one record stream.
Octets as_stream(const std::vector<Octets>& messages) {
  Octets out;
  for (const Octets& message : messages) onc_tcp::emit_record(message, out);
  return out;
}

struct HostileClients : ToRdmaTest {
  ~HostileClients() override { raw.clear(); }
  void SetUp() override {
    frozen = std::chrono::steady_clock::now();
    ToRdmaTest::SetUp();
    answer = [this](const rpcrdma::ServedCall& call) {
      ++num_served;
      rpcrdma::ServedReply reply;
      if (call.procedure == kWrite) reply.results = write_results(static_cast<std::uint32_t>(kMib));
      if (call.procedure == kRead) {
        reply.results = read_results(Octets(kMib));
        reply.results.resize(20);
        reply.add_item(server->buffers().take(kMib), kMib);
      }
      return reply;
    };
  }
  // A client without a Stream: it sends the test's octets and reads nothing. rcvbuf: SO_RCVBUF in octets; 0: the
  // system's default.
  tcp::socket& connect_raw(const char* from = "127.0.0.1", int rcvbuf = 0) {
    tcp::socket& socket = raw.emplace_back(io, tcp::v4());
    if (rcvbuf != 0) socket.set_option(boost::asio::socket_base::receive_buffer_size(rcvbuf));
    socket.bind(tcp::endpoint(boost::asio::ip::make_address(from), 0));
    socket.connect(gateway->local_endpoint());
    socket.non_blocking(true);
    return socket;
  }
  // Sends as much of it as finds a way while everything else moves on.
  std::size_t put(tcp::socket& socket, const Octets& octets) {
    std::size_t done = 0;
    for (int idle = 0; done < octets.size() && idle < 3;) {
      boost::system::error_code error;
      const std::size_t n = socket.write_some(boost::asio::buffer(octets.data() + done, octets.size() - done), error);
      if (error && error != boost::asio::error::would_block) break;
      idle = n > 0 ? 0 : idle + 1;
      done += n;
      settle();
    }
    return done;
  }
  static bool is_gone(tcp::socket& socket) {
    std::uint8_t octet = 0;
    boost::system::error_code error;
    while (socket.read_some(boost::asio::buffer(&octet, 1), error) > 0) {
    }
    return error != boost::asio::error::would_block;
  }
  // Time goes by for the gateway.
  void pass(std::chrono::milliseconds time) {
    for (; time.count() > 0; time -= ToRdma::kCheckEvery) {
      skew += ToRdma::kCheckEvery;
      settle();
    }
  }
  // A client that comes now and does a little and a lot, while no time goes by for the gateway.
  void expect_served(const char* from = "127.0.0.1") {
    TcpEnd& client = connect(from);
    client.send(nfs_call(0x900, kNull, {}));
    client.send(nfs_call(0x901, kWrite, write_args(Octets(kMib))));
    client.send(nfs_call(0x902, kRead, read_args(kMib)));
    EXPECT_TRUE(run([&] { return client.records.size() == 3 || client.ended; }));
    EXPECT_FALSE(client.ended) << *client.ended;
    EXPECT_EQ(client.records.size(), 3u);
    clients.pop_back();
    settle();
  }

  std::list<tcp::socket> raw;
  std::size_t num_served = 0;
};

// From the longest record down: records that took room for their announced length would take all that an address may
// have.
TEST_F(HostileClients, AnnouncingLongRecordsTakesNothingFromOthers) {
  for (std::uint32_t len = 4 * kMib; len >= (64 << 10); len /= 2) {
    const Octets mark = {0x80, static_cast<std::uint8_t>(len >> 16), static_cast<std::uint8_t>(len >> 8), 0, 0};
    for (int i = 0; i < 15; ++i) put(connect_raw(), mark);
  }
  expect_served();
  expect_served("127.0.0.2");
}

TEST_F(HostileClients, AShortageOfDescriptorsCostsFewLines) {
  config.accept_pause = std::chrono::milliseconds(0);
  start_gateway();
  settle();
  ::testing::internal::CaptureStdout();  // where spdlog writes unless it is told otherwise
  const verbs::testing::FailCalls none_left(verbs::testing::FailingCall::kAccept, EMFILE, 1000);
  expect_served();
  EXPECT_EQ(none_left.num_failed(), 1000);
  spdlog::default_logger()->flush();
  const std::string lines = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(std::ranges::count(lines, '\n'), verbs::LogBudget::kBurst);
  EXPECT_NE(lines.find("gateway: cannot accept a connection: Too many open files"), std::string::npos) << lines;
}

// Each has sent so much that it holds room for the largest record, and goes on no further.
TEST_F(HostileClients, HoldingPartsOfRecordsTakesNothingFromOthersForLong) {
  Octets part = {0x80, 0x3f, 0xff, 0xff};
  part.resize(kMib + (100 << 10));
  for (int i = 0; i < 40; ++i) put(connect_raw(i % 2 == 0 ? "127.0.0.1" : "127.0.0.3"), part);
  expect_served("127.0.0.2");
  // Of the same address: slow clients give way.
  pass(std::chrono::seconds(5));
  expect_served();
}

// READs of a client, and it reads nothing.
Octets many_reads() {
  std::vector<Octets> calls_of_one;
  for (std::uint32_t xid = 1; xid <= 200; ++xid) {
    calls_of_one.push_back(ToRdmaTest::nfs_call(xid, kRead, read_args(kMib)));
  }
  return as_stream(calls_of_one);
}

TEST_F(HostileClients, AskingWithoutReadingIsBoundedAndEnds) {
  const Octets stream = many_reads();
  for (int i = 0; i < 3; ++i) put(connect_raw(), stream);
  // The Calls in the sockets, the Replies that wait to be sent, and the Calls under way when the bound was reached.
  EXPECT_LT(num_served, 150u);
  expect_served();
  pass(std::chrono::seconds(35));
  for (tcp::socket& socket : raw) EXPECT_TRUE(is_gone(socket));
  EXPECT_LT(num_served, 200u);
  expect_served();
}

// Each of the two bounds holds without the other: of a Stream, and of the room for Replies.
TEST_F(HostileClients, AskingWithoutReadingIsBoundedByTheStreamAlone) {
  config.max_buffered = config.max_buffered_per_address = std::size_t{16} << 30;
  start_gateway();
  put(connect_raw(), many_reads());
  // The Calls in the sockets, the Replies that wait to be sent, and the Calls under way when the bound was reached.
  EXPECT_LT(num_served, 120u);
}

TEST_F(HostileClients, AskingWithoutReadingIsBoundedByTheRoomAlone) {
  config.stream.high_water = std::size_t{16} << 30;
  start_gateway();
  put(connect_raw(), many_reads());
  EXPECT_LT(num_served, 60u);
  expect_served();
}

// Listings that wait for the server's disk.
TEST_F(HostileClients, ListingsThatTheServerHoldsUpTakeNoRoomOfReads) {
  const auto answer_reads = answer;
  answer = nullptr;  // the Calls stay
  std::vector<TcpEnd*> listing;
  for (int i = 0; i < 10; ++i) {
    listing.push_back(&connect());
    for (std::uint32_t xid = 1; xid <= 8; ++xid)
      listing.back()->send(nfs_call(xid, kReaddirplus, readdirplus_args(kMib)));
  }
  settle();
  EXPECT_EQ(calls.size(), 2u) << "of 4 MiB of an address";
  answer = answer_reads;
  expect_served();
  for (const TcpEnd* one : listing) EXPECT_FALSE(one->ended);
}

struct SlowClients : HostileClients {
  // Its socket takes little beside what it reads.
  tcp::socket& connect_slow(const char* from, const Octets& asks) {
    tcp::socket& socket = connect_raw(from, 128 << 10);
    put(socket, asks);
    return socket;
  }
  void read_from_all(std::size_t len) {
    std::vector<std::uint8_t> into(len);
    for (tcp::socket& socket : raw) {
      boost::system::error_code error;
      socket.read_some(boost::asio::buffer(into), error);
    }
  }
};

// Each reads 1 MB a second and holds all that it may. A newcomer of the same address waits less than a second.
TEST_F(SlowClients, ReadingLittleKeepsMemoryFromOthersForNoLongerThanItEarns) {
  for (int i = 0; i < 12; ++i) connect_slow("127.0.0.1", many_reads());
  TcpEnd& client = connect();
  client.send(nfs_call(0x902, kRead, read_args(kMib)));
  for (std::chrono::milliseconds time(0); time < std::chrono::seconds(1); time += ToRdma::kCheckEvery) {
    read_from_all(200 << 10);
    pass(ToRdma::kCheckEvery);
  }
  EXPECT_FALSE(client.ended);
  EXPECT_EQ(client.records.size(), 1u);
}

// A client waits for room that it holds itself. Neither it nor a slow client of an address with less gives way.
TEST_F(SlowClients, WaitingForOnesOwnMemoryEndsNobody) {
  config.stream.high_water = std::size_t{16} << 30;
  start_gateway();
  tcp::socket& waits = connect_slow("127.0.0.1", many_reads());
  tcp::socket& holds_less =
      connect_slow("127.0.0.3", as_stream({nfs_call(1, kRead, read_args(kMib)), nfs_call(2, kRead, read_args(kMib))}));
  for (int i = 0; i < 15; ++i) {
    read_from_all(10 << 10);
    pass(ToRdma::kCheckEvery);
  }
  EXPECT_FALSE(is_gone(waits));
  EXPECT_FALSE(is_gone(holds_less));
}

// Calls of a program that the gateway refuses itself.
Octets many_refused_calls() {
  std::vector<Octets> calls_of_one;
  for (std::uint32_t xid = 1; xid <= 10000; ++xid) calls_of_one.push_back(call_message(xid, 200000, 1, 0, {}));
  return as_stream(calls_of_one);
}

TEST_F(HostileClients, AnswersOfTheGatewaysOwnTakeRoomToo) {
  config.stream.high_water = std::size_t{16} << 30;
  start_gateway();
  const Octets stream = many_refused_calls();
  tcp::socket& socket = connect_raw();
  int num = 0;
  while (num < 300 && put(socket, stream) == stream.size()) ++num;
  EXPECT_LT(num, 100) << "it may have all the memory that there is";
  expect_served();
  pass(std::chrono::seconds(35));
  EXPECT_TRUE(is_gone(socket));
  expect_served();
}

TEST_F(HostileClients, AskingForWhatIsRefusedHereWithoutReadingIsBoundedToo) {
  const Octets stream = many_refused_calls();
  tcp::socket& socket = connect_raw();
  std::size_t sent = 0;
  for (std::size_t n = stream.size(); n == stream.size() && sent < (256u << 20); sent += n) n = put(socket, stream);
  EXPECT_LT(sent, 256u << 20) << "it is read on and on";
  EXPECT_EQ(num_served, 0u);
  expect_served();
}

TEST_F(HostileClients, WhatSaysNothingMakesNoConnectionToTheServer) {
  for (int i = 0; i < 20; ++i) connect_raw();
  put(connect_raw(), {0x80, 0, 0, 4, 1, 2});
  put(connect_raw(), as_stream({call_message(1, 200000, 1, 0, {})}));
  settle();
  EXPECT_EQ(server->num_connections(), 0u);
  expect_served();
}

// A promise to each client that cannot be kept is none: the gateway does not start.
TEST_F(HostileClients, SoManyPlacesThatNoneHasRoomForACallAreRefused) {
  config.max_connections = config.max_connections_per_address = 16000;
  config.max_buffered = 64 << 20;
  const auto made = ToRdma::start(config, *gateway_device, io);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("16000 connections need 250 MiB"), std::string::npos) << made.status();
  config.max_buffered = 250 << 20;
  start_gateway();
  expect_served();
}

// What rests costs no turns: the clients that work are looked at in each, the others a few at a time.
TEST_F(HostileClients, ClientsThatRestCostATurnNoMoreThanAFew) {
  constexpr int kResting = 100;
  for (int i = 0; i < kResting; ++i) EXPECT_FALSE(ask(connect(), nfs_call(1, kNull, {})).empty());
  settle();
  // The server goes, and each of them hears of it.
  server.reset();
  EXPECT_TRUE(run([&] { return std::ranges::all_of(clients, [](auto& one) { return one->ended.has_value(); }); }));
}

// These tests say which client gives way. The tests of WaitingPlaces say when.
struct FewPlaces : HostileClients {
  static constexpr std::size_t kPlaces = 8, kPlacesPerAddress = 6;
  void SetUp() override {
    config.max_connections = kPlaces;
    config.max_connections_per_address = kPlacesPerAddress;
    config.max_waiting = 0;
    HostileClients::SetUp();
  }
  // A client that has been answered once.
  TcpEnd& connect_useful(const char* from) {
    TcpEnd& client = connect(from);
    EXPECT_FALSE(ask(client, nfs_call(1, kNull, {})).empty());
    return client;
  }
};

TEST_F(FewPlaces, ClientsThatSayNothingGiveTheirPlaces) {
  for (std::size_t i = 0; i < 3 * kPlaces; ++i) connect_raw(i % 2 == 0 ? "127.0.0.1" : "127.0.0.2");
  settle();
  expect_served();
  expect_served("127.0.0.2");
  expect_served("127.0.0.3");
}

TEST_F(FewPlaces, ClientsThatAreIdleGiveTheirPlacesTheLongestIdleFirst) {
  TcpEnd& first = connect_useful("127.0.0.1");
  pass(std::chrono::seconds(1));
  TcpEnd& second = connect_useful("127.0.0.1");
  for (std::size_t i = 2; i < kPlacesPerAddress; ++i) connect_useful("127.0.0.1");
  pass(std::chrono::seconds(2));
  expect_served();
  EXPECT_TRUE(first.ended);
  EXPECT_FALSE(second.ended);
}

TEST_F(FewPlaces, AClientThatWasNeverAnsweredGivesItsPlaceBeforeOneThatWas) {
  TcpEnd& useful = connect_useful("127.0.0.1");
  pass(std::chrono::seconds(2));
  for (std::size_t i = 1; i < kPlacesPerAddress; ++i) connect_raw("127.0.0.1");
  settle();
  expect_served();
  EXPECT_FALSE(useful.ended);
}

// Nobody is idle: the one whose last answer is oldest gives way.
TEST_F(FewPlaces, ClientsThatWereBusyAMomentAgoGiveWayOneForEachNewcomer) {
  for (std::size_t i = 0; i < kPlacesPerAddress; ++i) {
    connect_useful("127.0.0.1");
    pass(std::chrono::milliseconds(1));
  }
  expect_served();
  for (std::size_t i = 0; i < kPlacesPerAddress; ++i) EXPECT_EQ(clients[i]->ended.has_value(), i == 0) << i;
}

TEST_F(FewPlaces, AnAddressThatHasAllOfItsOwnTakesNoneOfAnothers) {
  tcp::socket& other = connect_raw("127.0.0.2");
  for (std::size_t i = 0; i < kPlacesPerAddress; ++i) {
    connect_useful("127.0.0.1");
    pass(std::chrono::seconds(2));
  }
  expect_served();
  EXPECT_FALSE(is_gone(other));
  EXPECT_TRUE(clients[0]->ended);
}

// A client whose first Call is under way has a second in which those that say nothing go before it.
TEST_F(FewPlaces, AClientThatWaitsForItsFirstAnswerKeepsItsPlaceLongerThanOneThatSaysNothing) {
  const std::size_t num = calls.size();
  const auto answer_before = std::exchange(answer, nullptr);
  TcpEnd& waits = connect("127.0.0.1");
  waits.send(nfs_call(1, kNull, {}));
  ASSERT_TRUE(run([&] { return calls.size() == num + 1; }));
  answer = answer_before;
  pass(ToRdma::kCheckEvery);
  for (std::size_t i = 1; i < kPlacesPerAddress; ++i) connect_raw("127.0.0.1");
  settle();
  expect_served();
  EXPECT_FALSE(waits.ended);
  connect_raw("127.0.0.1");
  pass(std::chrono::seconds(1));
  expect_served();
  EXPECT_TRUE(waits.ended) << "it came before the others";
}

// A client that connects again and again takes no place from one that waits for its first answer.
TEST_F(FewPlaces, AClientThatWaitsForItsFirstAnswerKeepsItsPlaceBesideAddressesWithMore) {
  for (std::size_t i = 0; i < kPlaces - 1; ++i) connect_useful(i < 5 ? "127.0.0.1" : "127.0.0.2");
  const std::size_t num = calls.size();
  const auto answer_before = std::exchange(answer, nullptr);
  TcpEnd& waits = connect("127.0.0.3");
  waits.send(nfs_call(1, kNull, {}));
  ASSERT_TRUE(run([&] { return calls.size() == num + 1; }));
  answer = answer_before;
  for (int i = 0; i < 10; ++i) connect_useful(i % 2 == 0 ? "127.0.0.1" : "127.0.0.4");
  EXPECT_FALSE(waits.ended);
  // After a second without an answer it gives way to any newcomer.
  pass(std::chrono::seconds(1));
  connect_useful("127.0.0.1");
  EXPECT_TRUE(waits.ended);
}

// A client whose first Call was answered, and whose second one the server keeps.
struct BusyPlaces : FewPlaces {
  TcpEnd& connect_busy(const char* from, std::uint32_t procedure = kNull) {
    TcpEnd& client = connect_useful(from);
    const std::size_t num = calls.size();
    const auto answer_before = std::exchange(answer, nullptr);
    client.send(nfs_call(2, procedure, procedure == kNull ? Octets{} : remove_args()));
    EXPECT_TRUE(run([&] { return calls.size() == num + 1; }));
    answer = answer_before;
    return client;
  }
  static Octets remove_args() {
    Octets args;
    rpcrdma::xdr::XdrWriter out(args);
    out.opaque(Octets{1, 2, 3, 4});
    out.string("name");
    return args;
  }
  static std::size_t num_ended(const std::vector<TcpEnd*>& some) {
    return static_cast<std::size_t>(std::ranges::count_if(some, [](TcpEnd* one) { return one->ended.has_value(); }));
  }
  static constexpr std::uint32_t kRemove = 12;
};

// Two addresses hold all places, and each of their clients has a Call under way.
TEST_F(BusyPlaces, TwoAddressesWithCallsUnderWayLockNobodyOut) {
  std::vector<TcpEnd*> many, few;
  for (std::size_t i = 0; i < kPlacesPerAddress; ++i) many.push_back(&connect_busy("127.0.0.1"));
  for (std::size_t i = kPlacesPerAddress; i < kPlaces; ++i) few.push_back(&connect_busy("127.0.0.2"));
  pass(std::chrono::seconds(2));
  // Of the newcomers each has an address of its own, and all stay.
  std::vector<TcpEnd*> newcomers;
  for (const char* from : {"127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6"}) {
    newcomers.push_back(&connect_useful(from));
  }
  EXPECT_EQ(num_ended(newcomers), 0u);
  EXPECT_EQ(num_ended(many), 4u) << "the address that holds most";
  EXPECT_EQ(num_ended(few), 0u);
  // Those that had to go come again, and take nothing from addresses that hold less.
  for (int i = 0; i < 20; ++i) connect_busy("127.0.0.1");
  EXPECT_EQ(num_ended(newcomers), 0u);
  EXPECT_EQ(num_ended(few), 0u);
}

TEST_F(BusyPlaces, ANewcomerIsServedThoughItsOwnAddressHoldsAllWithCallsUnderWay) {
  for (std::size_t i = 0; i < kPlacesPerAddress; ++i) connect_busy("127.0.0.1");
  for (int i = 0; i < 20; ++i) {
    expect_served();
    connect_busy("127.0.0.1");
  }
}

struct WaitingPlaces : BusyPlaces {
  void SetUp() override {
    BusyPlaces::SetUp();
    config.max_waiting = ToRdmaConfig{}.max_waiting;
    start_gateway();
  }
};

// Six clients of one address last for two seconds on average: after two ends, one each third of a second.
TEST_F(WaitingPlaces, NewcomersOfAFullAddressWaitUntilItsClientsHadTheirTime) {
  std::vector<TcpEnd*> busy;
  for (std::size_t i = 0; i < kPlacesPerAddress + 2; ++i) busy.push_back(&connect_busy("127.0.0.1"));
  EXPECT_EQ(num_ended(busy), 2u);
  TcpEnd& waits = connect("127.0.0.1");
  waits.send(nfs_call(1, kNull, {}));
  settle();
  EXPECT_EQ(num_ended(busy), 2u);
  EXPECT_TRUE(waits.records.empty());
  // Another address has a place at once.
  EXPECT_FALSE(ask(connect("127.0.0.2"), nfs_call(1, kNull, {})).empty());
  skew += std::chrono::milliseconds(166);
  settle();
  EXPECT_TRUE(waits.records.empty());
  skew += std::chrono::milliseconds(1);
  EXPECT_TRUE(run([&] { return !waits.records.empty(); }));
  EXPECT_EQ(num_ended(busy), 3u);
}

TEST_F(WaitingPlaces, AClientThatLeavesWhileItWaitsEndsNobody) {
  std::vector<TcpEnd*> busy;
  for (std::size_t i = 0; i < kPlacesPerAddress + 2; ++i) busy.push_back(&connect_busy("127.0.0.1"));
  tcp::socket& waits = connect_raw("127.0.0.1");
  settle();
  waits.close();
  pass(std::chrono::seconds(1));
  EXPECT_EQ(num_ended(busy), 2u);
}

TEST_F(BusyPlaces, ClientsWhoseCallsMustNotRunTwiceGiveWayLast) {
  std::vector<TcpEnd*> once, again;
  for (std::size_t i = 0; i < kPlacesPerAddress; ++i) {
    (i < 3 ? once : again).push_back(&connect_busy("127.0.0.1", i < 3 ? kRemove : kNull));
    pass(std::chrono::milliseconds(1));
  }
  for (int i = 0; i < 3; ++i) {
    TcpEnd& newcomer = connect_useful("127.0.0.1");
    EXPECT_FALSE(newcomer.ended);
    newcomer.send(nfs_call(3, kNull, {}));
  }
  EXPECT_EQ(num_ended(again), 3u);
  EXPECT_EQ(num_ended(once), 0u);
}

// As a client sends it again that has lost its connection.
TEST_F(BusyPlaces, AFirstCallThatMustNotRunTwiceGivesWayLast) {
  const auto answer_before = std::exchange(answer, nullptr);
  TcpEnd& once = connect("127.0.0.1");
  once.send(nfs_call(1, kRemove, remove_args()));
  ASSERT_TRUE(run([&] { return calls.size() == 1; }));
  answer = answer_before;
  std::vector<TcpEnd*> again;
  for (std::size_t i = 1; i < 2 * kPlacesPerAddress - 1; ++i) {
    pass(std::chrono::milliseconds(1));
    TcpEnd& client = connect_busy("127.0.0.1");
    if (i < kPlacesPerAddress) again.push_back(&client);
  }
  EXPECT_FALSE(once.ended);
  EXPECT_EQ(num_ended(again), kPlacesPerAddress - 1);
}

TEST_F(FewPlaces, OneAddressLeavesPlacesToOthers) {
  for (std::size_t i = 0; i < 3 * kPlaces; ++i) connect_raw("127.0.0.1");
  settle();
  const auto is_here = [](tcp::socket& socket) { return !is_gone(socket); };
  EXPECT_EQ(std::ranges::count_if(raw, is_here), static_cast<std::ptrdiff_t>(kPlacesPerAddress));
  expect_served("127.0.0.2");
  EXPECT_EQ(std::ranges::count_if(raw, is_here), static_cast<std::ptrdiff_t>(kPlacesPerAddress));
}

// Whichever address has the most gives the place.
TEST_F(FewPlaces, TheAddressWithTheMostGivesWayToOthers) {
  std::vector<TcpEnd*> few, many;
  for (std::size_t i = 0; i < 2; ++i) few.push_back(&connect_useful("127.0.0.2"));
  for (std::size_t i = 0; i < kPlacesPerAddress; ++i) many.push_back(&connect_useful("127.0.0.1"));
  pass(std::chrono::seconds(2));
  expect_served("127.0.0.3");
  EXPECT_EQ(std::ranges::count_if(few, [](TcpEnd* one) { return one->ended.has_value(); }), 0);
  EXPECT_EQ(std::ranges::count_if(many, [](TcpEnd* one) { return one->ended.has_value(); }), 1);
}

}  // namespace
}  // namespace weft::gateway::testing
