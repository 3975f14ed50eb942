#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "rpcrdma/credit_policy.h"
#include "rpcrdma/endpoint.h"
#include "rpcrdma/profile.h"

namespace weft::rpcrdma {

class Requester;
class Responder;

// CreditLedger: the credits of one connection in both directions.
struct CreditLedger {
  std::uint32_t granted = 1;  // to our requester, by the last Reply; 1 before the first (R1-4.3.3-02)
  CreditPolicy grants{{}};    // by our responder
};

// Link is the state that the engines of one connection share: the Endpoint, the profile of its messages, the credits of
// both directions, the gate that every Send passes, and the dispatch of completions. One thread.
//
// A connection has a requester, a responder, or both (RFC 8167). The engines join the Link when they are made. The Link
// outlives their use of it, and the Endpoint outlives the Link.
class Link {
 public:
  // End: the end of the connection. It tells which engine serves the forward direction.
  enum class End : std::uint8_t { kClient, kServer };

  Link(Endpoint& endpoint, const Profile& profile, End end) : Link(endpoint, Profiles{&profile}, end, {}) {}
  // With several profiles, the first message that arrives decides which one the connection has, and `on_decided` is
  // called before an engine gets the message.
  Link(Endpoint& endpoint, Profiles profiles, End end, std::function<void()> on_decided)
      : endpoint_(endpoint), profiles_(std::move(profiles)), end_(end), on_decided_(std::move(on_decided)) {
    if (profiles_.size() == 1) profile_ = profiles_.front();
  }

  void join(Requester& requester) { requester_ = &requester; }
  void join(Responder& responder) { responder_ = &responder; }
  // From here on the engines get no more messages and completions.
  void close() { closed_ = true; }

  Endpoint& endpoint() const { return endpoint_; }
  bool is_decided() const { return profile_ != nullptr; }
  // The profile of the connection. Before it is decided: the profile that answers the message at hand.
  const Profile& profile() const { return profile_ != nullptr ? *profile_ : *answering_; }
  // Whether this end made the connection.
  bool is_client() const { return end_ == End::kClient; }
  // The versions that this end speaks on this connection, for ERR_VERS.
  struct Versions {
    std::uint32_t low = 0, high = 0;
  };
  Versions versions() const;
  CreditLedger& credits() { return credits_; }
  const CreditLedger& credits() const { return credits_; }

  // The gate. take_send returns a Send buffer if a message may leave now, else nothing. The caller fills it and passes
  // it to send().
  std::optional<SendSlot> take_send() { return endpoint_.take_send(); }
  // Sends the first `len` octets of the buffer, or the octets that `sges` gather. invalidate: a handle of the peer.
  bool send(SendSlot slot, std::size_t len) { return endpoint_.post_send(slot, len); }
  bool send(SendSlot slot, std::span<const verbs::Sge> sges, std::optional<std::uint32_t> invalidate) {
    return endpoint_.post_send(slot, sges, invalidate);
  }

  // The dispatch. Passes the Work of a completion to its engine.
  void on_completion(const verbs::Wc& wc);

 private:
  void on_failure();
  void decide(ConstBytes message);
  void on_receive(const Work& work, std::size_t len);
  void on_sent(SendSlot slot);
  MessageKind kind_of(ConstBytes message) const;

  Endpoint& endpoint_;
  const Profile* profile_ = nullptr;  // null: not decided
  Profiles profiles_;
  const Profile* answering_ = profiles_.front();
  End end_;
  std::function<void()> on_decided_;
  bool closed_ = false;
  Requester* requester_ = nullptr;
  Responder* responder_ = nullptr;
  CreditLedger credits_;
};

}  // namespace weft::rpcrdma
