#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "verbs-shim/soft/handle.h"

namespace weft::verbs::soft {

// Turns says which connections of a loop get a turn: connections with posted work, and connections with busy sockets,
// which are looked at without asking epoll. A connection that has died may stay in it: its handle finds nothing. Turns
// knows no sockets.
class Turns {
 public:
  // The most open connections whose sockets are looked at directly. With more connections, epoll is cheaper.
  static constexpr std::size_t kMaxHot = 4;
  // A socket that was empty at this many looks in a row is no longer busy.
  static constexpr std::uint32_t kCoolAfter = 20000;
  // The looks at the busy sockets that may pass in a row before epoll is asked about the other sockets. kLooksBusy is
  // for a caller that may sleep on the descriptor, and holds only while the busy sockets have data.
  static constexpr std::size_t kLooksSpinning = 16;
  static constexpr std::size_t kLooksBusy = 8;

  // The result of a look at a busy socket. kSkipped: no look, and so no result; kOver: no look is possible any more.
  enum class Look : std::uint8_t { kMoved, kNothing, kSkipped, kOver };

  Turns() { hot_.reserve(kMaxHot); }

  // ---- a turn in the next round
  void ready(Handle who) {
    std::uint32_t& mark = mark_of(who);
    if (mark == who.generation) return;
    mark = who.generation;
    ready_.push_back(who);
  }
  bool any_ready() const { return !ready_.empty(); }
  std::span<const Handle> all_ready() const { return ready_; }
  // Calls turn(handle) for each ready connection. A connection that gets ready meanwhile waits for the next round. A
  // connection for which turn returns false is among the first of the next round.
  template <typename F>
  void run_ready(F turn) {
    running_.swap(ready_);
    std::size_t num_put_off = 0;
    for (const Handle who : running_) {
      const bool is_marked = marks_[who.index] == who.generation;
      if (is_marked) marks_[who.index] = 0;
      if (turn(who)) continue;
      if (is_marked) marks_[who.index] = who.generation;
      running_[num_put_off++] = who;
    }
    ready_.insert(ready_.begin(), running_.begin(), running_.begin() + static_cast<std::ptrdiff_t>(num_put_off));
    running_.clear();
  }

  // ---- busy sockets
  // A connection was established (opened), or an established connection has died (closed).
  void opened(Handle who) {
    ++num_open_;
    heat(who);
  }
  void closed() { --num_open_; }
  // Octets came: the socket is looked at from now on.
  void heat(Handle who) {
    if (num_open_ > kMaxHot || hot_.size() >= kMaxHot || is_hot(who)) return;
    hot_.push_back({who, 0});
  }
  bool is_hot(Handle who) const {
    return std::ranges::any_of(hot_, [&](const Hot& hot) { return hot.who == who; });
  }
  // Calls look(handle), which returns a Look, for each busy socket.
  template <typename F>
  void run_hot(F look) {
    bool cooled = false;
    for (std::size_t i = 0; i < hot_.size(); ++i) {  // a look may heat other sockets
      Hot& hot = hot_[i];
      switch (look(hot.who)) {
        case Look::kMoved: hot.idle_looks = 0; break;
        case Look::kSkipped: break;
        case Look::kOver: hot.idle_looks = kCoolAfter; [[fallthrough]];
        case Look::kNothing: cooled = ++hot.idle_looks >= kCoolAfter || cooled;
      }
    }
    ++looks_;
    if (num_open_ > kMaxHot) return hot_.clear();
    if (cooled) std::erase_if(hot_, [](const Hot& hot) { return hot.idle_looks >= kCoolAfter; });
  }
  // Whether epoll has to be asked now. moved: this round has moved something. watched: the caller may sleep on the
  // descriptor.
  bool epoll_due(bool moved, bool watched) const {
    return hot_.empty() || looks_ > (watched ? (moved ? kLooksBusy : 0) : kLooksSpinning);
  }
  void epoll_asked() { looks_ = 0; }

 private:
  struct Hot {
    Handle who;
    std::uint32_t idle_looks = 0;  // in a row
  };

  std::uint32_t& mark_of(Handle who) {
    if (who.index >= marks_.size()) marks_.resize(who.index + std::size_t{1});
    return marks_[who.index];
  }

  std::vector<std::uint32_t> marks_;  // by slot: the generation that is in ready_, 0 for none
  std::vector<Handle> ready_;
  std::vector<Handle> running_;  // the connections that run_ready works through
  std::vector<Hot> hot_;
  std::size_t num_open_ = 0;
  std::size_t looks_ = 0;  // since epoll was asked
};

}  // namespace weft::verbs::soft
