// Progress by workers: several threads use one device at once. Run under ThreadSanitizer too (preset tsan).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "verbs-shim/api/testing/pair.h"
#include "verbs-shim/soft/device.h"
#include "verbs-shim/soft/listener.h"
#include "verbs-shim/soft/soft_device.h"

namespace weft::verbs::testing {
namespace {

constexpr std::chrono::seconds kPatience{20};

SoftConfig threads(std::uint32_t num_workers) {
  SoftConfig config;
  config.num_workers = num_workers;
  return config;
}

std::unique_ptr<Device> open_device(const SoftConfig& config) {
  auto device = open_soft_device(config);
  EXPECT_TRUE(device.ok());
  return device ? std::move(*device) : nullptr;
}

// Waits on the descriptor until done() holds; false where it does not in time.
bool wait_until(int fd, const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    pollfd any{fd, POLLIN, 0};
    ::poll(&any, 1, 100);
  }
  return true;
}

// Node is a device with one of everything that its connections share.
struct Node {
  explicit Node(const SoftConfig& config)
      : device(open_device(config)),
        pd(std::move(*device->alloc_pd())),
        channel(std::move(*device->create_comp_channel())),
        cq(std::move(*device->create_cq(4096, channel.get()))),
        cm(std::move(*device->create_event_channel())) {}

  CmEvent wait_event(CmEventType type) {
    CmEvent out;
    EXPECT_TRUE(wait_until(cm->fd(), [&] {
      while (auto event = cm->get_event()) {
        if (event->type != type) continue;
        out = std::move(*event);
        return true;
      }
      return false;
    })) << cm_event_str(type);
    return out;
  }
  // Sleeps for completions as a program does: arm, empty, sleep.
  bool wait_wcs(std::size_t num, std::vector<Wc>& out) {
    return wait_until(channel->fd(), [&] {
      while (channel->get_event() != nullptr) {
      }
      EXPECT_TRUE(cq->req_notify(false).ok());
      std::array<Wc, 16> wc;
      for (int n = cq->poll(wc); n > 0; n = cq->poll(wc)) out.insert(out.end(), wc.begin(), wc.begin() + n);
      return out.size() >= num;
    });
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Pd> pd;
  std::unique_ptr<CompChannel> channel;
  std::unique_ptr<Cq> cq;
  std::unique_ptr<CmChannel> cm;
};

// End is one end of a connection.
struct End {
  std::unique_ptr<CmId> id;
  std::unique_ptr<Qp> qp;

  Status send(const Mem& mem, std::uint64_t wr_id) {
    const std::array<Sge, 1> sges{mem.sge()};
    return qp->post_send(
        {.wr_id = wr_id, .sg_list = sges, .opcode = WrOpcode::kSend, .send_flags = SendFlags::kSignaled});
  }
  Status rdma_write(const Mem& from, std::uint64_t addr, std::uint32_t rkey, std::uint64_t wr_id) {
    const std::array<Sge, 1> sges{from.sge()};
    return qp->post_send({.wr_id = wr_id,
                          .sg_list = sges,
                          .opcode = WrOpcode::kRdmaWrite,
                          .send_flags = SendFlags::kSignaled,
                          .remote_addr = addr,
                          .rkey = rkey});
  }
  Status recv(const Mem& mem, std::uint64_t wr_id) {
    const std::array<Sge, 1> sges{mem.sge()};
    return qp->post_recv({.wr_id = wr_id, .sg_list = sges});
  }
};

class ThreadsTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kDepth = 64;
  static constexpr std::uint32_t kMaxRecvWr = 200;

  ThreadsTest() {
    listener_ = std::move(*server_.cm->create_id());
    EXPECT_TRUE(listener_->bind_addr(loopback(AF_INET, 0)).ok());
    EXPECT_TRUE(listener_->listen(64).ok());
  }

  static std::unique_ptr<Qp> make_qp(Node& node, CmId& id, Cq* cq = nullptr) {
    if (cq == nullptr) cq = node.cq.get();
    auto qp = id.create_qp(*node.pd, {.send_cq = cq,
                                      .recv_cq = cq,
                                      .cap = {.max_send_wr = kDepth, .max_recv_wr = kMaxRecvWr, .max_inline_data = 2}});
    EXPECT_TRUE(qp.ok());
    return std::move(*qp);
  }

