#pragma once

// A conversation of two streams that post requests of every kind. The outcome is checked to the octet.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <set>

#include "tests/sim/atomic_model.h"
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

inline constexpr std::uint32_t kSource = 0x10;    // source of Sends, Writes and the peer's Reads
inline constexpr std::uint32_t kTarget = 0x20;    // where the peer's Writes land
inline constexpr std::uint32_t kSink = 0x30;      // where our Reads land
inline constexpr std::uint32_t kInbox = 0x40;     // where the peer's Sends land
inline constexpr std::uint32_t kWords = 0x50;     // words of the peer's Atomics
inline constexpr std::uint64_t kWordsTo = 0x901;  // its base, aligned to nothing: only addresses have to be
inline constexpr std::uint32_t kWindows = 0x100;  // STags that the peer may invalidate, one after the other
inline constexpr std::size_t kSourceLen = 200'000;
inline constexpr std::size_t kRecvLen = 80'000;
inline constexpr std::size_t kSizes[] = {0, 0, 1, 3, 64, 110, 111, 128, 500, 1000, 1460, 4096, 9000, 20'000, 70'000};

struct Posted {
  SendWr wr;
  std::size_t len = 0;
  std::size_t source_offset = 0;
  // Of a request that takes a receive: the receive's place and length. Immediate Data arrives whether or not it fits.
  std::size_t inbox_offset = 0;
  std::size_t recv_len = kRecvLen;
  // Of an Atomic: its word, and the value that it finds there.
  std::size_t word = 0;
  std::uint64_t original = 0;
};

inline bool has_immediate(SendOp op) {
  return op == SendOp::kImmediate || op == SendOp::kWriteImmediate;
}
inline bool takes_receive(SendOp op) {
  return op == SendOp::kSend || op == SendOp::kSendInvalidate || has_immediate(op);
}

