#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "verbs-shim/api/cm.h"
#include "verbs-shim/api/verbs.h"

// The parts of the suite that every backend has to pass. The test is one thread on the loopback interface. It drives
// both devices by process(), or waits with a deadline for devices that move by themselves. Optional abilities are
// tested where Caps names them, and skipped elsewhere.
namespace weft::verbs::testing {

struct Backend {
  std::string name;
  std::function<Result<std::unique_ptr<Device>>()> open;
  // How the test waits: asleep on the descriptors, or spinning.
  bool blocking = false;
  int family = AF_INET;
  // Whether IRD and ORD are exchanged when connecting.
  bool depths = true;
  // Whether the device moves by itself: the test looks again and again, or with `blocking` sleeps on Device::fd alone,
  // its Cqs being without channels then.
  bool own_progress = false;
  // Where the server listens; empty: the loopback address of the family.
  std::string address{};
  // Whether private data has no length of its own on the wire: the other end sees all room of the message.
  bool pads_private_data = false;
  // Whether accepting with an IRD below the peer's ORD raises the IRD, instead of lowering the peer's ORD.
  bool raises_ird = false;
  // Whether Qp::counters counts.
  bool counters = true;
  // Whether the end of a broken connection says why: a status with kDisconnected, the Terminate in Wc::vendor_err.
  bool tells_why = true;
  // How a request with a wrong lkey completes, and a bind that its region does not allow.
  WcStatus wrong_lkey = WcStatus::kLocProtErr;
  WcStatus refused_bind = WcStatus::kMwBindErr;
  // Skipped tests, each with the device's deviation from the API.
  std::map<std::string, std::string> deviations{};
};

inline void PrintTo(const Backend& backend, std::ostream* out) {
  *out << backend.name;
}

inline sockaddr_storage loopback(int family, std::uint16_t port) {
  sockaddr_storage out{};
  if (family == AF_INET6) {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_addr = in6addr_loopback;
    in.sin6_port = htons(port);
    std::memcpy(&out, &in, sizeof(in));
  } else {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in.sin_port = htons(port);
    std::memcpy(&out, &in, sizeof(in));
  }
  return out;
}

inline sockaddr_storage bind_address(const Backend& backend) {
  sockaddr_storage out = loopback(backend.family, 0);
  if (backend.address.empty()) return out;
  void* at = backend.family == AF_INET6 ? static_cast<void*>(&reinterpret_cast<sockaddr_in6&>(out).sin6_addr)
                                        : static_cast<void*>(&reinterpret_cast<sockaddr_in&>(out).sin_addr);
  EXPECT_EQ(::inet_pton(backend.family, backend.address.c_str(), at), 1) << backend.address;
  return out;
}

// Mem is registered memory.
struct Mem {
  Mem(Pd& pd, std::size_t len, Access access, std::uint8_t fill = 0) : octets(len, fill) {
    auto result = pd.reg_mr(octets.data(), len, access);
    EXPECT_TRUE(result.ok());
    if (result.ok()) mr = std::move(result.value());
  }
  std::uint64_t addr(std::size_t off = 0) const { return reinterpret_cast<std::uintptr_t>(octets.data()) + off; }
  Sge sge(std::size_t off, std::size_t len) const { return {addr(off), static_cast<std::uint32_t>(len), mr->lkey()}; }
  Sge sge() const { return sge(0, octets.size()); }

  std::vector<std::uint8_t> octets;
  std::unique_ptr<Mr> mr;
};

// Side is one end: a device with one of everything.
struct Side {
  std::unique_ptr<Device> device;
  std::unique_ptr<Pd> pd;
  std::unique_ptr<CompChannel> channel;
  std::unique_ptr<Cq> cq;
  std::unique_ptr<Srq> srq;  // of its queue pairs, where there is one
  std::unique_ptr<CmChannel> cm;
  std::unique_ptr<CmId> id;
  std::unique_ptr<Qp> qp;
  std::deque<Wc> wcs;
  std::deque<CmEvent> events;
  bool poll_cq = true;  // whether drive() empties the Cq into wcs

  ~Side() { close(); }
  void close() {
    events.clear();
    qp.reset();
    id.reset();
    cm.reset();
    srq.reset();
    cq.reset();
    channel.reset();
    pd.reset();
    device.reset();
  }

