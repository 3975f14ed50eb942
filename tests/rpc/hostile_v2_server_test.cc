// A client of version 2 as wg07 over soft RNICs, whose server sends parts of Replies as it likes.
#include <gmock/gmock.h>

#include <cstring>

#include "rpcrdma/testing/wg07.h"
#include "tests/rpc/raw_server.h"

namespace weft::rpcrdma::testing {
namespace {

namespace wg07 = v2_wg07;
constexpr std::uint32_t kServerCredits = 30000;

// A server on verbs that answers nothing by itself. It knows the credits that the client gives.
struct TalkingServer : RawServer {
  static constexpr std::size_t kLen = 4096;
  static constexpr std::size_t kReceives = 64;
  static constexpr std::size_t kSends = 64;

  explicit TalkingServer(verbs::Device& its_device) : RawServer(its_device), memory(kLen * (kReceives + kSends)) {
    mr = std::move(*pd->reg_mr(memory.data(), memory.size(), verbs::Access::kLocalWrite));
  }
  ~TalkingServer() { qp.reset(); }

  void turn() {
    RawServer::turn([this] {
      for (std::size_t i = 0; i < kReceives; ++i) post_receive(i);
    });
    verbs::Wc wc;
    while (cq->poll(std::span(&wc, 1)) == 1) {
      if (wc.status != verbs::WcStatus::kSuccess || wc.opcode != verbs::WcOpcode::kRecv) continue;
      const auto at = memory.begin() + static_cast<std::ptrdiff_t>(wc.wr_id * kLen);
      const Wg07Message message = wg07_parse(Octets(at, at + wc.byte_len));
      limit = std::max(limit, message.header.credit);
      if (message.is<wg07::CallInline>()) calls.push_back(message.header.xid);
      post_receive(wc.wr_id);
    }
  }
  void post_receive(std::uint64_t slot) {
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(memory.data() + slot * kLen), kLen, mr->lkey()};
    (void)qp->post_recv({slot, std::span(&sge, 1)});
  }
  bool may_send() const { return num_sent < limit; }
  template <typename Body>
  void send(std::uint32_t xid, const Body& body, const Octets& payload) {
    const Octets octets = wg07_octets(xid, kServerCredits, body, payload);
    std::uint8_t* at = memory.data() + (kReceives + num_sent++ % kSends) * kLen;
    std::memcpy(at, octets.data(), octets.size());
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(at), static_cast<std::uint32_t>(octets.size()), mr->lkey()};
    verbs::SendWr wr;
    wr.sg_list = std::span(&sge, 1);
    (void)qp->post_send(wr);
  }

  Octets memory;
  std::unique_ptr<verbs::Mr> mr;
  std::uint32_t limit = 0, num_sent = 0;  // messages
  std::vector<std::uint32_t> calls;       // the XIDs
};

struct HostileV2ServerTest : World {
  ~HostileV2ServerTest() override { client.reset(); }

