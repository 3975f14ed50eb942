#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rpcrdma/channel.h"
#include "rpcrdma/credit_policy.h"
#include "rpcrdma/profile.h"

namespace weft::rpcrdma {

class Requester;
class Responder;

// CreditLedger: the credits of one connection in both directions.
struct CreditLedger {
  std::uint32_t granted = 1;  // to our requester, by the last Reply; one before the first (R1-4.3.3-02)
  CreditPolicy grants{{}};    // by our responder
};

// Link is what the engines of one connection share: the Channel, the profile that its messages are in, the credits of
// both directions, the gate that every Send passes, and the dispatch of what arrives. One thread.
//
// A connection has a requester, a responder, or both (RFC 8167). The engines join it when they are made; it outlives
// their use of it, and the Channel outlives it.
class Link {
 public:
  // End: which of the two engines is the forward direction's.
  enum class End : std::uint8_t { kClient, kServer };

  Link(Channel& channel, const Profile& profile, End end) : channel_(channel), profile_(&profile), end_(end) {}

  void join(Requester& requester) { requester_ = &requester; }
  void join(Responder& responder) { responder_ = &responder; }
  // Nothing that arrives reaches an engine from here on.
  void close() { closed_ = true; }

  Channel& channel() const { return channel_; }
  const Profile& profile() const { return *profile_; }
  CreditLedger& credits() { return credits_; }
  const CreditLedger& credits() const { return credits_; }

  // The gate. A Send buffer for a message that may leave now, to be filled and passed to send(); nothing where none
  // may.
  std::optional<SendSlot> take_send() { return channel_.take_send(); }
  // Sends the first `len` octets of the buffer, or what `sges` gather. invalidate: a handle of the peer's.
  bool send(SendSlot slot, std::size_t len) { return channel_.post_send(slot, len); }
  bool send(SendSlot slot, std::span<const verbs::Sge> sges, std::optional<std::uint32_t> invalidate) {
    return channel_.post_send(slot, sges, invalidate);
  }

  // The dispatch. Passes to the engines what a completion of the Channel's ended.
  void on_completion(const verbs::Wc& wc);

 private:
  void on_failure();
  void on_receive(const Work& work, std::size_t len);
  void on_sent(SendSlot slot);
  MessageKind kind_of(ConstBytes message) const;

  Channel& channel_;
  const Profile* profile_;
  End end_;
  bool closed_ = false;
  Requester* requester_ = nullptr;
  Responder* responder_ = nullptr;
  CreditLedger credits_;
};

}  // namespace weft::rpcrdma
