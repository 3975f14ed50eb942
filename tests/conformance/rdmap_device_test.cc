// RFC 5040 sections 1.1, 5, 6.2 and 7 where sockets and several streams matter.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "mpa/fpdu.h"
#include "tests/conformance/rdmap_device.h"

namespace weft::conformance {
namespace {

TEST_F(RdmapDevice, OneStreamsErrorIsNotTheOthers) {
  RecordProperty("proves", "RDMAP-1.1-01");
  Mem inbox(*pd_, 4096, Access::kLocalWrite), region(*pd_, 64, kAll);
  Peer& a = connect();
  Peer& b = connect();
  std::uint32_t msn = 0;
  const auto exchange = [&] {  // a Send each way and a Read on b
    ++msn;
    ASSERT_TRUE(b.qp->post_recv({.wr_id = msn, .sg_list = std::array{inbox.sge(0, 64)}}).ok());
    b.say_ulpdu(send(msn, ramp(8)));
    b.say_ulpdu(read_request(msn, 7, 0, 8, region.mr->rkey(), region.addr()));
    ASSERT_TRUE(b.qp->post_send({.wr_id = 100 + msn, .sg_list = std::array{inbox.sge(0, 8)}}).ok());
    ASSERT_TRUE(drive([&] { return wcs_.size() == 2 && b.segments().size() == 2 * msn; }));
    for (const Wc& wc : wcs_) EXPECT_EQ(wc.status, WcStatus::kSuccess);
    wcs_.clear();
    const auto heard = b.segments();
    for (const Segment& s : {heard[2 * msn - 2], heard[2 * msn - 1]}) {
      if (s.tagged) {
        EXPECT_EQ(s.opcode, 2u);
      } else {
        EXPECT_EQ(s.msn, msn);
      }
    }
  };
  exchange();
  a.say_ulpdu(send(9, ramp(8)));  // a gap in a's MSNs
  ASSERT_TRUE(drive([&] { return a.eof; }));
  EXPECT_EQ(a.segments().back().opcode, 7u);
  exchange();
  exchange();
  EXPECT_FALSE(b.eof || b.reset);
}

TEST_F(RdmapDevice, TheTerminateArrivesThoughThePeerKeepsTalking) {
  RecordProperty("proves", "RDMAP-6.2.1-05");
  Peer& peer = connect();
  peer.listening = false;  // it listens only when it has said all of it
  const Octets bad = write(0x999, 0, ramp(8));
  Octets flood = sim::frame_fpdu(bad);
  const Octets more = sim::frame_fpdu(write(0x999, 0, Octets(60000)));
  for (int i = 0; i < 64; ++i) flood.insert(flood.end(), more.begin(), more.end());
  peer.say(flood);
  ASSERT_TRUE(drive([&] { return peer.out.empty(); })) << "the device reads on";
  peer.listening = true;
  ASSERT_TRUE(drive([&] { return peer.eof || peer.reset; }));
  EXPECT_FALSE(peer.reset);
  const auto heard = peer.segments();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].ulpdu, terminate_for(bad, 0x11, 0x00));
  EXPECT_EQ(peer.heard.size(), 20 + mpa::fpdu_len(heard[0].ulpdu.size()));
}

std::size_t num_descriptors() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++n;
  return n;
}

TEST_F(RdmapDevice, NoSocketIsLeftBehind) {
  RecordProperty("proves", "RDMAP-7-03");
  std::size_t before = 0;
  const Octets bad = write(0x999, 0, ramp(8));
  for (int i = 0; i < 10000; ++i) {
    Peer& peer = connect();
    peer.say_ulpdu(bad);
    ASSERT_TRUE(drive([&] { return peer.eof; })) << i;
    peer.hang_up();
    ASSERT_TRUE(drive([&] { return take_event(CmEventType::kDisconnected); })) << i;
    peers_.clear();
    wcs_.clear();
    events_.clear();
    if (i == 0) before = num_descriptors();
  }
  step();
  EXPECT_LE(num_descriptors(), before);
}

