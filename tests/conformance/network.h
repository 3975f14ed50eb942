#pragma once

// A server and a client device on the loopback interface with any number of connections between them. Each connection
// has the PDs and Cqs that a test gives it: RFC 5042 tells streams that share something from streams that do not.

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "verbs-shim/api/testing/pair.h"
#include "verbs-shim/soft/device.h"

namespace weft::conformance {

using verbs::Access;
using verbs::CmEvent;
using verbs::CmEventType;
using verbs::WcStatus;
using verbs::WrOpcode;
using verbs::testing::Mem;
using Octets = std::vector<std::uint8_t>;

// M=0 C=0 R=0, revision 1, no private data.
inline const std::string kRequest = std::string("MPA ID Req Frame") + std::string("\0\1\0\0", 4);

constexpr Access kAll = Access::kLocalWrite | Access::kRemoteWrite | Access::kRemoteRead;

// Station is one device with the objects that most tests need once.
struct Station {
  explicit Station(const verbs::SoftConfig& config) {
    auto opened = verbs::open_soft_device(config);
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    device = std::move(*opened);
    pd = new_pd();
    cm = std::move(device->create_event_channel().value());
  }
  std::unique_ptr<verbs::Pd> new_pd() { return std::move(device->alloc_pd().value()); }
  std::unique_ptr<verbs::Cq> new_cq(int cqe) { return std::move(device->create_cq(cqe, nullptr).value()); }

  std::unique_ptr<verbs::Device> device;
  std::unique_ptr<verbs::Pd> pd;
  std::unique_ptr<verbs::CmChannel> cm;
};

// End is one end of one connection. Its completions are collected in wcs, unless it uses the Cq of another End.
struct End {
  std::unique_ptr<verbs::Cq> own_cq;
  std::unique_ptr<verbs::CmId> id;
  std::unique_ptr<verbs::Qp> qp;
  std::deque<verbs::Wc> wcs;
  bool established = false;
  std::optional<std::string> ended;  // the text of the connection's end
  bool collect = true;

  ~End() { close(); }
  void close() {
    qp.reset();
    id.reset();
    own_cq.reset();
  }
  verbs::Status send(const std::vector<verbs::Sge>& sges, std::uint64_t wr_id = 1) {
    return qp->post_send({.wr_id = wr_id, .sg_list = sges});
  }
  verbs::Status recv(const std::vector<verbs::Sge>& sges, std::uint64_t wr_id = 1) {
    return qp->post_recv({.wr_id = wr_id, .sg_list = sges});
  }
  verbs::Status rdma(WrOpcode opcode, const std::vector<verbs::Sge>& sges, std::uint64_t remote_addr,
                     std::uint32_t rkey, std::uint64_t wr_id = 1,
                     verbs::SendFlags flags = verbs::SendFlags::kSignaled) {
    return qp->post_send({.wr_id = wr_id,
                          .sg_list = sges,
                          .opcode = opcode,
                          .send_flags = flags,
                          .remote_addr = remote_addr,
                          .rkey = rkey});
  }
  verbs::Status send_invalidate(const std::vector<verbs::Sge>& sges, std::uint32_t rkey, std::uint64_t wr_id = 1) {
    return qp->post_send({.wr_id = wr_id, .sg_list = sges, .opcode = WrOpcode::kSendWithInv, .invalidate_rkey = rkey});
  }
};

struct Link {
  End server;
  End client;
};

struct LinkOptions {
  verbs::Pd* server_pd = nullptr;  // null: the station's
  verbs::Cq* server_cq = nullptr;  // null: one of the link's own
  verbs::QpCap cap{.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4, .max_recv_sge = 4};
  std::uint8_t client_depth = 16;  // IRD and ORD that the client asks for
  std::uint8_t server_depth = 16;
};

class NetworkTest : public ::testing::Test {
 protected:
  // Opens both devices and the listener; to be called first.
  void open(const verbs::SoftConfig& server_config = {}, const verbs::SoftConfig& client_config = {}) {
    server_.emplace(server_config);
    client_.emplace(client_config);
    listener_ = std::move(server_->cm->create_id().value());
    ASSERT_TRUE(listener_->bind_addr(verbs::testing::loopback(AF_INET, 0)).ok());
    ASSERT_TRUE(listener_->listen(64).ok());
  }

  void TearDown() override {
    links_.clear();
    listener_.reset();
  }

