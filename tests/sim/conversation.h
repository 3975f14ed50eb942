#pragma once

// A conversation of two streams that post whatever there is to post, and what has to come of it, checked to the octet.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include <map>
#include <set>

#include "tests/sim/world.h"

namespace weft::sim {

using rdmap::Completion;
using rdmap::SendOp;
using rdmap::SendWr;
using rdmap::Sge;
using rdmap::SgeList;
using rdmap::WorkOp;
using rdmap::WorkStatus;
using Octets = std::vector<std::uint8_t>;

inline constexpr std::uint32_t kSource = 0x10;    // what Sends, Writes and the peer's Reads take from
inline constexpr std::uint32_t kTarget = 0x20;    // where the peer's Writes land
inline constexpr std::uint32_t kSink = 0x30;      // where our Reads land
inline constexpr std::uint32_t kInbox = 0x40;     // where the peer's Sends land
inline constexpr std::uint32_t kWindows = 0x100;  // STags that the peer may invalidate, one after the other
inline constexpr std::size_t kSourceLen = 200'000;
inline constexpr std::size_t kRecvLen = 80'000;
inline constexpr std::size_t kSizes[] = {0, 0, 1, 3, 64, 110, 111, 128, 500, 1000, 1460, 4096, 9000, 20'000, 70'000};

struct Posted {
  SendWr wr;
  std::size_t len = 0;
  std::size_t source_offset = 0;
};

// Chatter posts random work on one side and knows what has to come of it on both.
class Chatter {
 public:
  Chatter(World& world, std::size_t who, std::size_t num_ops, std::size_t max_len)
      : world_(world),
        who_(who),
        me_(*world.side[who]),
        peer_(*world.side[1 - who]),
        ops_left_(num_ops),
        max_len_(max_len) {
    auto& source = me_.memory.add_simple(kSource, 0, 1000, kSourceLen);
    for (std::size_t i = 0; i < kSourceLen; ++i) source.octets[i] = static_cast<std::uint8_t>(i * 7 + i / 256 + who);
    me_.memory.add_simple(kTarget, 0, 1 << 20, 0);
    me_.memory.add_simple(kSink, 0, 1 << 20, 0);
    me_.memory.add_simple(kInbox, 0, 1 << 20, 0);
  }

  bool all_posted() const { return ops_left_ == 0; }

  // Posts one request, with the receive that it needs at the peer.
  void post() {
    if (ops_left_ == 0) return;
    Random& random = world_.random;
    Posted p;
    p.len = std::min(max_len_, kSizes[random.between(0, std::size(kSizes) - 1)]);
    p.source_offset = random.between(0, kSourceLen - p.len);
    SendWr& wr = p.wr;
    wr.wr_id = next_wr_id_;
    wr.op = random.pick<SendOp>({SendOp::kSend, SendOp::kSendInvalidate, SendOp::kRdmaWrite, SendOp::kRdmaRead});
    wr.signaled = !random.one_in(4);
    wr.fence = random.one_in(6);
    wr.solicited = random.one_in(3);
    if (wr.op == SendOp::kRdmaRead) {
      wr.sg_list = cut(kSink, (1 << 20) + grow(me_, kSink, p.len), p.len);
      wr.remote_stag = ddp::Stag{kSource};
      wr.remote_to = 1000 + p.source_offset;
    } else if (p.len > 0 && p.len <= 4096 && random.one_in(3)) {
      const auto& source = me_.memory.regions[kSource].octets;
      wr.inline_data.assign(source.begin() + static_cast<std::ptrdiff_t>(p.source_offset),
                            source.begin() + static_cast<std::ptrdiff_t>(p.source_offset + p.len));
    } else {
      wr.sg_list = cut(kSource, 1000 + p.source_offset, p.len);
    }
    if (wr.op == SendOp::kRdmaWrite) {
      wr.remote_stag = ddp::Stag{kTarget};
      wr.remote_to = (1 << 20) + grow(peer_, kTarget, p.len);
    }
    if (wr.op == SendOp::kSendInvalidate) {
      wr.remote_stag = ddp::Stag{kWindows + num_windows_++};
      peer_.memory.add(wr.remote_stag.value, {0, {0}, 0, true, true, true, Octets(8)});
    }
    const bool is_send = wr.op == SendOp::kSend || wr.op == SendOp::kSendInvalidate;
    if (me_.stream.post_send(wr) != rdmap::PostResult::kOk) return;
    if (is_send) {
      const std::size_t at = grow(peer_, kInbox, kRecvLen);
      peer_.recvs.post(next_recv_id_++, cut(kInbox, (1 << 20) + at, kRecvLen));
      sends_.push_back(posted_.size());
      inbox_offsets_.push_back(at);
    }
    posted_.push_back(std::move(p));
    ++next_wr_id_;
    --ops_left_;
  }

