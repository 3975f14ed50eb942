// A short conversation, cut at every octet of either direction: by RST, by FIN, by silence.
#include <gtest/gtest.h>

#include <set>

#include "tests/sim/framing.h"
#include "tests/sim/victim.h"

namespace weft::sim {
namespace {

using rdmap::SendOp;
using rdmap::SendWr;
using rdmap::testing::Side;

enum class Cut { kReset, kFin, kSilence };

constexpr std::size_t kOps = 6;  // of the initiator: one of each kind, Sends with all that they can carry

SendWr request(std::uint64_t i) {
  SendWr wr;
  wr.wr_id = i;
  wr.remote_stag = ddp::Stag{1};
  wr.sg_list = {{0, 60, ddp::Stag{1}}};
  switch (i) {
    case 1: wr.op = SendOp::kRdmaWrite; break;
    case 2:
      wr.op = SendOp::kRdmaRead;
      wr.sg_list = {{0, 200, ddp::Stag{2}}};
      break;
    case 3: wr.solicited = true; break;
    case 4:
      wr.op = SendOp::kSendInvalidate;
      wr.remote_stag = ddp::Stag{3};
      wr.sg_list = {};
      break;
    case 5:
      wr.op = SendOp::kRdmaRead;
      wr.sg_list = {};
      break;
    default: break;
  }
  return wr;
}

struct Configs {
  explicit Configs(const Framing& framing) { framing.apply(a, b); }
  rdmap::StreamConfig a, b;
};

struct Talk {
  explicit Talk(const Framing& framing) : Talk(Configs(framing)) {}
  explicit Talk(const Configs& configs) : a(configs.a), b(configs.b) {
    for (Side* side : {&a, &b}) {
      side->memory.add_simple(1, 0, 0, 300);
      side->memory.add_simple(2, 0, 0, 300);
      for (std::uint64_t i = 50; i < 53; ++i) side->recvs.post(i, {{0, 64, ddp::Stag{1}}});
    }
    b.memory.add(3, {0, {0}, 0, true, true, true, Octets(8)});
    a.stream.start_initiator({}, a.recvs, now);
    b.stream.start_responder(now);
    for (std::uint64_t i = 0; i < kOps; ++i) EXPECT_EQ(a.stream.post_send(request(i)), rdmap::PostResult::kOk);
    for (std::uint64_t i = 2; i < 4; ++i) EXPECT_EQ(b.stream.post_send(request(i)), rdmap::PostResult::kOk);
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
      if (a.completions.size() == kOps + 1 && b.completions.size() == 3 + 2) {
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
    check_completions(a, kOps);
    check_completions(b, 2);
  }

  static void check_completions(const Side& side, std::size_t num_posted) {
    std::set<std::uint64_t> ids, recvs;
    for (const auto& c : side.completions) {
      ASSERT_TRUE((c.op == rdmap::WorkOp::kRecv ? recvs : ids).insert(c.wr_id).second) << "twice: " << c.wr_id;
    }
    ASSERT_EQ(ids.size(), num_posted);
    ASSERT_EQ(recvs.size(), side.recvs.num_taken);
  }

  TimePoint now{};
  Side a, b;
};

class Reset : public ::testing::TestWithParam<Framing> {};

TEST_P(Reset, AtEveryOctet) {
  RecordProperty("proves", "RDMAP-6.2.1-02");
  const auto [a_total, b_total] = Talk(GetParam()).run(SIZE_MAX, SIZE_MAX);
  ASSERT_GT(a_total, 500u);
  ASSERT_GT(b_total, 400u);
  for (const Cut cut : {Cut::kReset, Cut::kFin, Cut::kSilence}) {
    for (const bool initiator : {true, false}) {
      for (std::size_t at = 0; at <= (initiator ? a_total : b_total); ++at) {
        SCOPED_TRACE((initiator ? "initiator cut at " : "responder cut at ") + std::to_string(at));
        Talk talk(GetParam());
        talk.run(initiator ? at : SIZE_MAX, initiator ? SIZE_MAX : at);
        talk.end(cut);
        talk.check();
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Framings, Reset, ::testing::ValuesIn(all_framings()), framing_name);

}  // namespace
}  // namespace weft::sim