  Link& link(const LinkOptions& options = {}) {
    links_.push_back(std::make_unique<Link>());
    Link& made = *links_.back();
    made.client.id = std::move(client_->cm->create_id().value());
    EXPECT_TRUE(made.client.id->resolve_addr(listener_->local_addr(), std::chrono::seconds(1)).ok());
    EXPECT_TRUE(made.client.id->resolve_route(std::chrono::seconds(1)).ok());
    make_qp(*client_, made.client, *client_->pd, nullptr, options.cap);
    accepting_ = &made;
    accept_options_ = options;
    EXPECT_TRUE(made.client.id->connect({{}, options.client_depth, options.client_depth}).ok());
    EXPECT_TRUE(drive([&] { return made.client.established && made.server.established; }));
    accepting_ = nullptr;
    return made;
  }

  static void make_qp(Station& station, End& end, verbs::Pd& pd, verbs::Cq* cq, const verbs::QpCap& cap) {
    if (cq == nullptr) {
      end.own_cq = station.new_cq(static_cast<int>(cap.max_send_wr + cap.max_recv_wr));
      cq = end.own_cq.get();
    } else {
      end.collect = false;
    }
    auto qp = end.id->create_qp(pd, {.send_cq = cq, .recv_cq = cq, .cap = cap});
    ASSERT_TRUE(qp.ok()) << qp.error().message;
    end.qp = std::move(*qp);
  }

  std::size_t step() {
    std::size_t moved = 0;
    for (auto* station : {&*server_, &*client_}) {
      moved += station->device->process(std::chrono::steady_clock::now() + skew_);
      while (take_events_) {
        auto event = station->cm->get_event();
        if (!event) break;
        on_event(std::move(*event));
      }
    }
    for (auto& each : links_) {
      collect(each->server);
      collect(each->client);
    }
    return moved;
  }
  // Runs both devices until done() holds; false after ten seconds without it.
  bool drive(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done()) {
      if (step() == 0 && std::chrono::steady_clock::now() > deadline) return false;
    }
    return true;
  }
  // Nothing moves any more.
  void settle() {
    for (int quiet = 0; quiet < 100; ++quiet) {
      if (step() > 0) quiet = 0;
    }
  }
  // The next completion of an end, kGeneralErr where none comes.
  verbs::Wc next(End& end) {
    if (!drive([&] { return !end.wcs.empty(); })) return {.status = WcStatus::kGeneralErr};
    const verbs::Wc wc = end.wcs.front();
    end.wcs.pop_front();
    return wc;
  }
  bool succeeds(End& end) { return next(end).status == WcStatus::kSuccess; }
  // Both ends end; returns the Terminate that the client received as "layer/etype/code", "" for none.
  std::string terminate_seen(Link& at) {
    if (!drive([&] { return at.client.ended && at.server.ended; })) return "nothing ended";
    const std::string& text = *at.client.ended;
    const auto open = text.find('('), close = text.find(')', open);  // advice follows
    if (text.find("received a Terminate") == std::string::npos || close == std::string::npos) return "";
    return text.substr(open + 1, close - open - 1);
  }
  // One RDMA Write or Read of the client, and the Terminate that it draws.
  std::string attack(Link& from, WrOpcode opcode, const Mem& local, std::uint64_t to, std::uint32_t rkey) {
    EXPECT_TRUE(from.client.rdma(opcode, {local.sge()}, to, rkey).ok());
    return terminate_seen(from);
  }
  // A whole Write of local into target succeeds over this link.
  void expect_writes(Link& at, const Mem& local, const Mem& target) {
    ASSERT_TRUE(at.client.rdma(WrOpcode::kRdmaWrite, {local.sge()}, target.addr(), target.mr->rkey()).ok());
    ASSERT_TRUE(succeeds(at.client));
    ASSERT_TRUE(drive([&] { return target.octets == local.octets; }));
  }

