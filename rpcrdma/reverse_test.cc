#include "rpcrdma/reverse.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "rpcrdma/testing/engines.h"
#include "rpcrdma/testing/vectors.h"

namespace weft::rpcrdma::testing {
namespace {

constexpr std::uint32_t kCallback = 0x40000000;  // the program of V21

verbs::TimePoint at(int ms) {
  return verbs::TimePoint{} + std::chrono::seconds(1000) + std::chrono::milliseconds(ms);
}

const Binding& callback_binding() {
  static const Binding binding{kCallback, 1, nullptr, nullptr, nullptr};
  return binding;
}

// The program and version of V23.
const Binding& nfs4_binding() {
  static const Binding binding{100003, 4, nullptr, nullptr, nullptr};
  return binding;
}

struct Options {
  std::uint32_t credits = 32;
  std::uint32_t min_credits = 0;
  std::uint32_t reverse_credits = 16;
  Thresholds thresholds{4096, 4096};  // as this end sees them
  bool chunks = false;
  std::uint32_t ord = 4;
};

Channel::Config shape_of(const Options& options, std::uint32_t serial) {
  Channel::Config shape;
  shape.serial = serial;
  shape.num_receives = shape.num_sends = options.credits + 2;
  shape.receive_len = options.thresholds.receive;
  shape.send_len = options.thresholds.send + Responder::kSendExtra;
  return shape;
}

// The client: it calls, and serves two programs in the reverse direction.
struct ClientEnd {
  ClientEnd(FakeMemory& memory, const Options& options)
      : pd(memory), qp(memory, cq), programs{{&callback_binding(), &service}, {&test_binding(), &service}} {
    Channel::Config shape = shape_of(options, 1);
    ReverseResponder::widen(shape, options.reverse_credits);
    channel = std::move(*Channel::create(pd, shape));
    Requester::Config calls;
    calls.credits = options.credits;
    requester = std::make_unique<Requester>(pd, *channel, calls, 0x11110000);
    reverse = std::make_unique<ReverseResponder>(
        pd, *channel, *requester,
        ReverseResponder::Config{programs, options.reverse_credits, options.chunks, "the server"});
    EXPECT_TRUE(channel->attach(qp).ok());
    reverse->start(options.thresholds, 4);
    requester->start(options.thresholds.send, options.thresholds.receive);
    service.answer = [this](ServedCall& call) { reverse->reply(call.id, {}); };
  }
  ~ClientEnd() { service.calls.clear(); }
  std::size_t pump() {
    std::size_t num = 0;
    verbs::Wc wc;
    for (; cq.poll(std::span(&wc, 1)) == 1; ++num) {
      if (const auto work = channel->on_completion(wc)) reverse->on_work(*work, wc.byte_len);
    }
    return num;
  }

  FakePd pd;
  FakeCq cq;
  FakeQp qp;
  TestService service;
  std::vector<Program> programs;
  std::unique_ptr<Channel> channel;
  std::unique_ptr<Requester> requester;
  std::unique_ptr<ReverseResponder> reverse;
};

// The server: it serves, and calls its client.
struct ServerEnd {
  ServerEnd(FakeMemory& memory, const Options& options)
      : pd(memory),
        qp(memory, cq),
        programs{{&test_binding(), &service}, {&nfs4_binding(), &service}},
        pool(pd, 8 << 20, 64 << 20),
        budget{64 << 20, 0} {
    Channel::Config shape = shape_of(options, 7);
    ReverseRequester::widen(shape, options.reverse_credits);
    channel = std::move(*Channel::create(pd, shape));
    Responder::Config calls;
    const std::uint32_t least = options.min_credits != 0 ? options.min_credits : options.credits;
    calls.credits = {.min = least, .initial = least, .max = options.credits};
    responder = std::make_unique<Responder>(pd, *channel, pool, budget, programs, calls);
    responder->start(options.thresholds.send, options.ord);
    reverse = std::make_unique<ReverseRequester>(
        pd, *channel, *responder,
        ReverseRequester::Config{options.reverse_credits, options.chunks, std::chrono::milliseconds(1000)});
    EXPECT_TRUE(channel->attach(qp).ok());
    reverse->start(options.thresholds);
    service.answer = [this](ServedCall& call) { responder->reply(call.id, {}); };
  }
  ~ServerEnd() { service.calls.clear(); }
  std::size_t pump() {
    std::size_t num = 0;
    verbs::Wc wc;
    for (; cq.poll(std::span(&wc, 1)) == 1; ++num) {
      if (const auto work = channel->on_completion(wc)) reverse->on_work(*work, wc.byte_len);
    }
    return num;
  }