  void open() {
    client = std::move(*Client::connect(*client_device, server_end.listener->local_addr(),
                                        {.protocols = {Protocol::k2Wg07},
                                         .properties = false,
                                         .call_timeout = std::chrono::hours(1),
                                         .max_discards = UINT32_MAX}));
    call(0);
    answer(0);
    run([&] { return outcomes.size() == 1; });
    outcomes.clear();
  }
  void run(const std::function<bool()>& done) {
    for (int i = 0; !done(); ++i) {
      ASSERT_LT(i, 20000) << "too many turns";
      client->process(now);
      verbs::testing::bare(*client_device).process(now);
      server_end.turn();
    }
  }
  void settle() {
    int turns = 0;
    run([&] { return ++turns == 50; });
  }
  // The client makes a Call whose results have at most so many octets.
  void call(std::size_t max_results) {
    CallSpec spec = null_call();
    spec.max_results = max_results;
    ASSERT_TRUE(
        client->call(spec, [this](const Reply& reply) { outcomes.emplace_back(reply.status, reply.text); }).ok());
    const std::size_t num = server_end.calls.size();
    run([&] { return server_end.calls.size() > num; });
  }
  template <typename Body>
  void send(std::uint32_t xid, const Body& body, const Octets& payload) {
    run([&] { return server_end.may_send(); });
    server_end.send(xid, body, payload);
  }
  std::uint32_t xid_of(std::size_t i) const { return server_end.calls.at(i); }
  void answer(std::size_t i) { send(xid_of(i), wg07::ReplyInline{}, rpc_reply(xid_of(i))); }
  // A part of the Reply to this Call, which may be the first one.
  void send_part(std::uint32_t xid, std::size_t len = 1000) {
    send(xid, wg07::ReplyMiddle{0}, rpc_reply(xid, pattern(len - 24)));
  }
  // The next Call is answered.
  void expect_served() {
    const std::size_t num = outcomes.size();
    call(0);
    answer(server_end.calls.size() - 1);
    run([&] { return outcomes.size() > num; });
    EXPECT_EQ(outcomes.back().first, CallStatus::kSuccess) << outcomes.back().second;
    outcomes.pop_back();
  }

  TimePoint now = Clock::now();
  TalkingServer server_end{*server_device};
  std::unique_ptr<Client> client;
  std::vector<std::pair<CallStatus, std::string>> outcomes;
};

TEST_F(HostileV2ServerTest, AReplyWithoutAnEndEndsItsCallAtItsBound) {
  open();
  for (std::size_t i = 1; i < 10; ++i) {
    call(8000);
    const std::uint32_t xid = server_end.calls.back();
    for (int part = 0; part < 65; ++part) send_part(xid);
    settle();
    EXPECT_TRUE(outcomes.empty());
    send_part(xid);
    run([&] { return !outcomes.empty(); });
    EXPECT_EQ(outcomes[0].first, CallStatus::kBadReply);
    EXPECT_THAT(outcomes[0].second, ::testing::HasSubstr("too many or too long"));
    outcomes.clear();
    for (int part = 0; part < 100; ++part) send_part(xid);
    send(xid, wg07::ReplyInline{}, Octets(4));
    expect_served();
  }
}

TEST_F(HostileV2ServerTest, AHalfDoneReplyEndsItsCallInTime) {
  open();
  call(8000);
  call(8000);
  send_part(xid_of(1));
  settle();
  now += std::chrono::seconds(31);
  run([&] { return !outcomes.empty(); });
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_EQ(outcomes[0].first, CallStatus::kBadReply);
  EXPECT_THAT(outcomes[0].second, ::testing::HasSubstr("too long"));
  outcomes.clear();
  answer(2);
  run([&] { return !outcomes.empty(); });
  EXPECT_EQ(outcomes[0].first, CallStatus::kSuccess);
  expect_served();
}

TEST_F(HostileV2ServerTest, MixedXidsHoldOneReply) {
  open();
  for (int i = 0; i < 8; ++i) call(8000);
  for (std::uint32_t i = 0; i < 200; ++i) send_part(0x500000 + i);  // of no Call
  send_part(xid_of(1));
  for (std::size_t i = 2; i <= 8; ++i) send_part(xid_of(i));
  run([&] { return outcomes.size() == 7; });
  for (const auto& [status, text] : outcomes) {
    EXPECT_EQ(status, CallStatus::kBadReply);
    EXPECT_THAT(text, ::testing::HasSubstr("inside the parts of another"));
  }
  outcomes.clear();
  send(xid_of(1), wg07::ReplyInline{}, Octets(4));
  run([&] { return !outcomes.empty(); });
  EXPECT_EQ(outcomes[0].first, CallStatus::kSuccess) << outcomes[0].second;
  expect_served();
}

}  // namespace
}  // namespace weft::rpcrdma::testing
