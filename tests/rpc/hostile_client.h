#pragma once

#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rpcrdma/testing/vectors.h"
#include "tests/rpc/world.h"
#include "verbs-shim/api/testing/post_tap.h"

// A peer of a Server over soft RNICs that sends any octets.
namespace weft::rpcrdma::testing {

// A peer that speaks verbs but not necessarily RPC-over-RDMA; no tap hears it.
struct RawPeer {
  static constexpr std::size_t kLen = 8192;
  static constexpr std::size_t kReceives = 40;
  static constexpr std::size_t kSends = 64;

  RawPeer(verbs::Device& d, const sockaddr_storage& dst) : device(verbs::testing::bare(d)) {
    pd = std::move(*device.alloc_pd());
    cq = std::move(*device.create_cq(200, nullptr));
    events = std::move(*device.create_event_channel());
    id = std::move(*events->create_id());
    memory.resize(kLen * (kReceives + kSends));
    for (std::size_t slot = kReceives; slot < kReceives + kSends; ++slot) free_slots.push_back(slot);
    mr = std::move(*pd->reg_mr(memory.data(), memory.size(), verbs::Access::kLocalWrite));
    EXPECT_TRUE(id->resolve_addr(dst, std::chrono::seconds(5)).ok());
  }
  ~RawPeer() { qp.reset(); }

  void turn() {
    device.process(Clock::now());
    poll();
  }
  // Takes what the device has for the peer.
  void poll() {
    while (auto event = events->get_event()) on_event(*event);
    verbs::Wc wc;
    while (cq->poll(std::span(&wc, 1)) == 1) {
      if (wc.wr_id >= kReceives) free_slots.push_back(wc.wr_id);
      if (wc.status != verbs::WcStatus::kSuccess || wc.opcode != verbs::WcOpcode::kRecv) continue;
      const auto at = memory.begin() + static_cast<std::ptrdiff_t>(wc.wr_id * kLen);
      received.emplace_back(at, at + wc.byte_len);
      if (verbs::has(wc.wc_flags, verbs::WcFlags::kWithInv)) invalidated.push_back(wc.invalidated_rkey);
      post_receive(wc.wr_id);
    }
  }

  void on_event(verbs::CmEvent& event) {
    if (event.type == verbs::CmEventType::kAddrResolved) {
      EXPECT_TRUE(id->resolve_route(std::chrono::seconds(5)).ok());
    } else if (event.type == verbs::CmEventType::kRouteResolved) {
      verbs::QpInitAttr attr;
      attr.send_cq = attr.recv_cq = cq.get();
      qp = std::move(*id->create_qp(*pd, attr));
      for (std::size_t i = 0; i < kReceives; ++i) post_receive(i);
      verbs::ConnParam param;
      param.private_data = private_data;
      param.responder_resources = 4;
      EXPECT_TRUE(id->connect(param).ok());
    } else if (event.type == verbs::CmEventType::kEstablished) {
      established = true;
      server_private_data = event.param.private_data;
    } else if (event.type == verbs::CmEventType::kDisconnected) {
      disconnected = true;
    }
  }

  void post_receive(std::uint64_t slot) {
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(memory.data() + slot * kLen), kLen, mr->lkey()};
    (void)qp->post_recv({slot, std::span(&sge, 1)});
  }

  // A Send's slot is its own until the Send completes: the device reads it until then.
  bool may_send() const { return !free_slots.empty(); }
  void send(const Octets& octets) {
    if (qp == nullptr) return;  // the test has failed before
    ASSERT_TRUE(may_send()) << "more than " << kSends << " Sends are on the way";
    const std::uint64_t slot = free_slots.front();
    std::uint8_t* at = memory.data() + slot * kLen;
    std::memcpy(at, octets.data(), octets.size());
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(at), static_cast<std::uint32_t>(octets.size()), mr->lkey()};
    verbs::SendWr wr;
    wr.wr_id = slot;
    wr.sg_list = std::span(&sge, 1);
    wr.send_flags = verbs::SendFlags::kSignaled;
    ++num_sent;
    if (qp->post_send(wr).ok()) free_slots.pop_front();
  }

  // Binds a window over `region`, whose handle it returns, to be written by the server.
  std::uint32_t bind(verbs::Mw& window, verbs::Mr& region) {
    verbs::SendWr wr;
    wr.opcode = verbs::WrOpcode::kBindMw;
    const std::uint32_t handle = verbs::inc_rkey(window.rkey());
    const auto addr = reinterpret_cast<std::uintptr_t>(region.addr());
    wr.bind_mw = {&window, handle, &region, addr, region.length(), verbs::Access::kRemoteWrite};
    EXPECT_TRUE(qp->post_send(wr).ok());
    return handle;
  }

  verbs::Device& device;
  Octets private_data;
  Octets server_private_data;
  Octets memory;
  std::unique_ptr<verbs::Pd> pd;
  std::unique_ptr<verbs::Cq> cq;
  std::unique_ptr<verbs::CmChannel> events;
  std::unique_ptr<verbs::CmId> id;
  std::unique_ptr<verbs::Mr> mr;
  std::unique_ptr<verbs::Qp> qp;
  std::vector<Octets> received;
  std::vector<std::uint32_t> invalidated;  // by these
  std::deque<std::uint64_t> free_slots;
  std::size_t num_sent = 0;
  bool established = false;
  bool disconnected = false;
};

struct HostileClientTest : World {
  void open_peer(Octets private_data = {}) {
    peer = std::make_unique<RawPeer>(*client_device, server->local_addr());
    peer->private_data = std::move(private_data);
    also = [this] { peer->turn(); };
    run_until([this] { return peer->established; });
  }
  void TearDown() override { peer.reset(); }
  // The connection has ended, and the server knows why.
  void run_until_ended() {
    run_until([this] { return peer->disconnected && server->num_connections() == 0; });
  }

  std::unique_ptr<RawPeer> peer;
};

// A READ of `len` octets whose result goes to `target`, or into the Reply.
inline Octets read_to(std::uint32_t xid, std::uint32_t len, const std::optional<Segment>& target) {
  v1::Header header;
  header.xid = xid;
  header.credit = 32;
  if (target) header.lists.write_list = {{*target}};
  Octets payload;
  xdr::XdrWriter out(payload);
  emit_call(out, {xid, kTestProgram, kTestVersion, kRead, {}, {}});
  out.raw(read_args(0, len));
  return message(header, payload);
}

}  // namespace weft::rpcrdma::testing
