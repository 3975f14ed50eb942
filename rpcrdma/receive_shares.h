#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::rpcrdma {

// ReceiveShares says how many Receives of a shared queue are reserved by its connections, and how many there have to be
// for that. A plain value.
class ReceiveShares {
 public:
  struct Config {
    std::uint32_t max_receives = 0;
    std::uint32_t slack = 0;  // of these: Receives beyond what is reserved
    // And of these: what connections may reserve beyond what they began with, so that some are left for connections to
    // come.
    std::uint32_t max_grown = UINT32_MAX;
    // How many of those reserved are posted at once, beside one for each connection; UINT32_MAX: all.
    std::uint32_t max_posted = UINT32_MAX;
  };

  explicit ReceiveShares(const Config& config) : config_(config) {}

  void enter() { ++connections_; }
  void leave() { --connections_; }

  // grown: how many of `num` are beyond what their connection began with. False where there are no more.
  bool reserve(std::uint32_t num, std::uint32_t grown) {
    if (num > max_reserved() - reserved_ || grown > config_.max_grown - grown_) return false;
    reserved_ += num;
    grown_ += grown;
    return true;
  }
  void release(std::uint32_t num, std::uint32_t grown) {
    reserved_ -= num;
    grown_ -= grown;
  }

  // A Receive was filled, and its message is done with.
  void on_filled() { ++held_; }
  void on_done() { --held_; }
  // So many filled ones are now of connections that are gone, and of these so many are done with next.
  void leave_behind(std::uint32_t num) { left_behind_ += num; }
  void forget(std::uint32_t num) { left_behind_ -= num; }

  std::uint32_t reserved() const { return reserved_; }
  std::uint32_t max_reserved() const { return config_.max_receives - config_.slack; }
  // Whether so much is reserved that peers should be granted less.
  bool is_low() const {
    return reserved_ > max_reserved() - max_reserved() / 8 || grown_ > config_.max_grown - config_.max_grown / 8;
  }

  // How many Receives there are to be, posted or with messages. Those of connections that are gone are nobody's share.
  // A message that arrives in part may hold one of each connection, so beside these the slack is always posted.
  std::uint32_t wanted() const {
    std::uint32_t num = reserved_;
    if (config_.max_posted != UINT32_MAX) {
      const std::uint32_t held = held_ - left_behind_;
      num = std::min(num, connections_ + config_.max_posted + held);
      num = std::max(num, connections_ + held);
    }
    return num + config_.slack + left_behind_;
  }

 private:
  Config config_;
  std::uint32_t reserved_ = 0;
  std::uint32_t grown_ = 0;  // of reserved_
  std::uint32_t connections_ = 0;
  std::uint32_t held_ = 0;         // filled
  std::uint32_t left_behind_ = 0;  // of these
};

}  // namespace weft::rpcrdma