  // ---- a peer that is a plain socket
  Fd raw_connect() {
    const sockaddr_storage to = listener_->local_addr();
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(sockaddr_in)), 0);
    return fd;
  }
  // A connection in Full Operation, without CRC where the server does not ask for it.
  Fd raw_link(End& server_end) {
    Fd raw = raw_connect();
    say(raw, kRequest);
    raw_accepting_ = &server_end;
    char reply[20];
    EXPECT_TRUE(drive([&] { return ::recv(raw.get(), reply, sizeof(reply), MSG_DONTWAIT) == sizeof(reply); }));
    raw_accepting_ = nullptr;
    return raw;
  }
  static void say(const Fd& fd, const std::string& octets) {
    EXPECT_EQ(::send(fd.get(), octets.data(), octets.size(), MSG_NOSIGNAL), static_cast<ssize_t>(octets.size()));
  }
  // Whether the other end has closed or reset. Its earlier octets are lost.
  static bool gone(const Fd& fd) {
    char octets[64];
    ssize_t n = 0;
    while ((n = ::recv(fd.get(), octets, sizeof(octets), MSG_DONTWAIT)) > 0) continue;
    return n == 0 || errno == ECONNRESET;
  }
  // An RDMA Write in one FPDU with four octets of zero for its CRC.
  static std::string write_fpdu(std::uint32_t stag, std::uint64_t to, const std::string& payload) {
    std::string ulpdu = "\xc1\x40";
    for (int shift = 24; shift >= 0; shift -= 8) ulpdu.push_back(static_cast<char>(stag >> shift));
    for (int shift = 56; shift >= 0; shift -= 8) ulpdu.push_back(static_cast<char>(to >> shift));
    ulpdu += payload;
    const std::string len = {static_cast<char>(ulpdu.size() >> 8), static_cast<char>(ulpdu.size())};
    return len + ulpdu + std::string((6 - ulpdu.size() % 4) % 4, '\0') + std::string(4, '\0');
  }
  // Reads until the end. Returns the Terminate as "layer/etype/code", "" for none.
  std::string raw_terminate(const Fd& fd) {
    std::string heard;
    EXPECT_TRUE(drive([&] {
      char octets[512];
      const ssize_t n = ::recv(fd.get(), octets, sizeof(octets), MSG_DONTWAIT);
      if (n > 0) heard.append(octets, static_cast<std::size_t>(n));
      return n == 0 || (n < 0 && errno == ECONNRESET);
    }));
    // Untagged, last, opcode 7; the control word stands behind the header of 18 octets.
    if (heard.size() < 24 || heard.substr(2, 2) != "\x41\x47") return "";
    char text[16];
    const auto type = static_cast<unsigned char>(heard[20]), code = static_cast<unsigned char>(heard[21]);
    std::snprintf(text, sizeof(text), "%u/%u/%02x", type >> 4, type & 15u, unsigned{code});
    return text;
  }

  virtual void on_event(CmEvent event) {
    if (event.type == CmEventType::kConnectRequest && raw_accepting_ != nullptr) {
      raw_accepting_->id = std::move(event.new_id);
      make_qp(*server_, *raw_accepting_, *server_->pd, nullptr, {.max_send_wr = 4, .max_recv_wr = 4});
      EXPECT_TRUE(raw_accepting_->id->accept({}).ok());
      return;
    }
    if (event.type == CmEventType::kConnectRequest) {
      if (accepting_ == nullptr) return;  // dropped, which rejects it
      End& end = accepting_->server;
      end.id = std::move(event.new_id);
      verbs::Pd* pd = accept_options_.server_pd;
      make_qp(*server_, end, pd != nullptr ? *pd : *server_->pd, accept_options_.server_cq, accept_options_.cap);
      EXPECT_TRUE(end.id->accept({{}, accept_options_.server_depth, accept_options_.server_depth}).ok());
      return;
    }
    for (auto& each : links_) {
      for (End* end : {&each->server, &each->client}) {
        if (end->id.get() != event.id) continue;
        if (event.type == CmEventType::kEstablished) end->established = true;
        if (event.type == CmEventType::kDisconnected) end->ended = event.text;
      }
    }
  }

  std::optional<Station> server_;
  std::optional<Station> client_;
  std::unique_ptr<verbs::CmId> listener_;
  std::vector<std::unique_ptr<Link>> links_;
  bool take_events_ = true;
  std::chrono::steady_clock::duration skew_{};

 private:
  static void collect(End& end) {
    if (!end.own_cq || !end.collect) return;
    verbs::Wc wc[16];
    for (int n = end.own_cq->poll(wc); n > 0; n = end.own_cq->poll(wc)) {
      for (int i = 0; i < n; ++i) end.wcs.push_back(wc[i]);
    }
  }

  Link* accepting_ = nullptr;
  End* raw_accepting_ = nullptr;
  LinkOptions accept_options_;
};

}  // namespace weft::conformance