  // Whether everything posted that reports at all has been reported.
  bool done() const {
    std::size_t expected = 0;
    for (const Posted& p : posted_) expected += p.wr.signaled ? 1 : 0;
    return count(me_, false) == expected && count(peer_, true) == sends_.size() && me_quiet();
  }

  // All good: in order, once each, every octet in its place.
  void check() const {
    std::size_t next = 0;
    for (const Completion& c : me_.completions) {
      if (c.op == WorkOp::kRecv) continue;
      while (next < posted_.size() && !posted_[next].wr.signaled) ++next;
      ASSERT_LT(next, posted_.size());
      const Posted& p = posted_[next++];
      ASSERT_EQ(c.wr_id, p.wr.wr_id);
      ASSERT_EQ(c.status, WorkStatus::kSuccess);
      ASSERT_EQ(c.byte_len, p.wr.op == SendOp::kRdmaRead ? p.len : 0);
    }
    std::size_t num_recvs = 0;
    for (const Completion& c : peer_.completions) {
      if (c.op != WorkOp::kRecv) continue;
      ASSERT_LT(num_recvs, sends_.size());
      const Posted& p = posted_[sends_[num_recvs]];
      ASSERT_EQ(c.wr_id, num_recvs);
      ASSERT_EQ(c.status, WorkStatus::kSuccess);
      ASSERT_EQ(c.byte_len, p.len);
      ASSERT_EQ(c.solicited, p.wr.solicited);
      ASSERT_EQ(c.invalidated.has_value(), p.wr.op == SendOp::kSendInvalidate);
      if (c.invalidated) {
        ASSERT_EQ(*c.invalidated, p.wr.remote_stag);
        ASSERT_FALSE(peer_.memory.regions.at(p.wr.remote_stag.value).valid);
      }
      ++num_recvs;
    }
    check_memory();
  }

  void check_memory() const {
    std::map<std::uint32_t, Octets> expected;
    expected[kTarget] = Octets(peer_.memory.regions.at(kTarget).octets.size(), 0xa5);
    expected[kInbox] = Octets(peer_.memory.regions.at(kInbox).octets.size(), 0xa5);
    Octets sink(me_.memory.regions.at(kSink).octets.size(), 0xa5);
    const Octets& mine = me_.memory.regions.at(kSource).octets;
    const Octets& theirs = peer_.memory.regions.at(kSource).octets;
    std::size_t num_sends = 0;
    for (const Posted& p : posted_) {
      const auto copy = [&](const Octets& from, Octets& to, std::size_t at) {
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(p.source_offset), p.len,
                    to.begin() + static_cast<std::ptrdiff_t>(at));
      };
      switch (p.wr.op) {
        case SendOp::kRdmaRead:
          if (p.len > 0) copy(theirs, sink, static_cast<std::size_t>(p.wr.sg_list.front().addr) - (1 << 20));
          break;
        case SendOp::kRdmaWrite:
          copy(mine, expected[kTarget], static_cast<std::size_t>(p.wr.remote_to) - (1 << 20));
          break;
        default: copy(mine, expected[kInbox], inbox_offsets_[num_sends++]);
      }
    }
    ASSERT_TRUE(sink == me_.memory.regions.at(kSink).octets) << "a Read's octets are not where they belong";
    ASSERT_TRUE(expected[kTarget] == peer_.memory.regions.at(kTarget).octets) << "Writes";
    ASSERT_TRUE(expected[kInbox] == peer_.memory.regions.at(kInbox).octets) << "Sends";
  }

  // After a conversation that was cut short: nothing ended twice, nothing that has to report stayed silent, order kept.
  void check_cut_short() const {
    std::set<std::uint64_t> seen;
    std::uint64_t last = 0;
    bool failed = false;
    for (const Completion& c : me_.completions) {
      if (c.op == WorkOp::kRecv) continue;
      ASSERT_TRUE(seen.insert(c.wr_id).second) << "twice: " << c.wr_id;
      ASSERT_TRUE(seen.size() == 1 || c.wr_id > last) << "out of order";
      last = c.wr_id;
      if (failed) {
        ASSERT_NE(c.status, WorkStatus::kSuccess) << "a success behind a failure";
      }
      failed = failed || c.status != WorkStatus::kSuccess;
    }
    for (const Posted& p : posted_) {
      if (p.wr.signaled) {
        ASSERT_TRUE(seen.count(p.wr.wr_id)) << "silent: " << p.wr.wr_id;
      }
    }
    ASSERT_EQ(count(peer_, true), peer_.recvs.num_taken);
  }

 private:
  static std::size_t count(const Side& side, bool recv) {
    return static_cast<std::size_t>(std::count_if(side.completions.begin(), side.completions.end(),
                                                  [&](const auto& c) { return (c.op == WorkOp::kRecv) == recv; }));
  }
  // Unsignaled work leaves no other trace.
  bool me_quiet() const { return !me_.stream.wants_tx() && world_.wire[who_].octets.empty(); }

