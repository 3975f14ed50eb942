#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rpcrdma/credit_policy.h"
#include "rpcrdma/endpoint.h"
#include "rpcrdma/link_observer.h"
#include "rpcrdma/message_flow.h"
#include "rpcrdma/outbox.h"
#include "rpcrdma/probes.h"
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
  // With several profiles, at a server's end the first message that arrives decides which one the connection has, and
  // `on_decided` is called before an engine gets the message. A client's end is told by `ask` and `begin`.
  // literal_credits: as ClientConfig has it.
  Link(Endpoint& endpoint, Profiles profiles, End end, std::function<void()> on_decided, bool literal_credits = false)
      : endpoint_(endpoint),
        profiles_(std::move(profiles)),
        end_(end),
        on_decided_(std::move(on_decided)),
        literal_credits_(literal_credits) {
    if (profiles_.size() == 1) settle(*profiles_.front());
  }
  ~Link() { end("the connection is gone"); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // observe: `observer` hears of every message from now on, and of the end. It outlives the Link.
  void observe(LinkObserver& observer, ObservedLink self);
  // The end of the connection for the observer, with the first reason that is given.
  void end(std::string_view why);

  void join(Requester& requester) { requester_ = &requester; }
  void join(Responder& responder) { responder_ = &responder; }
  // The responder is gone. Another one may have joined in its place.
  void leave(const Responder& responder) {
    if (responder_ == &responder) responder_ = nullptr;
  }
  // For the client's first messages (Negotiation). ask: the next Send asks in this profile. hear: a message came that
  // is for no engine; the Endpoint fails if the server had no credit for it. begin: the server answered in the profile
  // that was asked last, with this credit word.
  void ask(const Profile& profile);
  void hear(const Arrival& arrival);
  void begin(std::uint32_t credit);
  // Whether the server has answered already when the requester starts.
  bool has_begun() const { return has_begun_; }
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
  // it to send(), if may_send() still holds then. After on_room of the engine, it is worth another try.
  bool may_send(Sender sender) const { return !flow_ || flow_->may_send(sender); }
  std::optional<SendSlot> take_send(Sender sender) { return may_send(sender) ? endpoint_.take_send() : std::nullopt; }
  // Sends the first `len` octets of the buffer, or the octets that `sges` gather. invalidate: a handle of the peer. The
  // message begins in the buffer.
  bool send(SendSlot slot, std::size_t len) {
    count_send(slot);
    return post(slot, len);
  }
  bool send(SendSlot slot, std::span<const verbs::Sge> sges, std::optional<std::uint32_t> invalidate) {
    count_send(slot);
    const bool is_posted = endpoint_.post_send(slot, sges, invalidate);
    if (is_posted && tells_sent()) tell_sent(sges, invalidate);
    return is_posted;
  }
  // Whether messages of neither engine wait.
  bool has_unsent() const { return !outbox_.empty(); }
  // Null for a profile without Framing.
  MessageFlow* flow() { return flow_ ? &*flow_ : nullptr; }
  // How many Receives there should be for a peer that may have `window` messages under way.
  std::uint32_t receives_for(std::uint32_t window) { return flow_ ? flow_->receives_for(window) : window; }

  // exchange_properties: this end tells its properties and hears the peer's, if the profile has any. It follows the
  // decision for a profile. The engines of the forward direction then keep to terms(). on_terms: terms() changed; or
  // null.
  void exchange_properties(const Properties& own, std::function<void()> on_terms);
  // The client's opening was answered: from now on every message may be sent.
  void on_opened();
  // Whether the peer may still tell its properties. terms() is for the time after that.
  bool may_expect_terms() const { return exchange_ != nullptr && !exchange_->peer(); }
  Terms terms() const { return terms_of(exchange_->own(), *exchange_->peer(), profile().first_threshold); }

  // The dispatch. Passes the Work of a completion to its engine. finish_turn or on_time comes after the last one of a
  // turn.
  void on_completion(const verbs::Wc& wc);
  // finish_turn lets messages go on that waited for credits, Send buffers, memory or the other engine.
  void finish_turn();
  // on_needless: a message that arrived leads to nothing: it is posted again at once and costs its sender no credit.
  void on_needless();
  // Whether the message is a Call, or a part of one. Without a responder it comes to the requester.
  bool has_call(ConstBytes message) const;
  // set_now comes before on_completion and on_time.
  void set_now(TimePoint now) { now_ = now; }
  TimePoint now() const { return now_; }
  // Ends sequences of parts whose time is over, and finishes the turn.
  void on_time(TimePoint now);
  // on_turn: it is this connection's turn to take memory for parts that wait.
  void on_turn() { pass_on(); }
  std::optional<TimePoint> next_timeout() const { return flow_ ? flow_->next_timeout() : std::nullopt; }
  // Gives back memory that no message needs now, the Endpoint's, too.
  void trim();
  // Passes one message to its engine: on_completion does so, and a client for messages that came before `begin`.
  void on_receive(Arrival&& arrival);

 private:
  void on_failure();
  void decide(ConstBytes message);
  void settle(const Profile& profile);
  void make_flow(const Profile& profile);
  void count_send(SendSlot slot);
  bool post(SendSlot slot, std::size_t len) {
    const bool is_posted = endpoint_.post_send(slot, len);
    if (is_posted && tells_sent()) tell(LinkMessage::Direction::kSent, endpoint_.send_buffer(slot).first(len));
    return is_posted;
  }
  bool tells_sent() const { return observer_ != nullptr || WEFT_PROBE_IS_ARMED(message_sent); }
  bool tells_received() const { return observer_ != nullptr || WEFT_PROBE_IS_ARMED(message_received); }
  void tell_sent(std::span<const verbs::Sge> sges, std::optional<std::uint32_t> invalidate);
  void tell(LinkMessage::Direction direction, ConstBytes octets, std::optional<std::uint32_t> invalidated = {});
  void tell(LinkMessage message);
  void probe(const LinkMessage& message) const;
  bool may_be_property(const Frame& frame) const;
  void pass(Arrival&& arrival, bool may_be_property);
  void pass_on();
  bool may_lose(const MessageFlow::Next& next);
  void refuse(const MessageFlow::Next& next);
  bool refuse_without_room(const Arrival& arrival);
  void end_late_sequence();
  void settle_terms();
  void on_one_way(bool is_good);
  bool take_property(const Arrival& arrival);
  void ask_for_longer_receives();
  void tell_fault(const char* fault) const;
  void pump_outbox();
  Reassembly::Share share_of_parts();
  void on_sent(SendSlot slot);
  MessageKind kind_of(ConstBytes message) const;

  Endpoint& endpoint_;
  const Profile* profile_ = nullptr;  // null: not decided
  Profiles profiles_;
  const Profile* answering_ = profiles_.front();
  End end_;
  std::function<void()> on_decided_;
  bool literal_credits_;
  bool has_begun_ = false;
  bool closed_ = false;
  std::uint32_t needless_in_turn_ = 0;  // messages
  Requester* requester_ = nullptr;
  Responder* responder_ = nullptr;
  CreditLedger credits_;
  std::optional<MessageFlow> flow_;
  // Messages of the connection while it was not decided.
  std::uint32_t num_early_sent_ = 0;
  std::uint32_t num_early_received_ = 0;
  std::unique_ptr<PropertyExchange> exchange_;
  std::function<void()> on_terms_;
  Outbox outbox_;
  TimePoint now_{};
  LinkObserver* observer_ = nullptr;
  ObservedLink self_;  // for the observer
  std::vector<ConstBytes> views_;
};

}  // namespace weft::rpcrdma