TEST_F(RdmapDevice, WorkPostedBehindATerminateIsFlushed) {
  RecordProperty("proves", "RDMAP-5.4-09");
  Mem inbox(*pd_, 4096, Access::kLocalWrite);
  Peer& peer = connect();
  const Octets bad = write(0x999, 0, ramp(8));
  peer.say_ulpdu(bad);
  ASSERT_TRUE(drive([&] { return !peer.segments().empty(); }));
  for (std::uint64_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(peer.qp->post_send({.wr_id = i, .sg_list = std::array{inbox.sge(0, 8)}}).ok());
    step();
  }
  ASSERT_TRUE(drive([&] { return wcs_.size() == 10 && peer.eof; }));
  for (const Wc& wc : wcs_) EXPECT_EQ(wc.status, WcStatus::kWrFlushErr);
  EXPECT_EQ(peer.heard.size(), 20 + sim::frame_fpdu(peer.segments()[0].ulpdu).size()) << "the Terminate and a FIN";
}

TEST_F(RdmapDevice, AResetEndsReadsAndAllReceives) {
  RecordProperty("proves", "RDMAP-6.2-03 RDMAP-6.2.1-02");
  Mem mem(*pd_, 65536, Access::kLocalWrite);
  Peer& peer = connect();
  for (std::uint64_t i = 0; i < 10; ++i)
    ASSERT_TRUE(peer.qp->post_recv({.wr_id = 100 + i, .sg_list = std::array{mem.sge(0, 64)}}).ok());
  ASSERT_TRUE(peer.qp
                  ->post_send({.wr_id = 1,
                               .sg_list = std::array{mem.sge(0, 65536)},
                               .opcode = verbs::WrOpcode::kRdmaRead,
                               .remote_addr = 0,
                               .rkey = 7})
                  .ok());
  ASSERT_TRUE(drive([&] { return peer.segments().size() == 1; }));
  peer.say_ulpdu(read_response(mem.mr->lkey(), mem.addr(), ramp(1000), false));
  for (int i = 0; i < 10; ++i) step();
  // The peer's socket goes while the device has more to say.
  for (std::uint64_t i = 0; i < 20; ++i)
    ASSERT_TRUE(peer.qp->post_send({.wr_id = 2 + i, .sg_list = std::array{mem.sge(0, 65536)}}).ok());
  peer.hang_up();
  ASSERT_TRUE(drive([&] { return wcs_.size() == 31 && take_event(CmEventType::kDisconnected); }));
  std::set<std::uint64_t> seen;
  for (const Wc& wc : wcs_) {
    EXPECT_EQ(wc.status, WcStatus::kWrFlushErr);
    EXPECT_TRUE(seen.insert(wc.wr_id).second);
  }
}

TEST_F(RdmapDevice, ACqThatRunsOverHarmsItsOwnStreamsOnly) {
  RecordProperty("proves", "RDMAP-8.1.1-09");
  close();
  verbs::SoftConfig config;
  config.cq_overcommit = true;  // else no queue pair is created that can do this
  open(config);
  auto small = std::move(device_->create_cq(2, nullptr).value());
  Mem inbox(*pd_, 64, Access::kLocalWrite);
  Peer& bystander = connect();
  Peer& victim = connect(16, nullptr, small.get());
  for (std::uint32_t i = 1; i <= 5; ++i) {
    for (Peer* peer : {&victim, &bystander}) {
      ASSERT_TRUE(peer->qp->post_recv({.wr_id = i, .sg_list = std::array{inbox.sge()}}).ok());
      peer->say_ulpdu(send(i, ramp(4)));
    }
  }
  ASSERT_TRUE(drive([&] { return wcs_.size() == 5 && (victim.eof || victim.reset); }));
  Wc wc[8];
  EXPECT_LT(small->poll(wc), 0);
  EXPECT_EQ(victim.qp->state(), verbs::QpState::kErr);
  for (const Wc& done : wcs_) EXPECT_EQ(done.status, WcStatus::kSuccess);
  EXPECT_EQ(bystander.qp->state(), verbs::QpState::kRts);
  ASSERT_TRUE(bystander.qp->post_recv({.wr_id = 6, .sg_list = std::array{inbox.sge()}}).ok());
  bystander.say_ulpdu(send(6, ramp(4)));
  ASSERT_TRUE(drive([&] { return wcs_.size() == 6; }));
  EXPECT_EQ(wcs_.back().status, WcStatus::kSuccess);
  peers_.clear();
}