  // A client's end and the server's, established.
  std::pair<End, End> connect(Cq* client_cq = nullptr) {
    End client{std::move(*client_->cm->create_id()), nullptr};
    EXPECT_TRUE(client.id->resolve_addr(listener_->local_addr(), std::chrono::seconds(1)).ok());
    EXPECT_TRUE(client.id->resolve_route(std::chrono::seconds(1)).ok());
    client.qp = make_qp(*client_, *client.id, client_cq);
    EXPECT_TRUE(client.id->connect({{}, 16, 16}).ok());
    End server{std::move(server_.wait_event(CmEventType::kConnectRequest).new_id), nullptr};
    server.qp = make_qp(server_, *server.id);
    EXPECT_TRUE(server.id->accept({{}, 16, 16}).ok());
    server_.wait_event(CmEventType::kEstablished);
    client_->wait_event(CmEventType::kEstablished);
    return {std::move(client), std::move(server)};
  }

  Node server_{threads(2)};
  std::optional<Node> client_{std::in_place, threads(2)};
  std::unique_ptr<CmId> listener_;
};

// Many connections on shared Cqs, each posted to by a thread of its own: everything completes once and in order.
TEST_F(ThreadsTest, ManyThreadsPostOnConnectionsOfSharedCqs) {
  constexpr std::size_t kConnections = 4;
  std::vector<std::pair<End, End>> ends;
  std::vector<Mem> to;
  const Mem from(*client_->pd, 1, Access::kNone, 7);
  for (std::size_t i = 0; i < kConnections; ++i) {
    ends.push_back(connect());
    to.emplace_back(*server_.pd, 1, Access::kLocalWrite);
    for (std::uint64_t n = 0; n < kMaxRecvWr; ++n) ASSERT_TRUE(ends.back().second.recv(to.back(), i << 32 | n).ok());
  }
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kConnections; ++i) {
    threads.emplace_back([&, i] {
      const auto deadline = std::chrono::steady_clock::now() + kPatience;
      for (std::uint64_t n = 0; n < kMaxRecvWr && std::chrono::steady_clock::now() < deadline;) {
        if (ends[i].first.send(from, i << 32 | n).ok()) {
          ++n;
        } else {
          std::this_thread::yield();  // the send queue is full
        }
      }
    });
  }
  std::vector<Wc> sent;
  std::vector<Wc> received;
  EXPECT_TRUE(client_->wait_wcs(kConnections * kMaxRecvWr, sent));
  EXPECT_TRUE(server_.wait_wcs(kConnections * kMaxRecvWr, received));
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<Wc>& wcs : {sent, received}) {
    std::array<std::uint64_t, kConnections> next{};
    for (const Wc& wc : wcs) {
      ASSERT_EQ(wc.status, WcStatus::kSuccess);
      ASSERT_EQ(wc.wr_id & UINT32_MAX, next[wc.wr_id >> 32]++);
    }
  }
}

// Two threads post on one queue pair: nothing is lost, and each thread's own requests keep their order.
TEST_F(ThreadsTest, TwoThreadsPostOnOneQueuePair) {
  constexpr std::uint64_t kSends = kDepth / 2;
  auto [client, server] = connect();
  std::vector<Mem> to;
  for (std::uint32_t i = 0; i < kDepth; ++i) {
    to.emplace_back(*server_.pd, 2, Access::kLocalWrite);
    ASSERT_TRUE(server.recv(to.back(), i).ok());
  }
  const auto post = [&, &qp = client](std::uint8_t who) {
    for (std::uint8_t n = 0; n < kSends; ++n) {
      Mem from(*client_->pd, 2, Access::kNone, who);
      from.octets[1] = n;
      const std::array<Sge, 1> sges{from.sge()};
      EXPECT_TRUE(
          qp.qp
              ->post_send(
                  {.sg_list = sges, .opcode = WrOpcode::kSend, .send_flags = SendFlags::kInline | SendFlags::kSignaled})
              .ok());
    }
  };
  std::thread one(post, 1);
  std::thread two(post, 2);
  one.join();
  two.join();
  std::vector<Wc> received;
  ASSERT_TRUE(server_.wait_wcs(kDepth, received));
  std::array<std::uint8_t, 3> next{};
  for (std::uint32_t i = 0; i < kDepth; ++i) {
    EXPECT_EQ(received[i].wr_id, i);
    ASSERT_TRUE(to[i].octets[0] == 1 || to[i].octets[0] == 2);
    EXPECT_EQ(to[i].octets[1], next[to[i].octets[0]]++);
  }
}