  void collect() {
    while (auto event = cm->get_event()) events.push_back(std::move(*event));
    Wc wc[16];
    while (poll_cq) {
      const int n = cq->poll(wc);
      if (n <= 0) break;
      for (int i = 0; i < n; ++i) wcs.push_back(wc[i]);
    }
  }
  bool has(CmEventType type) const {
    for (const CmEvent& event : events) {
      if (event.type == type) return true;
    }
    return false;
  }
  std::optional<CmEvent> take(CmEventType type) {
    for (auto it = events.begin(); it != events.end(); ++it) {
      if (it->type != type) continue;
      std::optional<CmEvent> event(std::move(*it));
      events.erase(it);
      return event;
    }
    return std::nullopt;
  }
  std::optional<Wc> take_wc() {
    if (wcs.empty()) return std::nullopt;
    const Wc wc = wcs.front();
    wcs.pop_front();
    return wc;
  }
  // The access that the sink of a Read has to allow.
  Access sink() const {
    const bool target = device->caps().read_sink_needs_remote_write;
    return Access::kLocalWrite | (target ? Access::kRemoteWrite : Access::kNone);
  }
  Status send(const std::vector<Sge>& sges, std::uint64_t wr_id = 1, SendFlags flags = SendFlags::kSignaled) {
    return qp->post_send({.wr_id = wr_id, .sg_list = sges, .opcode = WrOpcode::kSend, .send_flags = flags});
  }
  Status rdma(WrOpcode opcode, const std::vector<Sge>& sges, std::uint64_t remote_addr, std::uint32_t rkey,
              std::uint64_t wr_id = 1, SendFlags flags = SendFlags::kSignaled) {
    return qp->post_send({.wr_id = wr_id,
                          .sg_list = sges,
                          .opcode = opcode,
                          .send_flags = flags,
                          .remote_addr = remote_addr,
                          .rkey = rkey});
  }
  Status recv(const std::vector<Sge>& sges, std::uint64_t wr_id = 1) {
    return qp->post_recv({.wr_id = wr_id, .sg_list = sges});
  }
};

// VerbsTest has a server that listens and a client, on two devices of one backend.
class VerbsTest : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    const auto& deviations = GetParam().deviations;
    // "VerbsTest/NobodyListens" and so on: parameterized names without prefix and suffix.
    std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    name.erase(name.find('/'));
    if (const auto found = deviations.find(name); found != deviations.end()) GTEST_SKIP() << found->second;
    open(server_);
    open(client_);
  }

  void open(Side& side) {
    auto device = GetParam().open();
    ASSERT_TRUE(device.ok()) << device.error().message;
    side.device = std::move(*device);
    side.pd = std::move(side.device->alloc_pd().value());
    side.channel = std::move(side.device->create_comp_channel().value());
    const bool by_device = GetParam().own_progress && GetParam().blocking;
    side.cq = std::move(side.device->create_cq(cqe_, by_device ? nullptr : side.channel.get()).value());
    side.cm = std::move(side.device->create_event_channel().value());
    side.id = std::move(side.cm->create_id().value());
    cap_.max_inline_data = std::min(cap_.max_inline_data, side.device->caps().max_inline_data);
  }

  // For tests of the channel itself, before the queue pair is made.
  void use_channel(Side& side) { side.cq = std::move(side.device->create_cq(cqe_, side.channel.get()).value()); }

  // Runs both devices until done() holds; false after ten seconds without it.
  bool drive(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (true) {
      const std::size_t moved = step();
      if (done()) return true;
      if (std::chrono::steady_clock::now() > deadline) return false;
      if (GetParam().blocking) {
        if (moved == 0) sleep();
      } else if (GetParam().own_progress) {
        pause();
      }
    }
  }
  // Whether the server gets a completion within ten seconds without a call into the client.
  bool arrives_alone() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (server_.wcs.empty() && std::chrono::steady_clock::now() < deadline) {
      server_.device->process(now());
      server_.collect();
      pause();
    }
    return !server_.wcs.empty();
  }
  // Lets everything settle: nothing moves in either device for a while. Tests assert after it only that something has
  // not happened.
  void settle() {
    for (int i = 0; i < 20 && GetParam().own_progress; ++i) {
      step();
      pause();
    }
    for (int quiet = 0; quiet < 100; ++quiet) {
      if (step() > 0) quiet = 0;
    }
  }
  // The private data as the other end sees it.
  std::vector<std::uint8_t> as_received(std::vector<std::uint8_t> data, std::size_t seen) const {
    if (GetParam().pads_private_data) data.resize(std::max(data.size(), seen));
    return data;
  }
  // Waits until the receiver has counted the sent messages. A device that does not count gets a moment.
  bool arrived(const std::function<bool()>& counted) {
    if (GetParam().counters) return drive(counted);
    settle();
    return true;
  }
  std::size_t step() {
    std::size_t moved = 0;
    for (Side* side : {&server_, &client_}) {
      if (!side->device) continue;
      moved += side->device->process(now());
      side->collect();
    }
    return moved;
  }
  // A moment for the device's own threads, shorter when an event comes.
  void pause() {
    pollfd fds[2] = {{server_.cm ? server_.cm->fd() : -1, POLLIN, 0}, {client_.cm ? client_.cm->fd() : -1, POLLIN, 0}};
    ::poll(fds, 2, 1);
  }
  void sleep() {
    std::vector<pollfd> fds;
    for (Side* side : {&server_, &client_}) {
      if (!side->device) continue;
      fds.push_back({side->device->fd(), POLLIN, 0});
      if (!GetParam().own_progress) fds.push_back({side->cm->fd(), POLLIN, 0});
    }
    if (GetParam().own_progress) {
      // Some tests wait for states and counters, which cause no event. They look again after a while.
      ::poll(fds.data(), fds.size(), 50);
      return;
    }
    const int n = ::poll(fds.data(), fds.size(), 5000);
    EXPECT_GT(n, 0) << "nothing woke us for five seconds";
  }
  TimePoint now() const { return std::chrono::steady_clock::now() + skew_; }

  Status listen(int backlog = 16) {
    if (Status status = server_.id->bind_addr(bind_address(GetParam())); !status) return status;
    return server_.id->listen(backlog);
  }
  QpInitAttr init_attr(Side& side) const {
    QpInitAttr attr;
    attr.send_cq = side.cq.get();
    attr.recv_cq = side.cq.get();
    attr.srq = side.srq.get();
    attr.cap = cap_;
    return attr;
  }
  void make_qp(Side& side) {
    auto qp = side.id->create_qp(*side.pd, init_attr(side));
    ASSERT_TRUE(qp.ok()) << qp.error().message;
    side.qp = std::move(*qp);
  }
  void resolve(CmId& id, const sockaddr_storage& dst) {
    ASSERT_TRUE(id.resolve_addr(dst, std::chrono::seconds(1)).ok());
    ASSERT_TRUE(drive([&] { return client_.take(CmEventType::kAddrResolved).has_value(); }));
    ASSERT_TRUE(id.resolve_route(std::chrono::seconds(1)).ok());
    ASSERT_TRUE(drive([&] { return client_.take(CmEventType::kRouteResolved).has_value(); }));
  }
  void start_connect(const ConnParam& param = {{}, 16, 16}) {
    ASSERT_NO_FATAL_FAILURE(resolve(*client_.id, server_.id->local_addr()));
    make_qp(client_);
    const Status status = client_.id->connect(param);
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
  // The listener makes way for the connection in server_.id.
  void take_request(CmEvent* out = nullptr) {
    ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kConnectRequest); }));
    CmEvent event = *server_.take(CmEventType::kConnectRequest);
    listener_ = std::move(server_.id);
    server_.id = std::move(event.new_id);
    if (out != nullptr) *out = std::move(event);
  }
  void establish(const ConnParam& accept = {{}, 16, 16}) {
    ASSERT_TRUE(listen().ok());
    start_connect();
    take_request();
    make_qp(server_);
    if (before_accept_) before_accept_();
    ASSERT_TRUE(server_.id->accept(accept).ok());
    ASSERT_TRUE(
        drive([&] { return server_.has(CmEventType::kEstablished) && client_.has(CmEventType::kEstablished); }));
  }
  std::optional<Wc> wait_wc(Side& side) {
    EXPECT_TRUE(drive([&] { return !side.wcs.empty(); })) << "no completion";
    return side.take_wc();
  }

  // Both ends of a further connection between the two devices, of the same protection domains and completion queues.
  struct Connection {
    std::unique_ptr<CmId> id, server_id;
    std::unique_ptr<Qp> qp, server_qp;
  };
  void connect_another(Connection& out) {
    out.id = std::move(client_.cm->create_id().value());
    ASSERT_NO_FATAL_FAILURE(resolve(*out.id, listener_->local_addr()));
    out.qp = std::move(out.id->create_qp(*client_.pd, init_attr(client_)).value());
    ASSERT_TRUE(out.id->connect({{}, 16, 16}).ok());
    ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kConnectRequest); }));
    out.server_id = std::move(server_.take(CmEventType::kConnectRequest)->new_id);
    out.server_qp = std::move(out.server_id->create_qp(*server_.pd, init_attr(server_)).value());
    ASSERT_TRUE(out.server_id->accept({{}, 16, 16}).ok());
    ASSERT_TRUE(drive([&] { return out.qp->state() == QpState::kRts && out.server_qp->state() == QpState::kRts; }));
  }
  // The side's next asynchronous event about an object of the test, or about its device. Events of a port are dropped:
  // a kernel's device raises one whenever its network interface changes, which the test cannot prevent.
  std::optional<AsyncEvent> take_async(Side& side) {
    std::optional<AsyncEvent> event = side.device->get_async_event();
    while (event && event->port_num != 0) event = side.device->get_async_event();
    return event;
  }
  void expect_no_async(Side& side, const char* why = "") {
    const auto event = take_async(side);
    EXPECT_FALSE(event) << async_event_str(event->type) << ": " << event->text << "; " << why;
  }
  // Nothing where none comes in time.
  std::optional<AsyncEvent> wait_async(Side& side) {
    std::optional<AsyncEvent> event;
    EXPECT_TRUE(drive([&] {
      event = take_async(side);
      return event.has_value();
    })) << "no asynchronous event";
    return event;
  }

  int cqe_ = 256;
  QpCap cap_{.max_send_wr = 32, .max_recv_wr = 32, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 256};
  std::chrono::steady_clock::duration skew_{};
  std::function<void()> before_accept_;
  Side server_;
  Side client_;
  std::unique_ptr<CmId> listener_;
};

}  // namespace weft::verbs::testing