TEST_F(RdmapDevice, WhatACqCannotReportIsRefusedAtCreation) {
  RecordProperty("proves", "RDMAP-8.1.2-04");
  auto small = std::move(device_->create_cq(2 * 64 + 127, nullptr).value());
  auto first = std::move(cm_->create_id().value()), second = std::move(cm_->create_id().value());
  auto qp = std::move(first->create_qp(*pd_, qp_attr(*small)).value());  // 64 requests and 64 receives
  EXPECT_FALSE(second->create_qp(*pd_, qp_attr(*small)).ok()) << "127 entries are left";
  qp.reset();
  auto again = second->create_qp(*pd_, qp_attr(*small));
  EXPECT_TRUE(again.ok()) << "room that is given back can be promised again";
}

TEST_F(RdmapDevice, EachStreamHasItsOwnReadSlots) {
  RecordProperty("proves", "RDMAP-8.1.2-06");
  close();
  verbs::SoftConfig config;
  config.close_timeout = std::chrono::milliseconds(200);  // the peer does not read the Terminate
  open(config);
  Mem region(*pd_, 4 << 20, Access::kRemoteRead);
  constexpr std::uint8_t kIrd = 3;
  const auto request = [&](std::uint32_t msn) {
    return read_request(msn, 1, 0, static_cast<std::uint32_t>(region.octets.size()), region.mr->rkey(), region.addr());
  };
  // The peer does not read, so no response gets through: all slots of the first are taken, and one more is refused.
  Peer& greedy = connect(kIrd);
  Peer& modest = connect(kIrd);
  greedy.listening = modest.listening = false;
  for (std::uint32_t msn = 1; msn <= kIrd; ++msn) greedy.say_ulpdu(request(msn));
  ASSERT_TRUE(drive([&] { return greedy.qp->counters().reads_rx == kIrd; }));
  for (std::uint32_t msn = 1; msn <= kIrd; ++msn) modest.say_ulpdu(request(msn));
  ASSERT_TRUE(drive([&] { return modest.qp->counters().reads_rx == kIrd; }));
  greedy.say_ulpdu(request(kIrd + 1));
  ASSERT_TRUE(drive([&] { return greedy.qp->state() == verbs::QpState::kErr; }));
  EXPECT_EQ(modest.qp->state(), verbs::QpState::kRts);
  modest.listening = true;
  ASSERT_TRUE(drive([&] { return modest.qp->counters().read_octets_tx == kIrd * region.octets.size(); }));
}