// From the return of ~Mr on no worker writes to the memory, though the peer keeps on writing: the octets stay as they
// were found then.
TEST_F(ThreadsTest, DeregisteredMemoryIsLeftAloneAtOnce) {
  constexpr std::size_t kLen = std::size_t{1} << 20;
  for (int round = 0; round < 8; ++round) {
    auto [client, server] = connect();
    Mem to(*server_.pd, kLen, Access::kLocalWrite | Access::kRemoteWrite);
    const Mem from(*client_->pd, kLen, Access::kNone, static_cast<std::uint8_t>(round + 1));
    const std::uint64_t addr = to.addr();
    const std::uint32_t rkey = to.mr->rkey();
    for (std::uint64_t i = 0; i < 16; ++i) ASSERT_TRUE(client.rdma_write(from, addr, rkey, i).ok());
    std::vector<Wc> sent;
    ASSERT_TRUE(client_->wait_wcs(1, sent));  // they are on their way
    to.mr.reset();
    std::fill(to.octets.begin(), to.octets.end(), std::uint8_t{0xee});
    ASSERT_TRUE(client.rdma_write(from, addr, rkey, 16).ok());
    ASSERT_TRUE(client_->wait_wcs(17, sent));  // to the last, success or not
    server_.wait_event(CmEventType::kDisconnected);
    EXPECT_TRUE(std::ranges::all_of(to.octets, [](std::uint8_t octet) { return octet == 0xee; })) << "round " << round;
  }
}

// ~Mr returns when no turn is under way that may have found the memory before: here one that lasts.
TEST_F(ThreadsTest, DeregistrationWaitsForTheTurnUnderWay) {
  soft::Fleet& fleet = static_cast<soft::SoftDevice&>(*server_.device).fleet();
  soft::RegionTable& regions = fleet.core().regions();
  Mem memory(*server_.pd, 64, Access::kLocalWrite);
  ASSERT_EQ(regions.size(), 1u);
  std::binary_semaphore in_turn{0};
  std::atomic<bool> turn_over = false;
  fleet.loops().back()->post([&] {
    in_turn.release();
    while (regions.size() > 0) std::this_thread::yield();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // room for a ~Mr that does not wait
    turn_over = true;
  });
  in_turn.acquire();
  memory.mr.reset();
  EXPECT_TRUE(turn_over);
}

// The second worker is held up and takes no connection. The first one keeps all but those that are on their way to it.
TEST_F(ThreadsTest, AWorkerThatIsBehindGetsFewConnections) {
  constexpr std::size_t kClients = 100, kKept = kClients - soft::Listener::kMaxComing;
  std::binary_semaphore in_turn{0}, go_on{0};
  static_cast<soft::SoftDevice&>(*server_.device).fleet().loops().back()->post([&] {
    in_turn.release();
    go_on.acquire();
  });
  in_turn.acquire();
  const sockaddr_storage to = listener_->local_addr();
  std::vector<Fd> clients;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(clients.back().get(), reinterpret_cast<const sockaddr*>(&to), sizeof(sockaddr_in)), 0);
    ASSERT_EQ(::send(clients.back().get(), "this is no MPA Request", 22, MSG_NOSIGNAL), 22);
  }
  // A loop that takes a connection ends it.
  const auto has_ended = [](const Fd& fd) {
    pollfd one{fd.get(), POLLIN, 0};
    return ::poll(&one, 1, 1) == 1;
  };
  const auto num_ended = [&] { return static_cast<std::size_t>(std::ranges::count_if(clients, has_ended)); };
  EXPECT_TRUE(wait_until(-1, [&] { return num_ended() >= kKept; })) << num_ended();
  EXPECT_EQ(num_ended(), kKept);
  go_on.release();
  EXPECT_TRUE(wait_until(-1, [&] { return num_ended() == kClients; }));
}

// One connection fails; the others, on both workers, do not notice.
TEST_F(ThreadsTest, FailureOfOneConnectionTouchesNoOther) {
  const Mem from(*client_->pd, 64, Access::kNone, 3);
  std::vector<std::pair<End, End>> ends;
  std::vector<Mem> to;
  for (int i = 0; i < 4; ++i) {
    ends.push_back(connect());
    to.emplace_back(*server_.pd, 64, Access::kLocalWrite);
  }
  ASSERT_TRUE(ends[1].first.send(from, 1).ok());  // no receive is posted: a Terminate comes back
  server_.wait_event(CmEventType::kDisconnected);
  client_->wait_event(CmEventType::kDisconnected);
  EXPECT_EQ(ends[1].first.qp->state(), QpState::kErr);
  for (const std::size_t i : {0u, 2u, 3u}) {
    ASSERT_TRUE(ends[i].second.recv(to[i], 10 + i).ok());
    ASSERT_TRUE(ends[i].first.send(from, i).ok());
  }
  std::vector<Wc> received;
  ASSERT_TRUE(server_.wait_wcs(3, received));
  for (const Wc& wc : received) EXPECT_EQ(wc.status, WcStatus::kSuccess);
}

