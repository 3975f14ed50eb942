#pragma once

// The soft RNIC against raw TCP peers that speak, and break, RDMAP octet by octet.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "tests/conformance/rdmap_peer.h"
#include "verbs-shim/api/testing/pair.h"
#include "verbs-shim/soft/device.h"

namespace weft::conformance {

using verbs::Access;
using verbs::CmEventType;
using verbs::Wc;
using verbs::WcStatus;
using verbs::testing::Mem;

inline constexpr Access kAll = Access::kLocalWrite | Access::kRemoteWrite | Access::kRemoteRead;

// Peer is the raw end of one connection, with the device's end beside it.
struct Peer {
  ~Peer() {
    qp.reset();
    id.reset();
  }
  void say(ConstBytes octets) {
    out.insert(out.end(), octets.begin(), octets.end());
    pump();
  }
  void say_ulpdu(const Octets& ulpdu) { say(sim::frame_fpdu(ulpdu)); }
  // Moves octets to and from the socket, as far as it takes and gives them.
  void pump() {
    while (!out.empty()) {
      const ssize_t n = ::send(fd.get(), out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n <= 0) break;
      out.erase(out.begin(), out.begin() + n);
    }
    std::uint8_t buffer[4096];
    while (listening && !eof && !reset) {
      const ssize_t n = ::recv(fd.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
      if (n > 0) {
        heard.insert(heard.end(), buffer, buffer + n);
      } else if (n == 0) {
        eof = true;
        ::shutdown(fd.get(), SHUT_WR);
      } else if (errno == ECONNRESET) {
        reset = true;
      } else {
        break;
      }
    }
  }
  // Whole FPDUs behind the MPA Reply.
  std::vector<Segment> segments() const {
    std::vector<Segment> all;
    if (heard.size() < 20) return all;
    for (const Octets& ulpdu : sim::deframe(ConstBytes(heard).subspan(20))) all.push_back(decode(ulpdu));
    return all;
  }
  // Closes without TIME_WAIT.
  void hang_up() {
    const linger off{1, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &off, sizeof(off));
    fd.reset();
  }

  Fd fd;
  Octets out, heard;
  bool listening = true, eof = false, reset = false;
  std::unique_ptr<verbs::CmId> id;
  std::unique_ptr<verbs::Qp> qp;
};

// Window is a memory window that one stream's peer may use.
struct Window {
  std::unique_ptr<verbs::Mw> mw;
  std::uint32_t rkey = 0;
};

class RdmapDevice : public ::testing::Test {
 protected:
  void SetUp() override { open({}); }
  void TearDown() override { close(); }

  void close() {
    peers_.clear();
    listener_.reset();
    cm_.reset();
    cq_.reset();
    channel_.reset();
    pd_.reset();
    device_.reset();
  }
  void open(const verbs::SoftConfig& config) { open_with(config, 4096); }
  void open_with(const verbs::SoftConfig& config, int cqe) {
    auto device = verbs::open_soft_device(config);
    ASSERT_TRUE(device.ok()) << device.error().message;
    device_ = std::move(*device);
    pd_ = std::move(device_->alloc_pd().value());
    channel_ = std::move(device_->create_comp_channel().value());
    cq_ = std::move(device_->create_cq(cqe, channel_.get()).value());
    cm_ = std::move(device_->create_event_channel().value());
    listener_ = std::move(cm_->create_id().value());
    ASSERT_TRUE(listener_->bind_addr(verbs::testing::loopback(AF_INET, 0)).ok());
    ASSERT_TRUE(listener_->listen(16).ok());
  }

  void step() {
    device_->process(std::chrono::steady_clock::now());
    for (auto& peer : peers_)
      if (peer->fd) peer->pump();
    Wc wc[16];
    for (int n = cq_->poll(wc); n > 0; n = cq_->poll(wc)) wcs_.insert(wcs_.end(), wc, wc + n);
    while (auto event = cm_->get_event()) events_.push_back(std::move(*event));
  }
  template <typename Done>
  bool drive(Done done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (step(); !done(); step())
      if (std::chrono::steady_clock::now() > deadline) return false;
    return true;
  }
  bool take_event(CmEventType type, verbs::CmEvent* out = nullptr) {
    for (auto it = events_.begin(); it != events_.end(); ++it) {
      if (it->type != type) continue;
      if (out != nullptr) *out = std::move(*it);
      events_.erase(it);
      return true;
    }
    return false;
  }