TEST_F(RdmapDevice, QuotasAreKept) {
  RecordProperty("proves", "RDMAP-8.1.2-05");
  close();
  verbs::SoftConfig config;
  config.max_mrs = 3;
  config.max_cqe = 8;
  config.max_qp_wr = 4;
  config.ird = 2;
  open_with(config, 8);
  Octets memory(64);
  std::vector<std::unique_ptr<verbs::Mr>> mrs;
  for (int i = 0; i < 3; ++i) mrs.push_back(std::move(pd_->reg_mr(memory.data(), memory.size(), kAll).value()));
  EXPECT_EQ(pd_->reg_mr(memory.data(), memory.size(), kAll).error().errno_value, ENOMEM);
  mrs.pop_back();
  EXPECT_TRUE(pd_->reg_mr(memory.data(), memory.size(), kAll).ok());
  EXPECT_EQ(device_->create_cq(9, nullptr).error().errno_value, EINVAL);
  max_wr_ = 5;
  auto id = std::move(cm_->create_id().value());
  EXPECT_EQ(id->create_qp(*pd_, qp_attr(*cq_)).error().errno_value, EINVAL);
  max_wr_ = 4;
  Peer& peer = connect(200);
  peer.listening = false;
  Octets requests;
  for (std::uint32_t msn = 1; msn <= 3; ++msn) {
    const Octets fpdu =
        sim::frame_fpdu(read_request(msn, 1, 0, 64, mrs[0]->rkey(), reinterpret_cast<std::uintptr_t>(memory.data())));
    requests.insert(requests.end(), fpdu.begin(), fpdu.end());
  }
  peer.say(requests);  // in one segment, so that no response leaves between them
  peer.listening = true;
  ASSERT_TRUE(drive([&] { return peer.qp->state() == verbs::QpState::kErr; }));
  EXPECT_EQ(peer.qp->counters().reads_rx, 2u);
}

TEST_F(RdmapDevice, SolicitedOnlyWakesForTheTwoSolicitedKinds) {
  RecordProperty("proves", "RDMAP-5.3-06 RDMAP-4.1-19");
  close();
  verbs::SoftConfig config;
  config.fpdu_limit = 1500;
  open(config);
  Mem mem(*pd_, 4096, kAll | Access::kMwBind);
  Peer& peer = connect();
  // Outgoing: Send with Solicited Event and Invalidate, one segment and several.
  for (const std::uint32_t len : {8u, 4096u}) {
    const std::size_t before = peer.segments().size();
    ASSERT_TRUE(peer.qp
                    ->post_send({.wr_id = 1,
                                 .sg_list = std::array{mem.sge(0, len)},
                                 .opcode = verbs::WrOpcode::kSendWithInv,
                                 .send_flags = verbs::SendFlags::kSignaled | verbs::SendFlags::kSolicited,
                                 .invalidate_rkey = 0xcafe0042})
                    .ok());
    ASSERT_TRUE(drive([&] { return peer.segments().size() > before && peer.segments().back().last; }));
    const auto heard = peer.segments();
    EXPECT_EQ(heard.size() - before, len == 8 ? 1u : 3u);
    for (std::size_t i = before; i < heard.size(); ++i) {
      EXPECT_EQ(heard[i].ulpdu[0], i + 1 == heard.size() ? 0x41 : 0x01);
      EXPECT_EQ(heard[i].ulpdu[1], 0x46);
      EXPECT_EQ(heard[i].qn, 0u);
      EXPECT_EQ(heard[i].invalidate_stag, 0xcafe0042u);
    }
  }
  ASSERT_TRUE(drive([&] { return wcs_.size() == 2; }));
  // Incoming, the waiter armed anew for each: Send, with Invalidate, with Solicited Event, with both.
  std::uint32_t msn = 0;
  for (const unsigned control : {0x43u, 0x44u, 0x45u, 0x46u}) {
    wcs_.clear();
    const bool invalidates = control % 2 == 0;
    const Window window = bind(peer, mem);
    ASSERT_TRUE(peer.qp->post_recv({.wr_id = control, .sg_list = std::array{mem.sge(0, 64)}}).ok());
    ASSERT_TRUE(cq_->req_notify(true).ok());
    EXPECT_EQ(channel_->get_event(), nullptr);
    peer.say_ulpdu(send(++msn, ramp(8), true, 0, control, invalidates ? window.rkey : 0));
    ASSERT_TRUE(drive([&] { return !wcs_.empty(); }));
    EXPECT_EQ(wcs_[0].status, WcStatus::kSuccess);
    EXPECT_EQ(has(wcs_[0].wc_flags, verbs::WcFlags::kWithInv), invalidates);
    if (invalidates) {
      EXPECT_EQ(wcs_[0].invalidated_rkey, window.rkey);
    }
    EXPECT_EQ(channel_->get_event(), control >= 0x45 ? cq_.get() : nullptr);
  }
}