// Chatter posts random work on one side and knows the right outcome on both.
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
    me_.memory.add_simple(kWords, 0, kWordsTo, sizeof(Words));
    words_.fill(kUntouchedWord);
  }

  bool all_posted() const { return ops_left_ == 0; }

  // Posts one request, with the receive that it needs at the peer.
  void post() {
    if (ops_left_ == 0) return;
    Posted p = make_request();
    if (me_.stream.post_send(p.wr) != rdmap::PostResult::kOk) return;
    if (takes_receive(p.wr.op)) {
      if (has_immediate(p.wr.op)) p.recv_len = world_.random.pick<std::size_t>({0, 7, 8, 100});
      p.inbox_offset = grow(peer_, kInbox, p.recv_len);
      peer_.recvs.post(next_recv_id_++, cut(kInbox, (1 << 20) + p.inbox_offset, p.recv_len));
      sends_.push_back(posted_.size());
    }
    if (p.wr.op == SendOp::kAtomic) {
      p.original = words_[p.word];
      words_[p.word] = atomic_outcome(std::get<rdmap::AtomicOperands>(p.wr.args), p.original);
    }
    posted_.push_back(std::move(p));
    ++next_wr_id_;
    --ops_left_;
  }

  // Looks at the completions since the last time: the successes are the next ones due, their fields are right, and all
  // of their octets are in place.
  void observe() {
    if (world_.damaged) return;
    for (; num_seen_ < me_.completions.size(); ++num_seen_) {
      const Completion& c = me_.completions[num_seen_];
      if (c.op != WorkOp::kRecv && c.status == WorkStatus::kSuccess) observe_own(c);
    }
    for (; num_peer_seen_ < peer_.completions.size(); ++num_peer_seen_) {
      const Completion& c = peer_.completions[num_peer_seen_];
      if (c.op == WorkOp::kRecv && c.status == WorkStatus::kSuccess) observe_recv(c);
    }
  }

  // Whether everything posted that reports at all has been reported.
  bool done() const { return count(me_, false) == num_signaled() && count(peer_, true) == sends_.size() && me_quiet(); }

  // All good: in order, once each, every octet in its place.
  void check() {
    observe();
    for (const Completion& c : me_.completions) ASSERT_TRUE(c.op == WorkOp::kRecv || c.status == WorkStatus::kSuccess);
    for (const Completion& c : peer_.completions)
      ASSERT_TRUE(c.op != WorkOp::kRecv || c.status == WorkStatus::kSuccess);
    ASSERT_EQ(count(me_, false), num_signaled());
    ASSERT_EQ(count(peer_, true), sends_.size());
    check_memory();
  }

  void check_memory() const {
    std::map<std::uint32_t, Octets> expected;
    expected[kTarget] = Octets(peer_.memory.regions.at(kTarget).octets.size(), 0xa5);
    expected[kInbox] = Octets(peer_.memory.regions.at(kInbox).octets.size(), 0xa5);
    Octets sink(me_.memory.regions.at(kSink).octets.size(), 0xa5);
    for (const Posted& p : posted_) {
      const auto put = [](const Octets& from, Octets& to, std::size_t at) {
        std::copy(from.begin(), from.end(), to.begin() + static_cast<std::ptrdiff_t>(at));
      };
      const Octets octets = octets_of(p);
      if (rdmap::is_answered(p.wr.op) && !octets.empty()) put(octets, sink, sink_offset(p));
      if (rdmap::is_tagged(p.wr.op)) put(octets, expected[kTarget], target_offset(p));
      if (p.wr.op == SendOp::kSend || p.wr.op == SendOp::kSendInvalidate) put(octets, expected[kInbox], p.inbox_offset);
      if (has_immediate(p.wr.op) && p.recv_len >= rdmap::kImmediateLen) {
        const auto& immediate = std::get<rdmap::ImmediateData>(p.wr.args);
        put(Octets(immediate.begin(), immediate.end()), expected[kInbox], p.inbox_offset);
      }
    }
    ASSERT_TRUE(sink == me_.memory.regions.at(kSink).octets) << "what a Read or Atomic brought is not where it belongs";
    ASSERT_TRUE(expected[kTarget] == peer_.memory.regions.at(kTarget).octets) << "Writes";
    ASSERT_TRUE(expected[kInbox] == peer_.memory.regions.at(kInbox).octets) << "Sends and Immediate Data";
    ASSERT_EQ(words_of(peer_.memory.regions.at(kWords).octets), words_) << "Atomics";
  }

  // After a conversation that was cut short: nothing ended twice, nothing that has to report stayed silent, order kept.
  void check_cut_short() {
    observe();
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
    if (!world_.damaged) check_atomics_cut_short();
  }

 private:
  Posted make_request() {
    Random& random = world_.random;
    Posted p;
    p.len = std::min(max_len_, kSizes[random.between(0, std::size(kSizes) - 1)]);
    p.source_offset = random.between(0, kSourceLen - p.len);
    SendWr& wr = p.wr;
    wr.wr_id = next_wr_id_;
    wr.op = random.pick<SendOp>({SendOp::kSend, SendOp::kSendInvalidate, SendOp::kRdmaWrite, SendOp::kRdmaRead,
                                 SendOp::kImmediate, SendOp::kWriteImmediate, SendOp::kAtomic, SendOp::kAtomic});
    wr.signaled = !random.one_in(4);
    wr.fence = random.one_in(6);
    wr.solicited = random.one_in(3);
    if (wr.op == SendOp::kImmediate) p.len = 0;
    if (wr.op == SendOp::kAtomic) return make_atomic(std::move(p));
    if (wr.op == SendOp::kRdmaRead) {
      wr.sg_list = cut(kSink, (1 << 20) + grow(me_, kSink, p.len), p.len);
      wr.remote_stag = ddp::Stag{kSource};
      wr.remote_to = 1000 + p.source_offset;
    } else if (p.len > 0 && p.len <= 4096 && random.one_in(3)) {
      wr.inline_data = octets_of(p);
    } else {
      wr.sg_list = cut(kSource, 1000 + p.source_offset, p.len);
    }
    if (rdmap::is_tagged(wr.op)) {
      wr.remote_stag = ddp::Stag{kTarget};
      wr.remote_to = (1 << 20) + grow(peer_, kTarget, p.len);
    }
    if (wr.op == SendOp::kSendInvalidate) {
      wr.remote_stag = ddp::Stag{kWindows + num_windows_++};
      peer_.memory.add(wr.remote_stag.value, {0, {0}, 0, true, true, true, Octets(8)});
    }
    if (has_immediate(wr.op)) {
      rdmap::ImmediateData immediate;
      for (std::uint8_t& octet : immediate) octet = static_cast<std::uint8_t>(random.between(0, 255));
      wr.args = immediate;
    }
    return p;
  }

  Posted make_atomic(Posted p) {
    p.len = rdmap::kAtomicLen;
    p.word = world_.random.between(0, kNumWords - 1);
    p.wr.sg_list = cut(kSink, (1 << 20) + grow(me_, kSink, p.len), p.len);
    p.wr.remote_stag = ddp::Stag{kWords};
    p.wr.remote_to = kWordsTo + rdmap::kAtomicLen * p.word;
    p.wr.args = random_atomic(world_.random, words_[p.word]);
    return p;
  }

  void observe_own(const Completion& c) {
    for (; next_own_ < posted_.size() && !posted_[next_own_].wr.signaled; ++next_own_)
      expect_answer(posted_[next_own_]);
    ASSERT_LT(next_own_, posted_.size());
    const Posted& p = posted_[next_own_++];
    ASSERT_EQ(c.wr_id, p.wr.wr_id);
    ASSERT_EQ(c.op, rdmap::is_tagged(p.wr.op)      ? WorkOp::kRdmaWrite
                    : p.wr.op == SendOp::kRdmaRead ? WorkOp::kRdmaRead
                    : p.wr.op == SendOp::kAtomic   ? WorkOp::kAtomic
                                                   : WorkOp::kSend);
    ASSERT_EQ(c.byte_len, rdmap::is_answered(p.wr.op) ? p.len : 0);
    expect_answer(p);
  }

  // A Read or Atomic that is complete has its answer in the sink.
  void expect_answer(const Posted& p) const {
    if (!rdmap::is_answered(p.wr.op) || p.len == 0) return;
    const Octets expected = octets_of(p);
    const Octets& sink = me_.memory.regions.at(kSink).octets;
    ASSERT_TRUE(
        std::equal(expected.begin(), expected.end(), sink.begin() + static_cast<std::ptrdiff_t>(sink_offset(p))))
        << "completed without its answer: " << p.wr.wr_id;
  }

  void observe_recv(const Completion& c) {
    ASSERT_LT(num_recvs_, sends_.size());
    const std::size_t index = sends_[num_recvs_];
    const Posted& p = posted_[index];
    ASSERT_EQ(c.wr_id, num_recvs_++);
    ASSERT_EQ(c.solicited, p.wr.solicited);
    ASSERT_EQ(c.immediate.has_value(), has_immediate(p.wr.op));
    if (c.immediate) {
      ASSERT_EQ(*c.immediate, std::get<rdmap::ImmediateData>(p.wr.args));
      ASSERT_EQ(c.byte_len, p.recv_len >= rdmap::kImmediateLen ? rdmap::kImmediateLen : 0);
    } else {
      ASSERT_EQ(c.byte_len, p.len);
    }
    ASSERT_EQ(c.invalidated.has_value(), p.wr.op == SendOp::kSendInvalidate);
    if (c.invalidated) {
      ASSERT_EQ(*c.invalidated, p.wr.remote_stag);
      ASSERT_FALSE(peer_.memory.regions.at(p.wr.remote_stag.value).valid);
    }
    // RFC 5040 section 5.5: a ULP that hears of it finds all earlier Writes in place.
    for (; next_write_ <= index; ++next_write_) expect_written(posted_[next_write_]);
  }

  void expect_written(const Posted& p) const {
    if (!rdmap::is_tagged(p.wr.op)) return;
    const Octets expected = octets_of(p);
    const Octets& target = peer_.memory.regions.at(kTarget).octets;
    ASSERT_TRUE(
        std::equal(expected.begin(), expected.end(), target.begin() + static_cast<std::ptrdiff_t>(target_offset(p))))
        << "not written yet: " << p.wr.wr_id;
  }

  // The words are as the first N Atomics leave them, each carried out once. N is at least the number of complete
  // Atomics.
  void check_atomics_cut_short() const {
    const Words words = words_of(peer_.memory.regions.at(kWords).octets);
    Words state;
    state.fill(kUntouchedWord);
    bool found = next_own_ == 0 && state == words;
    for (std::size_t i = 0; i < posted_.size() && !found; ++i) {
      const Posted& p = posted_[i];
      if (p.wr.op == SendOp::kAtomic)
        state[p.word] = atomic_outcome(std::get<rdmap::AtomicOperands>(p.wr.args), state[p.word]);
      found = i + 1 >= next_own_ && state == words;
    }
    ASSERT_TRUE(found) << "Atomics carried out twice, not at all or out of order";
  }

  // The octets that a request carries, or fetches.
  Octets octets_of(const Posted& p) const {
    if (p.wr.op == SendOp::kAtomic) {
      Octets octets(sizeof(p.original));
      std::memcpy(octets.data(), &p.original, octets.size());
      return octets;
    }
    const Side& from = p.wr.op == SendOp::kRdmaRead ? peer_ : me_;
    const auto begin = from.memory.regions.at(kSource).octets.begin() + static_cast<std::ptrdiff_t>(p.source_offset);
    return {begin, begin + static_cast<std::ptrdiff_t>(p.len)};
  }
  static std::size_t sink_offset(const Posted& p) {
    return static_cast<std::size_t>(p.wr.sg_list.front().addr) - (1 << 20);
  }
  static std::size_t target_offset(const Posted& p) { return static_cast<std::size_t>(p.wr.remote_to) - (1 << 20); }

  std::size_t num_signaled() const {
    return static_cast<std::size_t>(
        std::count_if(posted_.begin(), posted_.end(), [](const Posted& p) { return p.wr.signaled; }));
  }
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
  std::vector<std::size_t> sends_;  // indices into posted_ of requests that take a receive
  Words words_;                     // the peer's, once all Atomics that are posted have been carried out
  std::uint64_t next_wr_id_ = 1;
  std::uint64_t next_recv_id_ = 0;
  std::uint32_t num_windows_ = 0;
  // How far observe has come: in the completions of either side, and in posted_ and sends_.
  std::size_t num_seen_ = 0;
  std::size_t num_peer_seen_ = 0;
  std::size_t next_own_ = 0;
  std::size_t num_recvs_ = 0;
  std::size_t next_write_ = 0;
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
      for (auto& each : chatter) each->observe();
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
  // With revision 1 the ends do not negotiate: one end's ORD has to be the other's IRD.
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