// A Cq that overflows takes the queue pairs of both workers along, and only them.
TEST_F(ThreadsTest, OverflowReachesQueuePairsOfEveryWorker) {
  SoftConfig config = threads(2);
  config.cq_overcommit = true;
  client_.emplace(config);
  const auto small = std::move(*client_->device->create_cq(4, nullptr));
  const Mem from(*client_->pd, 64, Access::kNone, 3);
  Mem to(*server_.pd, 64, Access::kLocalWrite);
  std::vector<std::pair<End, End>> ends;
  for (int i = 0; i < 3; ++i) ends.push_back(connect(i == 2 ? nullptr : small.get()));
  for (std::uint64_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(ends[0].second.recv(to, i).ok());
    ASSERT_TRUE(ends[0].first.send(from, i).ok());
  }
  for (const std::size_t i : {0u, 1u}) {
    EXPECT_TRUE(wait_until(-1, [&] { return ends[i].first.qp->state() == QpState::kErr; })) << i;
  }
  EXPECT_EQ(ends[2].first.qp->state(), QpState::kRts);
}

// A device goes while its connections are busy.
TEST_F(ThreadsTest, DeviceGoesWhileTrafficFlows) {
  constexpr std::size_t kLen = std::size_t{1} << 18;
  std::vector<std::pair<End, End>> ends;
  std::vector<Mem> to;
  auto from = std::make_unique<Mem>(*client_->pd, kLen, Access::kNone);
  for (int i = 0; i < 4; ++i) {
    ends.push_back(connect());
    to.emplace_back(*server_.pd, kLen, Access::kLocalWrite | Access::kRemoteWrite);
    const Mem& sink = to.back();
    for (std::uint64_t n = 0; n < 16; ++n) {
      ASSERT_TRUE(ends.back().first.rdma_write(*from, sink.addr(), sink.mr->rkey(), n).ok());
    }
  }
  for (auto& [client, server] : ends) {
    client.qp.reset();
    client.id.reset();
  }
  from.reset();
  client_.emplace(threads(2));
  for (int i = 0; i < 4; ++i) server_.wait_event(CmEventType::kDisconnected);
}

// The connections of a listener are shared out among the workers, and a listener may go while connections come.
TEST_F(ThreadsTest, ListenerGoesWhileClientsCome) {
  for (int round = 0; round < 10; ++round) {
    std::vector<std::unique_ptr<CmId>> ids;
    std::vector<std::unique_ptr<Qp>> qps;
    for (int i = 0; i < 6; ++i) {
      ids.push_back(std::move(*client_->cm->create_id()));
      ASSERT_TRUE(ids.back()->resolve_addr(listener_->local_addr(), std::chrono::seconds(1)).ok());
      ASSERT_TRUE(ids.back()->resolve_route(std::chrono::seconds(1)).ok());
      qps.push_back(make_qp(*client_, *ids.back()));
      ASSERT_TRUE(ids.back()->connect({}).ok());
    }
    if (round % 2 == 1) server_.wait_event(CmEventType::kConnectRequest);
    listener_.reset();
    for (int ended = 0; ended < 6;) {
      ASSERT_TRUE(wait_until(client_->cm->fd(), [&] {
        while (auto event = client_->cm->get_event()) {
          const CmEventType type = event->type;
          if (type != CmEventType::kAddrResolved && type != CmEventType::kRouteResolved) return true;
        }
        return false;
      }));
      ++ended;
    }
    qps.clear();
    listener_ = std::move(*server_.cm->create_id());
    ASSERT_TRUE(listener_->bind_addr(loopback(AF_INET, 0)).ok());
    ASSERT_TRUE(listener_->listen(64).ok());
  }
}

TEST(Workers, TooManyAreRefused) {
  EXPECT_EQ(open_soft_device(threads(257)).error().errno_value, EINVAL);
}

}  // namespace
}  // namespace weft::verbs::testing