  FakePd pd;
  FakeCq cq;
  FakeQp qp;
  TestService service;
  std::vector<Program> programs;
  BufferPool pool;
  Budget budget;
  std::unique_ptr<Channel> channel;
  std::unique_ptr<Responder> responder;
  std::unique_ptr<ReverseRequester> reverse;
};

CallSpec call_of(const Binding& binding, std::uint32_t procedure = 0, ConstBytes args = {}) {
  CallSpec spec;
  spec.program = binding.program;
  spec.version = binding.version;
  spec.procedure = procedure;
  spec.binding = &binding;
  spec.args = args;
  return spec;
}

struct ReverseTest : ::testing::Test {
  void open(Options server_options = {}, Options client_options = {}) {
    server = std::make_unique<ServerEnd>(memory, server_options);
    client = std::make_unique<ClientEnd>(memory, client_options);
    FakeQp::connect(server->qp, client->qp);
    server->qp.keep_sent = client->qp.keep_sent = true;
  }
  // One end alone: what it sends is kept.
  void open_client(Options options = {}) { client = std::make_unique<ClientEnd>(memory, options); }
  void open_server(Options options = {}) { server = std::make_unique<ServerEnd>(memory, options); }
  void run(int ms = 0) {
    while ((client ? client->pump() : 0) + (server ? server->pump() : 0) != 0) {
    }
    if (client) {
      client->requester->on_time(at(ms));
      client->reverse->on_time(at(ms));
    }
    if (server) {
      server->responder->on_time(at(ms));
      server->reverse->calls().on_time(at(ms));
    }
  }
  ReplyCallback keep(std::vector<CallStatus>& ended) {
    return [&ended](const Reply& reply) { ended.push_back(reply.status); };
  }
  CallHandle call_client(const CallSpec& spec) {
    auto called = server->reverse->calls().call(spec, keep(reverse_ended));
    EXPECT_TRUE(called.ok()) << called.error().message;
    return *called;
  }
  void call_server(const CallSpec& spec) {
    auto called = client->requester->call(spec, keep(forward_ended));
    EXPECT_TRUE(called.ok()) << called.error().message;
  }
  static std::vector<CallStatus> successes(std::size_t num) {
    return std::vector<CallStatus>(num, CallStatus::kSuccess);
  }

