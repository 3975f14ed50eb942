#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rpcrdma/bytes.h"
#include "rpcrdma/message_pool.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// Every wr_id of a Receive has it, none of another request.
inline constexpr std::uint32_t kReceiveBit = 0x80000000;

// ReceivePool: the Receives of many connections in one shared receive queue. A connection reserves as many as its peer
// may use at once; a buffer stays with its message until it is given back, and is posted again then. So at any time
// every peer finds the Receives that it was promised, and what belongs to nobody is at most the slack that there is for
// peers that do wrong until somebody notices.
//
// Where the device keeps SrqAttr::reserve, fewer than are reserved may be posted: one peer at a time takes some, and
// before its turn there are as many as one may use; what a turn took is made up for before the next one (refill). So
// idle connections need hardly any, and who takes more than its share in one turn takes nobody else's.
//
// One thread; the Pd outlives it, and it its queue pairs and Channels.
class ReceivePool {
 public:
  struct Config {
    std::size_t receive_len = 1024;  // octets
    std::uint32_t max_receives = 0;  // at most Caps::max_srq_wr
    std::uint32_t slack = 0;         // of these: Receives beyond what is reserved
    // And of these: what connections may reserve beyond what they began with, so that some are left for connections to
    // come.
    std::uint32_t max_grown = UINT32_MAX;
    // What the device keeps for a turn of one connection (SrqAttr::reserve), at most the slack.
    std::uint32_t reserve = 0;
    // How many of those reserved are posted at once, beside one for each connection: a message that has begun to arrive
    // holds one. For devices that keep `reserve`.
    std::uint32_t max_posted = UINT32_MAX;
  };
  static verbs::Result<std::unique_ptr<ReceivePool>> create(verbs::Pd& pd, const Config& config);

  verbs::Srq& srq() { return *srq_; }

  // A connection comes, or goes; it reserves nothing by that.
  void enter() { ++num_connections_; }
  void leave() { --num_connections_; }
  // reserve posts `num` Receives more, and keeps as many there, until release; false where there are no more. `grown`
  // of them are beyond what their connection began with. Beyond max_posted they are posted when Calls hold others.
  bool reserve(std::uint32_t num, std::uint32_t grown = 0);
  void release(std::uint32_t num, std::uint32_t grown = 0);
  // Whether so much is reserved that peers should be granted less.
  bool is_low() const {
    return reserved_ > max_reserved() - max_reserved() / 8 || grown_ > config_.max_grown - config_.max_grown / 8;
  }

  // refill makes up for Receives that hold messages; before every turn of the device.
  void refill() { (void)fill(); }
  // The buffer of a completed Receive; it belongs to who took the completion, until give_back.
  std::uint32_t take(std::uint64_t wr_id) {
    ++num_held_;
    return static_cast<std::uint32_t>(wr_id) & ~kReceiveBit;
  }
  MutBytes octets(std::uint32_t slot) const { return buffers_.octets(slot); }
  // False where it cannot be posted again.
  bool give_back(std::uint32_t slot);

  std::uint32_t num_reserved() const { return reserved_; }
  std::uint32_t max_reserved() const { return config_.max_receives - config_.slack; }
  // Buffers that are posted or hold a message.
  std::uint32_t num_receives() const { return buffers_.num_taken(); }
  std::size_t registered() const { return buffers_.registered(); }
  // Gives back memory that no Receive needs any more.
  void trim() { buffers_.trim(); }

  // Lease: what a connection leaves behind whose messages somebody still looks at. The buffers come back with its end,
  // which must come in the pool's thread where the pool is still there.
  class Lease {
   public:
    explicit Lease(ReceivePool& pool) : pool_(pool.alive_), memory_(pool.buffers_.memory()) {}
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    // The connection is gone, these buffers of it are not.
    void leave_behind(std::vector<std::uint32_t> slots);

   private:
    std::weak_ptr<ReceivePool*> pool_;
    std::shared_ptr<const void> memory_;
    std::vector<std::uint32_t> slots_;
  };

 private:
  ReceivePool(verbs::Pd& pd, const Config& config, std::unique_ptr<verbs::Srq> srq)
      : config_(config), buffers_(pd, config.receive_len, config.max_receives), srq_(std::move(srq)) {}
  bool post(std::uint32_t slot);
  bool fill();
  std::uint32_t num_wanted() const;

  Config config_;
  MessagePool buffers_;
  std::unique_ptr<verbs::Srq> srq_;  // before the buffers go
  std::uint32_t reserved_ = 0;
  std::uint32_t grown_ = 0;  // of reserved_
  std::uint32_t num_connections_ = 0;
  std::uint32_t num_held_ = 0;         // buffers with messages
  std::uint32_t num_left_behind_ = 0;  // of these, of connections that are gone
  std::shared_ptr<ReceivePool*> alive_ = std::make_shared<ReceivePool*>(this);
};

}  // namespace weft::rpcrdma