TEST_F(RdmapDevice, SendWithSolicitedEventWakesWhoWaitsForOne) {
  RecordProperty("proves", "RDMAP-4.1-18");
  close();
  verbs::SoftConfig config;
  config.fpdu_limit = 1500;
  open(config);
  Mem mem(*pd_, 4096, Access::kLocalWrite);
  Peer& peer = connect();
  // Outgoing: one segment, and several.
  for (const std::uint32_t len : {8u, 4096u}) {
    const std::size_t before = peer.segments().size();
    ASSERT_TRUE(peer.qp
                    ->post_send({.wr_id = 1,
                                 .sg_list = std::array{mem.sge(0, len)},
                                 .opcode = verbs::WrOpcode::kSend,
                                 .send_flags = verbs::SendFlags::kSignaled | verbs::SendFlags::kSolicited})
                    .ok());
    ASSERT_TRUE(drive([&] { return peer.segments().size() > before && peer.segments().back().last; }));
    const auto heard = peer.segments();
    EXPECT_EQ(heard.size() - before, len == 8 ? 1u : 3u);
    for (std::size_t i = before; i < heard.size(); ++i) {
      EXPECT_EQ(heard[i].ulpdu[0], i + 1 == heard.size() ? 0x41 : 0x01);
      EXPECT_EQ(heard[i].ulpdu[1], 0x45);
      EXPECT_EQ(heard[i].qn, 0u);
      EXPECT_EQ(heard[i].invalidate_stag, 0u);
    }
  }
  // Incoming: a plain Send leaves the waiter asleep.
  for (std::uint64_t i = 0; i < 2; ++i)
    ASSERT_TRUE(peer.qp->post_recv({.wr_id = i, .sg_list = std::array{mem.sge(0, 64)}}).ok());
  ASSERT_TRUE(drive([&] { return wcs_.size() == 2; }));
  ASSERT_TRUE(cq_->req_notify(true).ok());
  peer.say_ulpdu(send(1, ramp(8)));
  ASSERT_TRUE(drive([&] { return wcs_.size() == 3; }));
  EXPECT_EQ(channel_->get_event(), nullptr);
  peer.say_ulpdu(send(2, ramp(8), true, 0, 0x45));
  ASSERT_TRUE(drive([&] { return wcs_.size() == 4; }));
  EXPECT_EQ(channel_->get_event(), cq_.get());
}

TEST_F(RdmapDevice, ReadsAreServedWhileTheApplicationSleeps) {
  RecordProperty("proves", "RDMAP-5.2.1-03 RDMAP-5.2.1-04");
  Mem region(*pd_, 65536, Access::kRemoteRead, 0x42), inbox(*pd_, 64, Access::kLocalWrite);
  Peer& peer = connect();
  ASSERT_TRUE(peer.qp->post_recv({.wr_id = 1, .sg_list = std::array{inbox.sge()}}).ok());
  // From here on the device has a thread of its own that does nothing but process; the application does nothing at all.
  std::atomic<bool> stop{false};
  std::thread engine([&] {
    while (!stop) device_->process(std::chrono::steady_clock::now());
  });
  peer.say_ulpdu(read_request(1, 1, 0, 65536, region.mr->rkey(), region.addr()));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::size_t octets = 0;
  while (octets < 65536 && std::chrono::steady_clock::now() < deadline) {
    peer.pump();
    octets = 0;
    for (const Segment& s : peer.segments()) octets += s.payload.size();
  }
  stop = true;
  engine.join();
  EXPECT_EQ(octets, 65536u);
  step();
  EXPECT_TRUE(wcs_.empty());
  EXPECT_TRUE(events_.empty());
}

}  // namespace
}  // namespace weft::conformance