  std::vector<CallStatus> forward_ended, reverse_ended;
  FakeMemory memory;
  std::unique_ptr<ServerEnd> server;
  std::unique_ptr<ClientEnd> client;
};

TEST_F(ReverseTest, TheClientAnswersACallOfItsServer) {
  RecordProperty("proves", "R1-7.1.2-01 R1-7.3.5-01 R1-7.3.5-02 R1-7.2.1-03");
  open_client();
  ASSERT_TRUE(client->qp.inject(load_vector("V21").octets));
  run();
  ASSERT_EQ(client->service.calls.size(), 1u);
  EXPECT_EQ(client->service.calls[0].program, kCallback);
  EXPECT_EQ(client->service.calls[0].xid, 0x22220001u);
  ASSERT_EQ(client->qp.sent.size(), 1u);
  EXPECT_EQ(to_hex(client->qp.sent[0]), to_hex(load_vector("V22").octets));
}

TEST_F(ReverseTest, TheServerCallsAndServesUnderOneXid) {
  RecordProperty("proves", "R1-7.1.2-01 R1-7.1.4-01 R1-7.1.4-02 R1-7.3.4-01 R1-7.3.4-02 R1-7.2.1-03");
  open_server({.reverse_credits = 2});
  EXPECT_EQ(server->qp.num_sends, 0u);
  CallSpec spec = call_of(callback_binding());
  spec.xid = 0x22220001;
  call_client(spec);
  ASSERT_EQ(server->qp.sent.size(), 1u);
  EXPECT_EQ(to_hex(server->qp.sent[0]), to_hex(load_vector("V21").octets));

  server->service.answer = nullptr;
  ASSERT_TRUE(server->qp.inject(load_vector("V23").octets));
  run();
  ASSERT_EQ(server->service.calls.size(), 1u);
  EXPECT_EQ(server->service.calls[0].xid, 0x22220001u);
  EXPECT_TRUE(reverse_ended.empty());

  ASSERT_TRUE(server->qp.inject(load_vector("V22").octets));
  run();
  EXPECT_EQ(reverse_ended, successes(1));
  ASSERT_TRUE(server->responder->reply(server->service.calls[0].id, {}));
  ASSERT_EQ(server->qp.sent.size(), 2u);
  EXPECT_EQ(parse(server->qp.sent[1]).xid, 0x22220001u);
  EXPECT_EQ(server->qp.sent[1].at(35), 1);  // REPLY
}

TEST_F(ReverseTest, WithoutSupportForChunksTheClientAnswersErrChunk) {
  RecordProperty("proves", "R1-7.3.4-04");
  open_client();
  ASSERT_TRUE(client->qp.inject(load_vector("V24").octets));
  run();
  ASSERT_EQ(client->qp.sent.size(), 1u);
  EXPECT_EQ(to_hex(client->qp.sent[0]), to_hex(load_vector("V25").octets));
  for (const char* id : {"V03", "V07", "V11"}) {
    ASSERT_TRUE(client->qp.inject(load_vector(id).octets));
    run();
    EXPECT_EQ(parse(client->qp.sent.back()).err, v1::Err::kChunk) << id;
  }
  EXPECT_TRUE(client->service.calls.empty());
  EXPECT_FALSE(client->channel->failure());
  ASSERT_TRUE(client->qp.inject(load_vector("V21").octets));
  run();
  EXPECT_EQ(client->service.calls.size(), 1u);
}

TEST_F(ReverseTest, TheServerHearsErrChunkAsAnEndOfItsCall) {
  open_server();
  CallSpec spec = call_of(callback_binding());
  spec.xid = 0x22220004;
  call_client(spec);
  ASSERT_TRUE(server->qp.inject(load_vector("V25").octets));
  run();
  EXPECT_EQ(reverse_ended, std::vector{CallStatus::kErrChunk});
  EXPECT_FALSE(server->channel->failure());
}

// Both directions at once under the same XIDs, more Calls than either has credits.
TEST_F(ReverseTest, BothDirectionsAtOnceUnderEqualXids) {
  RecordProperty("proves", "R1-7.1.4-01 R1-7.1.4-02 R1-7.2.1-02 R1-7.2.1-03");
  open({.reverse_credits = 2}, {.reverse_credits = 2});
  constexpr std::uint32_t kNum = 100;
  for (std::uint32_t i = 0; i < kNum; ++i) {
    CallSpec forward = call_of(test_binding()), reverse = call_of(callback_binding());
    forward.xid = reverse.xid = 0x500 + i;
    call_server(forward);
    call_client(reverse);
  }
  for (int i = 0; i < 3; ++i) run();
  EXPECT_EQ(forward_ended, successes(kNum));
  EXPECT_EQ(reverse_ended, successes(kNum));
  EXPECT_EQ(server->service.calls.size(), kNum);
  EXPECT_EQ(client->service.calls.size(), kNum);
  EXPECT_EQ(client->requester->window(), 32u);
  EXPECT_EQ(server->reverse->calls().window(), 2u);
  for (const Octets& message : server->qp.sent) EXPECT_NE(parse(message).credit, 0u);
  for (const Octets& message : client->qp.sent) EXPECT_NE(parse(message).credit, 0u);
  EXPECT_FALSE(server->channel->failure());
  EXPECT_FALSE(client->channel->failure());
}

// A credit word of one direction never moves the other's window.
TEST_F(ReverseTest, ACallsCreditsAreARequestAndNoGrant) {
  RecordProperty("proves", "R1-7.2.1-04");
  open({.credits = 16, .reverse_credits = 2}, {.credits = 32, .reverse_credits = 2});
  call_server(call_of(test_binding()));
  run();
  EXPECT_EQ(client->requester->window(), 16u);
  call_client(call_of(callback_binding()));
  run();
  EXPECT_EQ(reverse_ended, successes(1));
  EXPECT_EQ(client->requester->window(), 16u);
  EXPECT_EQ(server->reverse->calls().window(), 2u);
}

// While one direction's Calls are all held back the other's go on.
TEST_F(ReverseTest, AnExhaustedDirectionDoesNotStopTheOther) {
  RecordProperty("proves", "R1-7.2.1-01 R1-7.2.2.1-01 R1-7.2.2.2-01");
  open({.credits = 4, .reverse_credits = 2}, {.credits = 4, .reverse_credits = 2});
  call_server(call_of(test_binding()));
  call_client(call_of(callback_binding()));
  run();
  client->service.answer = nullptr;
  for (int i = 0; i < 10; ++i) call_client(call_of(callback_binding()));
  run();
  EXPECT_EQ(client->service.calls.size(), 1u + 2u);
  for (int i = 0; i < 50; ++i) call_server(call_of(test_binding()));
  run();
  EXPECT_EQ(forward_ended, successes(51));

  client->service.answer = [this](ServedCall& call) { client->reverse->reply(call.id, {}); };
  for (std::size_t i = 1; i < 3; ++i) client->reverse->reply(client->service.calls[i].id, {});
  server->service.answer = nullptr;
  for (int i = 0; i < 10; ++i) call_server(call_of(test_binding()));
  run();
  EXPECT_EQ(server->service.calls.size(), 51u + 4u);
  for (int i = 0; i < 50; ++i) call_client(call_of(callback_binding()));
  run();
  EXPECT_EQ(reverse_ended, successes(61));
  EXPECT_EQ(forward_ended, successes(51));
  EXPECT_FALSE(server->channel->failure());
}

TEST_F(ReverseTest, ReceivesAreThereForBothDirections) {
  RecordProperty("proves", "R1-7.2.2.1-01 R1-7.2.2.2-01");
  open({.credits = 8, .reverse_credits = 2}, {.credits = 8, .reverse_credits = 2});
  call_server(call_of(test_binding()));
  run();
  server->service.answer = nullptr;
  for (int i = 0; i < 8; ++i) call_server(call_of(test_binding()));
  client->pump();
  EXPECT_GE(client->qp.num_receives(), 8u + 2u);
  // All Calls of the client and all Replies to the server arrive before it looks.
  call_client(call_of(callback_binding()));
  client->pump();
  server->pump();
  EXPECT_EQ(reverse_ended, successes(1));
  call_client(call_of(callback_binding()));
  call_client(call_of(callback_binding()));
  client->pump();
  EXPECT_FALSE(server->qp.broken());
  run();
  EXPECT_EQ(reverse_ended, successes(3));
  EXPECT_EQ(server->service.calls.size(), 1u + 8u);
}

// Neither the client nor the server can tell what these are; their credit words move nothing.
TEST_F(ReverseTest, CreditWordsOfWhatIsUnclearAreIgnored) {
  RecordProperty("proves", "R1-7.2.1-05");
  v1::Header header;
  header.proc = v1::Proc::kNomsg;
  header.credit = 31;

  open_client();
  CallSpec spec = call_of(test_binding());
  spec.xid = header.xid = 0x600;
  call_server(spec);
  ASSERT_TRUE(client->qp.inject(message(header, {})));
  run();
  EXPECT_EQ(client->requester->window(), 1u);
  EXPECT_TRUE(forward_ended.empty());

  open_server({.min_credits = 1});
  ASSERT_TRUE(server->qp.inject(message(header, {})));
  run();
  ASSERT_EQ(server->qp.sent.size(), 1u);
  EXPECT_EQ(parse(server->qp.sent[0]).err, v1::Err::kChunk);
  EXPECT_EQ(parse(server->qp.sent[0]).credit, 1u);
  // A Call's is heard.
  header.proc = v1::Proc::kMsg;
  Octets payload;
  xdr::XdrWriter out(payload);
  emit_call(out, {.xid = 0x600, .program = kTestProgram, .version = kTestVersion, .cred = {}, .verf = {}});
  ASSERT_TRUE(server->qp.inject(message(header, payload)));
  run();
  EXPECT_EQ(parse(server->qp.sent.at(1)).credit, 2u);
}

// More Calls than were granted would use up the Receives of Replies.
TEST_F(ReverseTest, CallsBeyondTheGrantEndTheConnection) {
  RecordProperty("proves", "R1-7.2.1-01");
  open_client({.reverse_credits = 2});
  client->service.answer = nullptr;
  Octets call = load_vector("V21").octets;
  for (std::uint8_t i = 0; i < 2; ++i) {
    call[3] = call[31] = i;
    ASSERT_TRUE(client->qp.inject(call));
    run();
    EXPECT_FALSE(client->channel->failure());
  }
  call[3] = call[31] = 2;
  ASSERT_TRUE(client->qp.inject(call));
  run();
  EXPECT_EQ(client->service.calls.size(), 2u);
  ASSERT_TRUE(client->channel->failure());
  EXPECT_EQ(*client->channel->failure(), "the peer sends more Calls than it was granted");
}

TEST_F(ReverseTest, WhereNoReceiveIsLeftTheProviderMayEndTheConnection) {
  RecordProperty("proves", "R1-7.2.2-01 R1-7.3.2-01");
  open({.reverse_credits = 2}, {.reverse_credits = 2});
  client->service.answer = nullptr;
  call_server(call_of(test_binding()));
  call_client(call_of(callback_binding()));
  run();
  EXPECT_EQ(forward_ended, successes(1));
  const std::size_t receives = client->qp.num_receives();
  for (std::size_t i = 0; i < receives; ++i) ASSERT_TRUE(client->qp.inject(load_vector("V22").octets));
  EXPECT_FALSE(client->qp.inject(load_vector("V22").octets));
  run();
  ASSERT_TRUE(server->channel->failure());
  EXPECT_TRUE(reverse_ended.empty());
  server->reverse->calls().on_closed("the connection ended");
  run();
  EXPECT_EQ(reverse_ended, std::vector{CallStatus::kDisconnected});
}

TEST_F(ReverseTest, MessagesWithoutChunksFitTheirThreshold) {
  RecordProperty("proves", "R1-7.3.3-01 R1-7.3.3-02");
  open({.thresholds = {1024, 4096}}, {.thresholds = {4096, 1024}});
  const Octets too_long(2000), longest(1024 - 28 - 40), longer(1024 - 28 - 40 + 4);
  for (const Octets* args : {&too_long, &longer}) {
    call_client(call_of(callback_binding(), 1, *args));
    run();
  }
  EXPECT_EQ(reverse_ended, (std::vector{CallStatus::kLocalError, CallStatus::kLocalError}));
  EXPECT_EQ(server->qp.num_sends, 0u);

  // Its Reply takes what forward Calls may.
  std::size_t results = 4096 - 28 - 24;
  client->service.answer = [&](ServedCall& call) {
    ServedReply reply;
    reply.results = pattern(results);
    client->reverse->reply(call.id, std::move(reply));
  };
  call_client(call_of(callback_binding(), 1, longest));
  run();
  EXPECT_EQ(reverse_ended.back(), CallStatus::kSuccess);
  EXPECT_EQ(server->qp.sent.at(0).size(), 1024u);
  EXPECT_EQ(client->qp.sent.at(0).size(), 4096u);
  results += 4;
  call_client(call_of(callback_binding(), 1, longest));
  run();
  EXPECT_EQ(reverse_ended.back(), CallStatus::kErrChunk);
}

TEST_F(ReverseTest, CallsWithoutChunksAreAsLongAsClientsAreKnownToTake) {
  open({.thresholds = {8192, 8192}}, {.thresholds = {8192, 8192}});
  const Octets longest(4096 - 28 - 40), longer(4096 - 28 - 40 + 4);
  call_client(call_of(callback_binding(), 1, longer));
  call_client(call_of(callback_binding(), 1, longest));
  run();
  run();
  EXPECT_EQ(reverse_ended, (std::vector{CallStatus::kSuccess, CallStatus::kLocalError}));
}

// Long messages and a Write chunk, in the reverse direction as in the forward one, with the same binding.
TEST_F(ReverseTest, ChunksWhereBothEndsTakeThem) {
  RecordProperty("proves", "R1-7.3.4-03 R1-7.4-01");
  open({.chunks = true}, {.chunks = true});
  const Octets args = pattern(20000), results = pattern(30000, 2);
  Octets got_args, got_results;
  client->service.answer = [&](ServedCall& call) {
    got_args = copy_of(call.args);
    ServedReply reply;
    reply.results = results;
    client->reverse->reply(call.id, std::move(reply));
  };
  CallSpec spec = call_of(callback_binding(), 1, args);
  spec.max_results = results.size();
  ASSERT_TRUE(server->reverse->calls()
                  .call(spec,
                        [&](const Reply& reply) {
                          EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
                          got_results = copy_of(reply.results);
                        })
                  .ok());
  run();
  EXPECT_EQ(got_args, args);
  EXPECT_EQ(got_results, results);

  const Octets data = pattern(5000, 3);
  const Octets without = write_args(data.size());
  client->service.answer = [&](ServedCall& call) {
    ASSERT_EQ(call.items.size(), 1u);
    EXPECT_EQ(copy_of(call.items[0].data.octets()), data);
    client->reverse->reply(call.id, {});
  };
  spec = call_of(test_binding(), kWrite, without);
  spec.items = ArgumentItem{write_position(), ConstBytes(data)};
  call_client(spec);
  run();
  EXPECT_EQ(reverse_ended, successes(1));
  EXPECT_EQ(memory.num_remote(), 0u);
  // A program without a binding has nothing to reduce in either direction.
  spec.binding = nullptr;
  spec.program = kCallback;
  spec.version = 1;
  spec.items = ArgumentItem{0, ConstBytes(data)};
  EXPECT_FALSE(server->reverse->calls().call(spec, {}).ok());
}

// RFC 8167 section 6: a client that serves nothing discards what comes, whatever its own Calls' XIDs are.
TEST_F(ReverseTest, AClientWithoutTheReverseDirectionDiscardsCalls) {
  RecordProperty("proves", "R1-7.1.4-02 R1-7.2.1-04");
  RequesterEnd plain(memory, {});
  std::vector<CallStatus> ended;
  CallSpec spec = call_of(test_binding());
  spec.xid = 0x22220001;
  ASSERT_TRUE(plain.requester->call(spec, keep(ended)).ok());
  const std::size_t receives = plain.qp.num_receives();
  for (const char* id : {"V21", "V24"}) {
    ASSERT_TRUE(plain.qp.inject(load_vector(id).octets));
    plain.pump();
  }
  EXPECT_EQ(plain.requester->counters().replies_discarded, 2u);
  EXPECT_EQ(plain.requester->window(), 1u);
  EXPECT_EQ(plain.qp.num_receives(), receives);
  ASSERT_TRUE(plain.qp.inject(message({.xid = 0x22220001, .credit = 9, .lists = {}}, rpc_reply(0x22220001))));
  plain.pump();
  EXPECT_EQ(ended, successes(1));
}

// Its client alone can connect again, so an unanswered Call does not cost the connection.
TEST_F(ReverseTest, ACallMayTimeOutAndTheConnectionGoesOn) {
  RecordProperty("proves", "R1-7.3.2-01");
  open();
  client->service.answer = nullptr;
  call_client(call_of(callback_binding()));
  call_client(call_of(callback_binding()));
  run(0);
  run(1001);
  EXPECT_EQ(reverse_ended, (std::vector{CallStatus::kTimeout, CallStatus::kTimeout}));
  run(100000);
  EXPECT_FALSE(server->channel->failure());
  // The late Reply gives its credit back.
  ASSERT_EQ(client->service.calls.size(), 1u);
  client->reverse->reply(client->service.calls[0].id, {});
  client->service.answer = [this](ServedCall& call) { client->reverse->reply(call.id, {}); };
  call_client(call_of(callback_binding()));
  run(100000);
  EXPECT_EQ(reverse_ended.back(), CallStatus::kSuccess);
}

TEST_F(ReverseTest, ACancelledCallEndsOnce) {
  open();
  client->service.answer = nullptr;
  const CallHandle handle = call_client(call_of(callback_binding()));
  run();
  EXPECT_TRUE(server->reverse->calls().cancel(handle));
  EXPECT_FALSE(server->reverse->calls().cancel(handle));
  run();
  EXPECT_EQ(reverse_ended, std::vector{CallStatus::kCancelled});
}

TEST_F(ReverseTest, AfterItsEndNothingIsServed) {
  open();
  client->service.answer = nullptr;
  call_client(call_of(callback_binding()));
  run();
  client->reverse->end();
  client->reverse->reply(client->service.calls.at(0).id, {});
  ASSERT_TRUE(client->qp.inject(load_vector("V21").octets));
  run();
  EXPECT_EQ(client->service.calls.size(), 1u);
  EXPECT_EQ(client->qp.num_sends, 0u);
}

// One word of a message changed, or its end cut off: each end keeps its Receives and goes on serving and calling.
TEST_F(ReverseTest, MutatedMessagesHarmNeitherDirection) {
  std::minstd_rand random(1);
  open_client();
  open_server({.ord = 0});  // to pull from memory that is not there would end the connection, and rightly
  const std::size_t client_receives = client->qp.num_receives(), server_receives = server->qp.num_receives();
  CallSpec pending = call_of(test_binding());
  pending.xid = 0x22220001;
  call_server(pending);
  pending = call_of(callback_binding());
  pending.xid = 0x11110001;
  call_client(pending);
  std::vector<Octets> messages;
  for (const char* id : {"V21", "V22", "V23", "V24", "V25", "V11", "V12"}) messages.push_back(load_vector(id).octets);
  constexpr std::uint8_t kValues[] = {0, 1, 2, 3, 4, 5, 0x7f, 0x80, 0xff};
  for (int i = 0; i < 20000; ++i) {
    Octets changed = messages[random() % messages.size()];
    changed[random() % changed.size()] = kValues[random() % std::size(kValues)];
    changed[random() % changed.size()] = kValues[random() % std::size(kValues)];
    if (random() % 4 == 0) changed.resize(random() % changed.size());
    ASSERT_TRUE(client->qp.inject(changed));
    ASSERT_TRUE(server->qp.inject(changed));
    run();
    ASSERT_FALSE(client->channel->failure()) << to_hex(changed) << *client->channel->failure();
    ASSERT_FALSE(server->channel->failure()) << to_hex(changed) << *server->channel->failure();
    ASSERT_EQ(client->qp.num_receives(), client_receives) << to_hex(changed);
    if (forward_ended.size() > 0) {
      call_server(call_of(test_binding()));
      forward_ended.clear();
    }
  }
  EXPECT_EQ(server->qp.num_receives(), server_receives);
  client->qp.sent.clear();
  ASSERT_TRUE(client->qp.inject(load_vector("V21").octets));
  run();
  ASSERT_EQ(client->qp.sent.size(), 1u);
  EXPECT_EQ(to_hex(client->qp.sent[0]), to_hex(load_vector("V22").octets));
}

}  // namespace
}  // namespace weft::rpcrdma::testing
