#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rpcrdma/bytes.h"
#include "rpcrdma/message_pool.h"
#include "rpcrdma/receive_shares.h"
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
    // max_receives: at most Caps::max_srq_wr. max_posted: for devices that keep `reserve`; a message that has begun to
    // arrive holds a Receive, so there is one for each connection beside.
    ReceiveShares::Config shares;
    // What the device keeps for a turn of one connection (SrqAttr::reserve), at most the slack.
    std::uint32_t reserve = 0;
  };
  static verbs::Result<std::unique_ptr<ReceivePool>> create(verbs::Pd& pd, const Config& config);

  verbs::Srq& srq() { return *srq_; }

  // A connection comes, or goes; it reserves nothing by that.
  void enter() { shares_.enter(); }
  void leave() { shares_.leave(); }
  // reserve posts `num` Receives more, and keeps as many there, until release; false where there are no more. `grown`
  // of them are beyond what their connection began with. Beyond max_posted they are posted when Calls hold others.
  bool reserve(std::uint32_t num, std::uint32_t grown = 0);
  void release(std::uint32_t num, std::uint32_t grown = 0) { shares_.release(num, grown); }
  const ReceiveShares& shares() const { return shares_; }

  // refill makes up for Receives that hold messages; before every turn of the device.
  void refill() { (void)fill(); }
  // The buffer of a completed Receive; it belongs to who took the completion, until give_back.
  std::uint32_t take(std::uint64_t wr_id) {
    shares_.on_filled();
    return static_cast<std::uint32_t>(wr_id) & ~kReceiveBit;
  }
  const MessagePool& buffers() const { return buffers_; }
  // False where it cannot be posted again.
  bool give_back(std::uint32_t slot);

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
      : shares_(config.shares), buffers_(pd, config.receive_len, config.shares.max_receives), srq_(std::move(srq)) {}
  bool post(std::uint32_t slot);
  bool fill();

  ReceiveShares shares_;
  MessagePool buffers_;
  std::unique_ptr<verbs::Srq> srq_;  // before the buffers go
  std::shared_ptr<ReceivePool*> alive_ = std::make_shared<ReceivePool*>(this);
};

}  // namespace weft::rpcrdma