  verbs::QpInitAttr qp_attr(verbs::Cq& cq) const {
    verbs::QpInitAttr attr;
    attr.send_cq = attr.recv_cq = &cq;
    attr.cap = {
        .max_send_wr = max_wr_, .max_recv_wr = max_wr_, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 64};
    return attr;
  }
  // A connection whose peer is the test; ird and ord as the device grants them, pd and cq the fixture's where null.
  Peer& connect(std::uint8_t ird = 16, verbs::Pd* pd = nullptr, verbs::Cq* cq = nullptr) {
    peers_.push_back(std::make_unique<Peer>());
    Peer& peer = *peers_.back();
    peer.fd = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;  // the test decides when octets leave
    ::setsockopt(peer.fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const sockaddr_storage to = listener_->local_addr();
    EXPECT_EQ(::connect(peer.fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(sockaddr_in)), 0)
        << std::strerror(errno);
    peer.say(sim::startup_frame(mpa::FrameKind::kRequest, 1));
    verbs::CmEvent request;
    EXPECT_TRUE(drive([&] { return take_event(CmEventType::kConnectRequest, &request); }));
    peer.id = std::move(request.new_id);
    peer.qp = std::move(peer.id->create_qp(pd != nullptr ? *pd : *pd_, qp_attr(cq != nullptr ? *cq : *cq_)).value());
    EXPECT_TRUE(peer.id->accept({{}, ird, 16}).ok());
    EXPECT_TRUE(drive([&] { return take_event(CmEventType::kEstablished) && peer.heard.size() >= 20; }));
    peer.say_ulpdu(write(1, 0, {}));
    return peer;
  }
  // Makes all of mem reachable for this peer, to read and to write.
  Window bind(Peer& peer, Mem& mem) {
    Window window{std::move(pd_->alloc_mw().value())};
    window.rkey = verbs::inc_rkey(window.mw->rkey());
    verbs::SendWr wr;
    wr.opcode = verbs::WrOpcode::kBindMw;
    wr.bind_mw = {window.mw.get(), window.rkey,       mem.mr.get(),
                  mem.addr(),      mem.octets.size(), Access::kRemoteRead | Access::kRemoteWrite};
    EXPECT_TRUE(peer.qp->post_send(wr).ok());
    EXPECT_TRUE(drive([&] { return !wcs_.empty(); }));
    EXPECT_EQ(wcs_.at(0).status, WcStatus::kSuccess);
    wcs_.clear();
    return window;
  }
  // Says something bad and returns the Terminate that comes back.
  Segment refused(Peer& peer, const Octets& bad) {
    const std::size_t before = peer.segments().size();
    peer.say_ulpdu(bad);
    EXPECT_TRUE(drive([&] { return peer.eof || peer.reset; }));
    EXPECT_FALSE(peer.reset);
    const auto all = peer.segments();
    EXPECT_EQ(all.size(), before + 1);
    return all.size() == before + 1 ? all.back() : Segment{};
  }
  // Whether a Write of one octet to the region arrives.
  bool writable(Peer& peer, Mem& mem, std::size_t at) {
    const auto value = static_cast<std::uint8_t>(mem.octets[at] + 1);
    peer.say_ulpdu(write(mem.mr->rkey(), mem.addr(at), Octets(1, value)));
    return drive([&] { return mem.octets[at] == value || peer.eof; }) && mem.octets[at] == value;
  }

  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<verbs::Pd> pd_;
  std::unique_ptr<verbs::CompChannel> channel_;
  std::unique_ptr<verbs::Cq> cq_;
  std::unique_ptr<verbs::CmChannel> cm_;
  std::unique_ptr<verbs::CmId> listener_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<Wc> wcs_;
  std::vector<verbs::CmEvent> events_;
  std::uint32_t max_wr_ = 64;
};

}  // namespace weft::conformance
