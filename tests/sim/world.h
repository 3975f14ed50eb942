#pragma once

// Two streams over a fake TCP with a fake clock. One seed decides everything that a real connection leaves to chance:
// how much a sendmsg takes, how octets are cut on arrival, which side runs first, and the EMSS.

#include <cerrno>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "base/time.h"
#include "rdmap/testing/pair.h"

namespace weft::sim {

using rdmap::testing::Side;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  // Uniform, both ends included.
  std::size_t between(std::size_t low, std::size_t high) {
    return low + static_cast<std::size_t>(engine_() % (high - low + 1));
  }
  bool one_in(std::size_t n) { return between(1, n) == 1; }
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[between(0, from.size() - 1)];
  }
  template <typename T>
  T pick(std::initializer_list<T> from) {
    return from.begin()[between(0, from.size() - 1)];
  }

 private:
  std::mt19937_64 engine_;
};

// HalfWire is one direction of a TCP connection.
struct HalfWire {
  std::deque<std::uint8_t> octets;
  std::size_t capacity = 64 * 1024;  // send and receive buffer together
  bool fin = false;
  bool fin_seen = false;
  bool reset = false;       // the reader finds an RST
  std::size_t stalled = 0;  // events during which nothing arrives
};

struct WorldOptions {
  std::size_t max_rx_chunk = 70000;  // most octets that arrive at once
  std::size_t max_tx_accept = 1 << 20;
  std::size_t capacity = 64 * 1024;
  std::size_t max_stall = 0;   // a direction may deliver nothing for so many events
  bool shared_staging = true;  // one staging for both, parked after each turn
};

class World {
 public:
  World(const rdmap::StreamConfig& a, const rdmap::StreamConfig& b, const WorldOptions& options, std::uint64_t seed)
      : random(seed), options_(options) {
    side[0] = std::make_unique<Side>(a);
    side[1] = std::make_unique<Side>(b);
    for (HalfWire& half : wire) half.capacity = options.capacity;
  }

  // One random event somewhere. Returns whether anything happened.
  bool step() {
    const bool delayed = delay();
    const std::size_t who = random.between(0, 1);
    const bool moved = random.one_in(2) ? tx(who) || rx(who) : rx(who) || tx(who);
    return moved || delayed;
  }

  // Nothing moved for a while: the clock goes on to the next deadline. Returns false where there is none.
  bool pass_time() {
    std::optional<TimePoint> next;
    for (auto& s : side)
      if (const auto t = s->stream.next_timeout(); t && (!next || *t < *next)) next = t;
    if (!next) return false;
    now = std::max(now, *next);
    for (auto& s : side) {
      s->stream.on_timeout(now);
      s->drain();
    }
    return true;
  }

  // Runs until predicate() or until nothing can happen any more. Returns predicate().
  template <typename Predicate>
  bool run_until(Predicate predicate, std::size_t max_steps = 2'000'000) {
    std::size_t idle = 0;
    for (std::size_t i = 0; i < max_steps; ++i) {
      if (predicate()) return true;
      idle = step() ? 0 : idle + 1;
      if (idle > 64) {
        if (!pass_time()) return predicate();
        idle = 0;
      }
    }
    return predicate();
  }

  bool both_closed() const { return !side[0]->closed.empty() && !side[1]->closed.empty(); }

  Random random;
  TimePoint now{};
  std::unique_ptr<Side> side[2];
  HalfWire wire[2];  // wire[i] carries the octets of side i
  bool open[2] = {true, true};
  std::size_t emss = 0;  // 0: another one in each turn
  // Octets were changed on the way, or receives taken away: the outcome is unknown.
  bool damaged = false;

 private:
  mpa::Staging& staging(std::size_t who) { return options_.shared_staging ? shared_ : side[who]->staging; }

  // One event less to wait for where a direction is delayed. Returns whether something was kept waiting.
  bool delay() {
    if (options_.max_stall == 0) return false;
    bool waiting = false;
    for (HalfWire& half : wire) {
      if (half.stalled > 0) {
        --half.stalled;
        waiting = true;
      } else if (random.one_in(40)) {
        half.stalled = random.between(1, options_.max_stall);
      }
    }
    return waiting;
  }

  bool rx(std::size_t who) {
    Side& s = *side[who];
    HalfWire& in = wire[1 - who];
    if (!open[who] || in.stalled > 0) return false;
    if (in.reset) {
      in.reset = false;
      s.stream.on_llp_error(ECONNRESET, now);
      s.drain();
      return true;
    }
    const auto views = s.stream.rx_buffers(staging(who));
    bool moved = false;
    if (!views.empty() && !in.octets.empty()) {
      const std::size_t most = std::min(in.octets.size(), random.between(1, options_.max_rx_chunk));
      const std::vector<std::uint8_t> arrived(in.octets.begin(), in.octets.begin() + static_cast<std::ptrdiff_t>(most));
      const std::size_t n = rdmap::testing::fill(views, arrived);
      in.octets.erase(in.octets.begin(), in.octets.begin() + static_cast<std::ptrdiff_t>(n));
      s.stream.on_rx(staging(who), n, now);
      moved = true;
    } else if (in.fin && in.octets.empty() && !in.fin_seen) {
      in.fin_seen = true;
      s.stream.on_rx_eof(now);
      moved = true;
    }
    if (options_.shared_staging) s.stream.park(shared_);
    s.drain();
    return act(who) || moved;
  }

  bool tx(std::size_t who) {
    Side& s = *side[who];
    HalfWire& out = wire[who];
    if (!open[who]) return false;
    const std::size_t mss = emss != 0 ? emss : random.pick<std::size_t>({100, 536, 1448, 9000, 65483});
    const auto views = s.stream.tx_buffers(mss, random.pick<std::size_t>({1, 2000, 65536, 1 << 20}), now);
    bool moved = false;
    if (!views.empty()) {
      if (!open[1 - who]) {
        s.stream.on_tx(0, now);
        s.stream.on_llp_error(EPIPE, now);
        s.drain();
        return true;
      }
      const std::size_t room = out.capacity - std::min(out.capacity, out.octets.size());
      std::size_t accept = std::min(room, random.between(random.one_in(4) ? 0 : 1, options_.max_tx_accept));
      std::size_t n = 0;
      for (ConstBytes view : views) {
        const std::size_t piece = std::min(view.size(), accept - n);
        out.octets.insert(out.octets.end(), view.begin(), view.begin() + static_cast<std::ptrdiff_t>(piece));
        n += piece;
      }
      s.stream.on_tx(n, now);
      moved = n > 0;
    }
    s.drain();
    return act(who) || moved;
  }

  bool act(std::size_t who) {
    Side& s = *side[who];
    if (s.stream.wants_tx()) return false;
    const rdmap::LlpAction action = s.stream.llp_action();
    if (action == rdmap::LlpAction::kNone) return false;
    s.stream.on_llp_action_done(action);
    wire[who].fin = true;
    if (action == rdmap::LlpAction::kReset || (action == rdmap::LlpAction::kClose && !wire[1 - who].octets.empty())) {
      wire[who].reset = true;  // close() with unread input resets
      wire[who].octets.clear();
    }
    if (action != rdmap::LlpAction::kShutdownWrite) open[who] = false;
    s.drain();
    return true;
  }

  WorldOptions options_;
  mpa::Staging shared_{160 * 1024};
};

}  // namespace weft::sim
