#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::rpcrdma {

// ReceiveShares counts the Receives of a shared queue that its connections reserve, and the Receives that the queue
// needs for this. A plain value.
class ReceiveShares {
 public:
  struct Config {
    std::uint32_t max_receives = 0;
    std::uint32_t slack = 0;  // of max_receives: Receives beyond the reserved ones
    // How many reserved Receives are posted at once, besides one for every kConnectionsPerPosted connections;
    // UINT32_MAX: all.
    std::uint32_t max_posted = UINT32_MAX;
  };

  // Of so many connections one may well send in the same turn of the device. More of them take turns.
  static constexpr std::uint32_t kConnectionsPerPosted = 16;

  explicit ReceiveShares(const Config& config) : config_(config) {}

  void enter() { ++connections_; }
  void leave() { --connections_; }

  // False: there are no more Receives.
  bool reserve(std::uint32_t num) {
    if (num > max_reserved() - reserved_) return false;
    reserved_ += num;
    return true;
  }
  void release(std::uint32_t num) { reserved_ -= num; }

  // on_filled: a Receive was filled. on_done: its message is no longer needed.
  void on_filled() { ++held_; }
  void on_done() { --held_; }
  // leave_behind: so many filled Receives belong to connections that are now gone. forget: so many of them are done
  // next.
  void leave_behind(std::uint32_t num) { left_behind_ += num; }
  void forget(std::uint32_t num) { left_behind_ -= num; }

  std::uint32_t reserved() const { return reserved_; }
  std::uint32_t connections() const { return connections_; }
  std::uint32_t held() const { return held_; }  // filled
  std::uint32_t max_reserved() const { return config_.max_receives - config_.slack; }
  // Whether so many Receives are reserved that peers should be granted less.
  bool is_low() const { return reserved_ > max_reserved() - max_reserved() / 8; }

  // How many Receives there must be, posted or with messages. begun: how many of them queue pairs have taken for
  // messages that are not known here, most of them because they have arrived in part. The Receives of connections that
  // are gone belong to no share. The slack is always posted besides those that are taken.
  std::uint32_t wanted(std::uint32_t begun) const {
    std::uint32_t num = reserved_;
    if (config_.max_posted != UINT32_MAX) {
      const std::uint32_t taken = held_ - left_behind_ + begun;
      num = std::min(num, connections_ / kConnectionsPerPosted + config_.max_posted + taken);
      num = std::max(num, taken);
    }
    return num + config_.slack + left_behind_;
  }

 private:
  Config config_;
  std::uint32_t reserved_ = 0;
  std::uint32_t connections_ = 0;
  std::uint32_t held_ = 0;         // filled
  std::uint32_t left_behind_ = 0;  // of held_
};

}  // namespace weft::rpcrdma
