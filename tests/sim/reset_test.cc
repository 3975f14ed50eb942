// A short conversation, cut at every octet of either direction: by RST, by FIN, by silence.
#include <gtest/gtest.h>

#include <set>

#include "tests/sim/victim.h"

namespace weft::sim {
namespace {

using rdmap::SendOp;
using rdmap::SendWr;
using rdmap::testing::Side;

enum class Cut { kReset, kFin, kSilence };

struct Talk {
  Talk() : a({}), b({}) {
    a.memory.add_simple(1, 0, 0, 300);
    b.memory.add_simple(1, 0, 0, 300);
    a.memory.add_simple(2, 0, 0, 300);
    b.recvs.post(50, {{0, 64, ddp::Stag{1}}});
    b.recvs.post(51, {{0, 64, ddp::Stag{1}}});
    a.stream.start_initiator({}, a.recvs, now);
    b.stream.start_responder(now);
    for (std::uint64_t i = 0; i < 4; ++i) {
      SendWr wr;
      wr.wr_id = i;
      wr.op = i == 1 ? SendOp::kRdmaWrite : i == 2 ? SendOp::kRdmaRead : SendOp::kSend;
      wr.sg_list = {{0, i == 2 ? 200u : 60u, ddp::Stag{i == 2 ? 2u : 1u}}};
      wr.remote_stag = ddp::Stag{1};
      EXPECT_EQ(a.stream.post_send(wr), rdmap::PostResult::kOk);
    }
  }

  // Passes at most *budget octets on. Returns whether any passed.
  bool pass(Side& from, Side& to, std::size_t& budget) {
    auto octets = from.transmit(now, 134);
    octets.resize(std::min(octets.size(), budget));
    budget -= octets.size();
    to.receive(octets, now);
    to.drain();
    from.drain();
    if (&to == &b && b.request && !b.established) b.stream.accept({}, b.recvs, 4, 4, 0, now);
    return !octets.empty();
  }

  // Runs with so many octets allowed each way, and returns how many passed.
  std::pair<std::size_t, std::size_t> run(std::size_t a_octets, std::size_t b_octets) {
    std::size_t a_left = a_octets, b_left = b_octets;
    for (bool moved = true; moved;) {
      moved = pass(a, b, a_left);
      moved = pass(b, a, b_left) || moved;
      if (a.completions.size() == 4) {
        a.stream.disconnect(now);
        break;
      }
    }
    return {a_octets - a_left, b_octets - b_left};
  }

  void end(Cut cut) {
    for (Side* side : {&a, &b}) {
      if (cut == Cut::kReset) side->stream.on_llp_error(104, now);
      if (cut == Cut::kFin) side->stream.on_rx_eof(now);
    }
    for (int i = 0; i < 10 && (a.closed.empty() || b.closed.empty()); ++i) {
      for (Side* side : {&a, &b}) {
        side->transmit(now);
        side->stream.on_llp_action_done(side->stream.llp_action());
        if (side->stream.next_timeout()) now = std::max(now, *side->stream.next_timeout());
        side->stream.on_timeout(now);
        side->drain();
      }
      // The responder has no timer of its own while its ULP thinks, or in Full Operation: the keepalive of TCP has.
      if (cut == Cut::kSilence && i == 5)
        for (Side* side : {&a, &b}) side->stream.on_llp_error(110, now);
    }
    a.drain();
    b.drain();
  }

  void check() {
    ASSERT_EQ(a.closed.size(), 1u);
    ASSERT_EQ(b.closed.size(), 1u);
    std::set<std::uint64_t> ids;
    for (const auto& c : a.completions) ASSERT_TRUE(ids.insert(c.wr_id).second);
    ASSERT_EQ(ids.size(), 4u);
    ASSERT_EQ(b.completions.size(), b.recvs.num_taken);
  }

  TimePoint now{};
  Side a, b;
};

TEST(Reset, AtEveryOctet) {
  RecordProperty("proves", "RDMAP-6.2-03 RDMAP-6.2.1-02");
  const auto [a_total, b_total] = Talk().run(SIZE_MAX, SIZE_MAX);
  ASSERT_GT(a_total, 300u);
  ASSERT_GT(b_total, 220u);
  for (const Cut cut : {Cut::kReset, Cut::kFin, Cut::kSilence}) {
    for (std::size_t at = 0; at <= a_total; ++at) {
      SCOPED_TRACE("initiator cut at " + std::to_string(at));
      Talk talk;
      talk.run(at, SIZE_MAX);
      talk.end(cut);
      talk.check();
      if (HasFatalFailure()) return;
    }
    for (std::size_t at = 0; at <= b_total; ++at) {
      SCOPED_TRACE("responder cut at " + std::to_string(at));
      Talk talk;
      talk.run(SIZE_MAX, at);
      talk.end(cut);
      talk.check();
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace weft::sim