  // Splits a range into up to four entries, some of them empty.
  SgeList cut(std::uint32_t key, std::uint64_t addr, std::size_t len) {
    SgeList list;
    for (std::size_t i = world_.random.between(0, 3); i > 0 && len > 0; --i) {
      const std::size_t piece = world_.random.between(list.empty() ? 1 : 0, len);
      list.push_back({addr, static_cast<std::uint32_t>(piece), ddp::Stag{key}});
      addr += piece;
      len -= piece;
    }
    if (len > 0) list.push_back({addr, static_cast<std::uint32_t>(len), ddp::Stag{key}});
    return list;
  }

  // Room for len octets at the end of a region, three more as a guard.
  static std::size_t grow(Side& side, std::uint32_t stag, std::size_t len) {
    Octets& octets = side.memory.regions[stag].octets;
    const std::size_t at = octets.size();
    octets.resize(at + len + 3, 0xa5);
    return at;
  }

  World& world_;
  std::size_t who_;
  Side& me_;
  Side& peer_;
  std::size_t ops_left_;
  std::size_t max_len_;
  std::vector<Posted> posted_;
  std::vector<std::size_t> sends_;  // indices into posted_
  std::vector<std::size_t> inbox_offsets_;
  std::uint64_t next_wr_id_ = 1;
  std::uint64_t next_recv_id_ = 0;
  std::uint32_t num_windows_ = 0;
};

inline rdmap::StreamConfig random_config(Random& random) {
  rdmap::StreamConfig config;
  config.mpa_revision = random.pick<std::uint8_t>({1, 2});
  config.crc = !random.one_in(4);
  config.markers = random.one_in(2);
  config.fpdu_limit = random.pick<std::size_t>({0, 0, 1, 300, 1500, 70'000});
  config.ird = static_cast<std::uint16_t>(random.between(1, 4));
  config.ord = static_cast<std::uint16_t>(random.between(1, 4));
  return config;
}

// Conversation is both Chatters and their world; the seed decides all that the caller leaves open.
class Conversation {
 public:
  using Adjust = std::function<void(rdmap::StreamConfig& initiator, rdmap::StreamConfig& responder)>;

  Conversation(std::uint64_t seed, std::size_t num_ops, WorldOptions options, std::size_t max_len = SIZE_MAX,
               const Adjust& adjust = {})
      : dice_(seed), a_(random_config(dice_)), b_(random_config(dice_)), world(fit(adjust), b_, options, seed + 1) {
    world.side[0]->stream.start_initiator(Octets(3), world.side[0]->recvs, world.now);
    world.side[1]->stream.start_responder(world.now);
    chatter[0] = std::make_unique<Chatter>(world, 0, num_ops, max_len);
    chatter[1] = std::make_unique<Chatter>(world, 1, num_ops, max_len);
  }

  bool connect() {
    if (!world.run_until([&] { return world.side[1]->request.has_value(); }, 10000)) return false;
    world.side[1]->stream.accept(Octets(5), world.side[1]->recvs, b_.ird, b_.ord, 0, world.now);
    return world.run_until(
        [&] { return world.side[0]->established.has_value() && world.side[1]->established.has_value(); }, 10000);
  }

  // Random posts and steps until all has been said and answered, or `until` steps were made.
  bool talk(std::size_t until = 3'000'000) {
    std::size_t idle = 0;
    for (std::size_t i = 0; i < until; ++i) {
      if (world.random.one_in(10)) chatter[world.random.between(0, 1)]->post();
      idle = world.step() ? 0 : idle + 1;
      if (i % 64 == 0 && chatter[0]->all_posted() && chatter[1]->all_posted() && chatter[0]->done() &&
          chatter[1]->done())
        return true;
      if (idle > 5000) return false;
    }
    return false;
  }

  void end() {
    world.side[world.random.between(0, 1)]->stream.disconnect(world.now);
    ASSERT_TRUE(world.run_until([&] { return world.both_closed(); }));
    for (auto& side : world.side) ASSERT_EQ(side->closed.size(), 1u);
  }

 private:
  // With revision 1 nobody negotiates: what an end asks has to be what the other serves.
  const rdmap::StreamConfig& fit(const Adjust& adjust) {
    if (adjust) adjust(a_, b_);
    a_.ord = b_.ird = std::min(a_.ord, b_.ird);
    b_.ord = a_.ird = std::min(b_.ord, a_.ird);
    b_.mpa_revision = std::max(a_.mpa_revision, b_.mpa_revision);
    return a_;
  }

  Random dice_;
  rdmap::StreamConfig a_, b_;

 public:
  World world;
  std::unique_ptr<Chatter> chatter[2];
};

inline std::string label(std::uint64_t seed) {
  return "seed " + std::to_string(seed);
}

}  // namespace weft::sim
