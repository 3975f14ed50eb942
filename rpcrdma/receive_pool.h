#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/ledger.h"
#include "rpcrdma/message_pool.h"
#include "rpcrdma/receive_shares.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// Set in the wr_id of every Receive, and of no other request.
inline constexpr std::uint32_t kReceiveBit = 0x80000000;

// ReceivePool: the Receives of many connections in one shared receive queue. A connection reserves as many as its peer
// may use at once. A buffer stays with its message until it is given back; then it is posted again. So every peer
// always finds the Receives that it was promised. The Receives beyond all shares are at most the slack. The slack
// serves peers that break their grant, until the overrun is noticed.
//
// If the device keeps SrqAttr::reserve, fewer Receives than reserved may be posted: one peer at a time takes some, and
// before its turn there are as many as one peer may use. refill replaces the Receives of a turn before the next turn,
// those too whose messages have only begun to arrive. So idle connections need hardly any Receives, and a peer that
// exceeds its share in one turn takes no Receive of another peer.
//
// One thread. The Pd outlives the pool, and the pool outlives its queue pairs and Endpoints.
class ReceivePool {
 public:
  struct Config {
    std::size_t receive_len = 1024;  // octets
    // The most that connections together may reserve beyond their first shares. The rest is left for new connections.
    std::uint32_t max_grown = UINT32_MAX;
    // max_receives: at most Caps::max_srq_wr. max_posted: for devices that keep `reserve`.
    ReceiveShares::Config shares;
    // Receives that the device keeps for a turn of one connection (SrqAttr::reserve); at most the slack.
    std::uint32_t reserve = 0;
  };
  static verbs::Result<std::unique_ptr<ReceivePool>> create(verbs::Pd& pd, const Config& config);

  verbs::Srq& srq() { return *srq_; }
  // Whether the device keeps Config::reserve, so that a flood takes no Receive of another peer.
  bool keeps_reserve() const { return keeps_reserve_; }

  // A connection comes or goes. Neither call reserves or releases Receives.
  void enter() { shares_.enter(); }
  void leave() { shares_.leave(); }
  // reserve posts `num` more Receives and keeps them available until release. False: there are no more. Receives beyond
  // max_posted are posted when Calls hold others.
  bool reserve(std::uint32_t num);
  void release(std::uint32_t num) { shares_.release(num); }
  const ReceiveShares& shares() const { return shares_; }
  // Receives that connections reserve beyond their first shares. A connection holds a Lease for its own. An address
  // takes at most as many as it leaves, and a connection at most as many as it leaves to its address.
  Ledger& grown() { return grown_; }
  // Whether so many Receives are reserved that peers of this address should be granted less.
  bool is_low(std::string_view address) const;

  // refill replaces Receives that hold messages. Call it before every turn of the device.
  void refill() { (void)fill(); }
  // The buffer of a completed Receive. It belongs to the caller until give_back.
  std::uint32_t take(std::uint64_t wr_id) {
    shares_.on_filled();
    return static_cast<std::uint32_t>(wr_id) & ~kReceiveBit;
  }
  const MessagePool& buffers() const { return buffers_; }
  // False: the buffer cannot be posted again.
  bool give_back(std::uint32_t slot);

  // Buffers that are posted or hold a message.
  std::uint32_t num_receives() const { return buffers_.num_taken(); }
  std::size_t registered() const { return buffers_.registered(); }
  // Gives back memory that no Receive needs any more.
  void trim() { buffers_.trim(); }

  // Lease: the buffers of a connection that is gone, while a service still reads their messages. The buffers go back to
  // the pool at the end of the Lease. While the pool exists, the Lease must end in the pool's thread.
  class Lease {
   public:
    explicit Lease(ReceivePool& pool) : pool_(pool.alive_), memory_(pool.buffers_.memory()) {}
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    // The connection is gone, but these buffers of it are still in use.
    void leave_behind(std::vector<std::uint32_t> slots);

   private:
    std::weak_ptr<ReceivePool*> pool_;
    std::shared_ptr<const void> memory_;
    std::vector<std::uint32_t> slots_;
  };

 private:
  ReceivePool(verbs::Pd& pd, const Config& config, std::unique_ptr<verbs::Srq> srq)
      : shares_(config.shares),
        grown_({.all = config.max_grown, .leaves_as_much = true, .one_may_fill = false}),
        buffers_(pd, config.receive_len, config.shares.max_receives),
        srq_(std::move(srq)),
        keeps_reserve_(config.reserve != 0) {}
  bool post(std::uint32_t slot);
  bool fill();
  // returned: buffers that are on their way back.
  std::uint32_t wanted(std::uint32_t returned = 0) const;

  ReceiveShares shares_;
  Ledger grown_;
  MessagePool buffers_;
  std::unique_ptr<verbs::Srq> srq_;  // before the buffers go
  bool keeps_reserve_;
  std::shared_ptr<ReceivePool*> alive_ = std::make_shared<ReceivePool*>(this);
};

}  // namespace weft::rpcrdma
