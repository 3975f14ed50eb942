// RFC 5042 sections 2.2, 4, 6.4 and 7 over the soft RNIC: the bounds of memory that peers take, and the cost of floods
// for others.
#include <algorithm>
#include <cerrno>
#include <set>

#include "tests/conformance/network.h"

namespace weft::conformance {
namespace {

using verbs::SoftConfig;

using SecurityLimits = NetworkTest;

TEST_F(SecurityLimits, RegistrationsHaveALimitAndACleanError) {
  RecordProperty("proves", "SEC-2.2.5-01 SEC-6.4.1-01");
  SoftConfig config;
  config.max_mrs = 100;
  open(config);
  Octets memory(64);
  std::vector<std::unique_ptr<verbs::Mr>> held;
  std::set<std::uint32_t> stags;
  for (int storm = 0; storm < 1000; ++storm) {
    auto mr = server_->pd->reg_mr(memory.data(), memory.size(), kAll);
    if (mr.ok()) {
      EXPECT_TRUE(stags.insert((*mr)->rkey()).second);
      held.push_back(std::move(*mr));
    } else {
      EXPECT_EQ(mr.error().errno_value, ENOMEM);
    }
  }
  EXPECT_EQ(held.size(), 100u);
  // Existing regions go on working. A freed place can be taken again.
  Mem mine(*client_->pd, 64, Access::kLocalWrite, 1);
  Link& writer = link();
  const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
  for (const auto& mr : {held.front()->rkey(), held.back()->rkey()}) {
    ASSERT_TRUE(writer.client.rdma(WrOpcode::kRdmaWrite, {mine.sge()}, at, mr).ok());
    ASSERT_TRUE(succeeds(writer.client));
  }
  ASSERT_TRUE(drive([&] { return writer.server.qp->counters().writes_rx == 2; }));
  EXPECT_EQ(memory, mine.octets);
  held.pop_back();
  EXPECT_TRUE(server_->pd->reg_mr(memory.data(), memory.size(), kAll).ok());
}

TEST_F(SecurityLimits, QueuesHaveLimitsAndCleanErrors) {
  SoftConfig config;
  config.max_cqe = 100;
  config.max_qp_wr = 40;
  open(config);
  EXPECT_EQ(server_->device->create_cq(101, nullptr).error().errno_value, EINVAL);
  auto cq = server_->new_cq(100);
  auto id = std::move(server_->cm->create_id().value());
  EXPECT_EQ(id->create_qp(*server_->pd, {.send_cq = cq.get(), .recv_cq = cq.get(), .cap = {.max_send_wr = 41}})
                .error()
                .errno_value,
            EINVAL);
  EXPECT_EQ(id->create_qp(*server_->pd, {.send_cq = cq.get(), .recv_cq = cq.get(), .cap = {.max_recv_wr = 41}})
                .error()
                .errno_value,
            EINVAL);
}

TEST_F(SecurityLimits, EventsOfPeersThatGiveUpDoNotPileUp) {
  RecordProperty("proves", "SEC-2.2.7-01");
  open();
  take_events_ = false;  // the consumer sleeps
  std::size_t num_ended = 0;
  for (int i = 0; i < 10000; ++i) {
    const Fd raw = raw_connect();
    say(raw, kRequest + "and at once something that no responder may accept");
    if (drive([&] { return gone(raw); })) ++num_ended;
  }
  EXPECT_EQ(num_ended, 10000u);  // each was torn down
  std::size_t num_events = 0;
  while (server_->cm->get_event()) ++num_events;
  EXPECT_LE(num_events, 64u);  // the backlog
  take_events_ = true;
  Mem mine(*client_->pd, 64, Access::kLocalWrite, 1);
  Mem target(*server_->pd, 64, kAll);
  expect_writes(link(), mine, target);
}

TEST_F(SecurityLimits, NothingReachesDdpBeforeTheHandshakeIsOver) {
  RecordProperty("proves", "SEC-4-01");
  open();
  take_events_ = false;
  Mem target(*server_->pd, 8, kAll, 0xa5);
  // An RDMA Write of 8 octets. The receiver must not look at it, whether its CRC is right or not.
  const std::string write = write_fpdu(target.mr->rkey(), target.addr(), std::string(8, '\1'));
  const Fd early = raw_connect();
  say(early, kRequest + write);
  ASSERT_TRUE(drive([&] { return gone(early); }));
  EXPECT_FALSE(server_->cm->get_event().has_value());

  const Fd rejected = raw_connect();
  say(rejected, kRequest);
  std::optional<CmEvent> request;
  ASSERT_TRUE(drive([&] { return (request = server_->cm->get_event()).has_value(); }));
  ASSERT_TRUE(request->new_id->reject({}).ok());
  settle();
  ::send(rejected.get(), write.data(), write.size(), MSG_NOSIGNAL);
  settle();
  EXPECT_EQ(target.octets, Octets(8, 0xa5));
}

TEST_F(SecurityLimits, AFloodOfSendsCostsTheFlooderAlone) {
  RecordProperty("proves", "SEC-6.4.3.1-01 SEC-6.4.3.1-04");
  open();
  Mem inbox(*server_->pd, 64, Access::kLocalWrite);
  Mem target(*server_->pd, 4096, kAll);
  Mem mine(*client_->pd, 4096, Access::kLocalWrite, 1);
  Link& flooder = link();
  Link& other = link();
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(flooder.server.recv({inbox.sge()}, i).ok());
  for (std::uint64_t i = 0; i < 40; ++i) ASSERT_TRUE(flooder.client.send({mine.sge(0, 1)}, i).ok());
  EXPECT_EQ(terminate_seen(flooder), "1/2/02");
  EXPECT_EQ(flooder.server.wcs.size(), 8u);
  EXPECT_EQ(flooder.server.qp->counters().sends_rx, 8u);  // the counters tell how many receives each peer used
  EXPECT_EQ(other.server.qp->counters().sends_rx, 0u);
  for (int i = 0; i < 20; ++i) expect_writes(other, mine, target);
  EXPECT_FALSE(other.client.ended || other.server.ended);
}

TEST_F(SecurityLimits, ReceivesAreUsedInTheOrderOfPosting) {
  RecordProperty("proves", "SEC-2.3.5-01");
  open();
  Mem mine(*client_->pd, 3, Access::kLocalWrite);
  mine.octets = {7, 8, 9};
  Mem first(*server_->pd, 3, Access::kLocalWrite), second(*server_->pd, 3, Access::kLocalWrite);
  Link* const links[] = {&link(), &link()};
  Mem* const inboxes[] = {&first, &second};
  for (int l = 0; l < 2; ++l) {
    for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(links[l]->server.recv({inboxes[l]->sge(i, 1)}, i).ok());
  }
  for (std::uint64_t i = 0; i < 3; ++i) {
    for (Link* each : links) ASSERT_TRUE(each->client.send({mine.sge(i, 1)}, i).ok());
  }
  for (int l = 0; l < 2; ++l) {
    for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(next(links[l]->server).wr_id, i);
    EXPECT_EQ(inboxes[l]->octets, mine.octets);
  }
}

TEST_F(SecurityLimits, AQueuePairThatDoesNotFitItsCqIsRefused) {
  RecordProperty("proves", "SEC-6.4.3.2-01 SEC-7.1-01");
  open();
  auto cq = server_->new_cq(100);
  auto id = std::move(server_->cm->create_id().value()), id2 = std::move(server_->cm->create_id().value());
  const auto create = [&](verbs::CmId& at, verbs::Cq& send, verbs::Cq& recv, std::uint32_t sends, std::uint32_t recvs) {
    return at.create_qp(*server_->pd,
                        {.send_cq = &send, .recv_cq = &recv, .cap = {.max_send_wr = sends, .max_recv_wr = recvs}});
  };
  EXPECT_EQ(create(*id, *cq, *cq, 51, 50).error().errno_value, ENOMEM);
  {
    auto qp = create(*id, *cq, *cq, 40, 40);
    ASSERT_TRUE(qp.ok());
    EXPECT_EQ(create(*id2, *cq, *cq, 10, 11).error().errno_value, ENOMEM);
    EXPECT_TRUE(create(*id2, *cq, *cq, 10, 10).ok());
  }
  EXPECT_TRUE(create(*id, *cq, *cq, 50, 50).ok());  // a destroyed queue pair makes room
  // Each queue counts where its completions go.
  auto short_cq = server_->new_cq(10);
  EXPECT_TRUE(create(*id, *cq, *short_cq, 100, 10).ok());
  EXPECT_EQ(create(*id, *cq, *short_cq, 10, 11).error().errno_value, ENOMEM);
  EXPECT_EQ(create(*id, *short_cq, *cq, 11, 10).error().errno_value, ENOMEM);
  // A CQ of another device is another consumer's.
  auto foreign = client_->new_cq(100);
  EXPECT_EQ(create(*id, *foreign, *cq, 1, 1).error().errno_value, EINVAL);
  EXPECT_EQ(create(*id, *cq, *foreign, 1, 1).error().errno_value, EINVAL);
}

TEST_F(SecurityLimits, ACqThatHoldsTheSumOfItsQueuesNeverOverflows) {
  RecordProperty("proves", "SEC-6.4.3.2-02 SEC-6.4.3.2-03");
  open();
  constexpr std::uint32_t kDepth = 8;
  auto cq = server_->new_cq(4 * kDepth);
  LinkOptions options{.server_cq = cq.get()};
  options.cap = {.max_send_wr = kDepth, .max_recv_wr = kDepth, .max_send_sge = 4, .max_recv_sge = 4};
  Mem inbox(*server_->pd, 64, kAll);
  Mem mine(*client_->pd, 64, kAll, 1);
  Link* const links[] = {&link(options), &link(options)};
  for (Link* each : links) {
    for (std::uint64_t i = 0; i < kDepth; ++i) {
      ASSERT_TRUE(each->server.recv({inbox.sge()}, i).ok());
      ASSERT_TRUE(each->client.recv({mine.sge()}, i).ok());
    }
    EXPECT_FALSE(each->server.recv({inbox.sge()}).ok());
    for (std::uint64_t i = 0; i < kDepth; ++i) {
      ASSERT_TRUE(each->server.send({inbox.sge()}, 100 + i).ok());
      ASSERT_TRUE(each->client.send({mine.sge()}, i).ok());
    }
  }
  // All of it completes before the user polls. Then both peers go on sending where there is no receive any more.
  settle();
  for (Link* each : links) {
    EXPECT_EQ(each->client.wcs.size(), 2 * kDepth);
    ASSERT_TRUE(each->client.send({mine.sge()}, 50).ok());
  }
  ASSERT_TRUE(drive([&] { return links[0]->server.ended && links[1]->server.ended; }));
  verbs::Wc wc[64];
  ASSERT_EQ(cq->poll(wc), static_cast<int>(4 * kDepth));
  for (std::uint32_t i = 0; i < 4 * kDepth; ++i) EXPECT_EQ(wc[i].status, WcStatus::kSuccess);
  links_.clear();
}

TEST_F(SecurityLimits, AnOverflowEndsTheStreamsOfItsCqAndNoOthers) {
  RecordProperty("proves", "SEC-6.4.6-01");
  SoftConfig config;
  config.cq_overcommit = true;
  open(config);
  auto small = server_->new_cq(2);
  Mem inbox(*server_->pd, 64, kAll);
  Mem mine(*client_->pd, 64, kAll, 1);
  Link& first = link({.server_cq = small.get()});
  Link& second = link({.server_cq = small.get()});
  Link& apart = link();
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(first.server.recv({inbox.sge()}, i).ok());
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(first.client.send({mine.sge()}, i).ok());
  ASSERT_TRUE(drive([&] { return first.client.ended && second.client.ended; }));
  verbs::Wc wc[4];
  EXPECT_LT(small->poll(wc), 0);
  for (int i = 0; i < 20; ++i) expect_writes(apart, mine, inbox);
  EXPECT_FALSE(apart.client.ended || apart.server.ended);
  links_.clear();
}

TEST_F(SecurityLimits, ReadDepthsAreBoundedByOurConfigurationAndNotShared) {
  RecordProperty("proves", "SEC-7.2-01 SEC-6.4.3.3-01");
  SoftConfig narrow;
  narrow.ird = 2;
  SoftConfig wide;
  wide.ird = wide.ord = 255;
  open(narrow, wide);
  const Octets filled(1 << 20, 3);
  Mem source(*server_->pd, filled.size(), Access::kRemoteRead, 3);
  Mem sink(*client_->pd, filled.size(), Access::kLocalWrite);
  // Both sides' consumers ask for all they can get. The server's device limits the depth.
  const LinkOptions greedy{.client_depth = 255, .server_depth = 255};
  Link& busy = link(greedy);
  Link& other = link(greedy);
  for (std::uint64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(busy.client.rdma(WrOpcode::kRdmaRead, {sink.sge()}, source.addr(), source.mr->rkey(), i).ok());
  }
  client_->device->process(std::chrono::steady_clock::now());
  EXPECT_EQ(busy.client.qp->counters().reads_tx, 2u);  // the rest waits at its source
  // Its slots are taken; another stream's slots are not.
  ASSERT_TRUE(other.client.rdma(WrOpcode::kRdmaRead, {sink.sge(0, 8)}, source.addr(), source.mr->rkey()).ok());
  ASSERT_TRUE(succeeds(other.client));
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_TRUE(succeeds(busy.client)) << i;
  EXPECT_EQ(sink.octets, filled);
}

TEST_F(SecurityLimits, APingIsAnsweredBesideABulkStream) {
  open();
  constexpr std::size_t kBulk = std::size_t{8} << 20;
  Mem bulk(*client_->pd, kBulk, kAll, 1);
  Mem target(*server_->pd, kBulk, kAll);
  Mem inbox(*server_->pd, 64, kAll), outbox(*client_->pd, 64, kAll, 2);
  Link& flood = link();
  Link& ping = link();
  for (std::uint64_t i = 0; i < 32; ++i) {
    ASSERT_TRUE(flood.client.rdma(WrOpcode::kRdmaWrite, {bulk.sge()}, target.addr(), target.mr->rkey(), i).ok());
  }
  for (std::uint64_t i = 0; i < 10; ++i) {
    const std::uint64_t before = flood.server.qp->counters().write_octets_rx;
    ASSERT_TRUE(ping.server.recv({inbox.sge()}, i).ok());
    ASSERT_TRUE(ping.client.send({outbox.sge()}, i).ok());
    ASSERT_TRUE(drive([&] { return !ping.server.wcs.empty(); }));
    ping.server.wcs.clear();
    // The flood moves on, but by a few turns at most.
    EXPECT_LE(flood.server.qp->counters().write_octets_rx - before, std::size_t{64} << 20);
  }
  EXPECT_LT(flood.client.wcs.size(), 32u) << "the flood was over too soon to tell anything";
}

TEST_F(SecurityLimits, ConnectionsOfOneAddressShareARound) {
  open();
  constexpr int kConnections = 100, kWrites = 16;
  constexpr std::size_t kLen = 8 << 10;
  Mem bulk(*client_->pd, kLen, kAll, 1);
  Mem target(*server_->pd, kLen, kAll);
  std::vector<Link*> links;
  for (int i = 0; i < kConnections; ++i) links.push_back(&link());
  for (Link* one : links) {
    for (int i = 0; i < kWrites; ++i) {
      ASSERT_TRUE(one->client.rdma(WrOpcode::kRdmaWrite, {bulk.sge()}, target.addr(), target.mr->rkey()).ok());
    }
  }
  const auto written = [&] {
    std::uint64_t sum = 0;
    for (const Link* one : links) sum += one->client.qp->counters().write_octets_tx;
    return sum;
  };
  client_->device->process(std::chrono::steady_clock::now());
  EXPECT_GT(written(), 0u);
  EXPECT_LE(written(), (std::size_t{4} << 20) + (std::size_t{128} << 10));
  ASSERT_TRUE(drive([&] { return written() == kConnections * kWrites * kLen; })) << "and each has its turns";
}

// epoll reports sockets in the order in which they got ready, and so the floods before the quiet one.
TEST_F(SecurityLimits, FloodsOfOneAddressHoldUpNoConnectionForLong) {
  open();
  constexpr int kFloods = 100, kWrites = 16;
  constexpr std::size_t kLen = 512 << 10;
  Mem bulk(*client_->pd, kLen, kAll, 1), outbox(*client_->pd, 64, kAll, 2);
  Mem target(*server_->pd, kLen, kAll), inbox(*server_->pd, 64, kAll);
  std::vector<Link*> floods;
  for (int i = 0; i < kFloods; ++i) floods.push_back(&link());
  Link& quiet = link();
  for (Link* one : floods) {
    for (int i = 0; i < kWrites; ++i) {
      ASSERT_TRUE(one->client.rdma(WrOpcode::kRdmaWrite, {bulk.sge()}, target.addr(), target.mr->rkey()).ok());
    }
  }
  const auto now = [] { return std::chrono::steady_clock::now(); };
  while (client_->device->process(now()) > 0) continue;  // until all sockets are full
  ASSERT_TRUE(quiet.server.recv({inbox.sge()}).ok());
  ASSERT_TRUE(quiet.client.send({outbox.sge()}).ok());
  ASSERT_GT(client_->device->process(now()), 0u);
  int num_turns = 0;
  verbs::Wc wc[1];
  while (num_turns < 100 && quiet.server.own_cq->poll(wc) == 0) {
    ++num_turns;
    server_->device->process(now());
  }
  EXPECT_LE(num_turns, 5);
  EXPECT_GT(server_->device->process(now()), std::size_t{1} << 20) << "the floods were over";
}

TEST_F(SecurityLimits, PartsOfFpdusAreHeldUpToABound) {
  SoftConfig config;
  config.max_parked = 100'000;
  open(config);
  Mem mine(*client_->pd, 64, Access::kLocalWrite, 1);
  Mem target(*server_->pd, 64, kAll);
  Link& honest = link();
  // Peers that complete the handshake, send most of an FPDU of 60,000 octets and fall silent.
  std::vector<Fd> raws;
  std::deque<End> ends;
  for (int i = 0; i < 6; ++i) {
    raws.push_back(raw_link(ends.emplace_back()));
    say(raws.back(), std::string("\xea\x60", 2) + std::string(39'998, '\x41'));
    settle();
  }
  const auto num_gone = [&] { return std::ranges::count_if(raws, gone); };
  ASSERT_TRUE(drive([&] { return num_gone() >= 3; }));
  settle();
  // Two parts of 40,000 octets fit, and the newest may still lie in the receive buffer. The connections that fell
  // silent first made way.
  EXPECT_LE(num_gone(), 4);
  EXPECT_TRUE(gone(raws[0]));
  EXPECT_TRUE(gone(raws[1]));
  EXPECT_FALSE(gone(raws[5]));
  expect_writes(honest, mine, target);
}

}  // namespace
}  // namespace weft::conformance
