#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/queue.h"
#include "base/time.h"
#include "rpcrdma/continuation.h"
#include "rpcrdma/endpoint.h"
#include "rpcrdma/framing.h"
#include "rpcrdma/message_credits.h"
#include "rpcrdma/reassembly.h"
#include "rpcrdma/transport_error.h"

namespace weft::rpcrdma {

// Sender: the engine that a Send belongs to; kLink: neither.
enum class Sender : std::uint8_t { kRequester, kResponder, kLink };

// Arrival: a message as an engine gets it.
struct Arrival {
  ReceiveSlot slot{};
  std::size_t len = 0;  // octets received
  std::optional<std::uint32_t> invalidated = {};
  // The message is the last one of several: the whole Payload stream.
  std::unique_ptr<Reassembly::Joined> joined = {};
};

// MessageFlow is the part of a Link for a profile with Framing: the credits of messages, the order in which the two
// engines of this end may send, and the parts of RPC messages that go or come in several messages. One thread.
//
// A peer can make it hold a Receive for each message that waits for memory, at most as many as the peer was given, and
// one sequence of parts within Reassembly::Limits.
class MessageFlow {
 public:
  struct Config {
    std::uint32_t window = 32;  // Receives for the peer's messages, without the reserve
    bool is_client = false;
    bool literal_credits = false;  // MessageCredits::Config::literal
    std::uint32_t sent = 0;        // MessageCredits::Config::sent, received
    std::uint32_t received = 0;
    Reassembly::Limits limits = {};
    Reassembly::Share share = {};
    // How many octets this RPC message may have in parts, of which `len` have arrived or are announced: at least so
    // many where the RPC message may be so long. 0: no engine waits for it, and its parts are not kept.
    std::function<std::size_t(Reassembly::Direction direction, std::uint32_t xid, std::size_t len)> max_octets = {};
    // Whether no RPC message may begin now, because the peer is in the middle of its properties.
    std::function<bool()> is_barred = {};
    // Posts the Send of a message that is made here.
    std::function<bool(SendSlot slot, std::size_t len)> post = {};
  };
  // endpoint and framing outlive it.
  MessageFlow(Endpoint& endpoint, const Framing& framing, Config config);

  // may_send: whether this engine may post a message now. While one engine is inside an RPC message of several parts,
  // the other one waits (W2-4.1-4).
  bool may_send(Sender sender) const;
  // How many messages of both engines may leave before the peer gives more credits.
  std::uint32_t num_credits() const { return credits_.num_left(); }
  // stamp writes the credit word into a message that is posted right after.
  void stamp(SendSlot slot);
  // Sends all messages of an RPC message but the last one. threshold: octets of one message. False: credits or Send
  // buffers ran out; call it again later.
  bool send_parts(Sender sender, Continuation& continuation, std::size_t threshold);
  // The sequence is given up: no last message follows.
  void end_sequence() { in_sequence_.reset(); }
  // Whether the Send was made here.
  bool on_sent(SendSlot slot);
  // Sends a GRANT if one is due.
  void grant_if_due() {
    if (credits_.peer_is_low()) grant();
  }

  // receives_for: how many Receives there should be for a peer that may send `window` messages at once.
  std::uint32_t receives_for(std::uint32_t window);

  Frame frame(ConstBytes message) const { return framing_.frame(message); }
  // count: a message arrived. False: the peer had no credit for it.
  bool count(const Frame& frame);
  // passes: whether this message, which just arrived, goes to an engine at once. The caller hands it up then.
  bool passes(const Frame& frame) { return arrived_.empty() && leaves(frame); }
  // keep: the message waits for next().
  void keep(const Frame& frame, Arrival&& arrival);
  // Next: the next message for an engine, in order.
  struct Next {
    Frame frame;
    Arrival arrival;
    std::optional<TransportError::Code> refusal;  // the message is to be refused, for the reason `why`
    const char* why = "";
    bool is_lost = false;  // the message is to be discarded, and invalidated a handle
  };
  // next passes over messages that no engine needs. Empty: none is left, or the rest waits for memory.
  std::optional<Next> next(TimePoint now);
  // Whether on_time has something to judge.
  bool has_deadline() const { return short_since_ || !reassembly_.is_idle(); }
  // on_time: the sequence whose time is over: it is refused. Its time is over, too, if its first part has waited for
  // memory for Reassembly::Limits::max_time.
  std::optional<Reassembly::Sequence> on_time(TimePoint now);
  // A time to call on_time again, if messages wait or a sequence is under way.
  std::optional<TimePoint> next_timeout() const;
  // Whether messages wait for memory.
  bool is_short() const { return !arrived_.empty(); }
  // Gives back memory that no message needs now.
  void trim() { arrived_.trim(); }

 private:
  struct Arrived {
    Frame frame;
    Arrival arrival;
  };
  bool is_alone(const Frame& frame) const;
  bool leaves(const Frame& frame);
  std::optional<Next> join(Arrived& arrived, TimePoint now);
  std::optional<ConstBytes> payload_of(const Arrived& arrived) const;
  Reassembly::Part part_of(const Arrived& arrived, ConstBytes payload, std::size_t max_octets) const;
  std::optional<SendSlot> take_send();
  bool send(SendSlot slot, std::size_t len);
  void sync();
  void grant();

  Endpoint& endpoint_;
  const Framing& framing_;
  Config config_;
  MessageCredits credits_;
  Reassembly reassembly_;
  std::optional<Sender> in_sequence_;
  std::vector<SendSlot> own_sends_;
  Queue<Arrived> arrived_;
  std::optional<TimePoint> short_since_;  // the first of these waits for memory
};

}  // namespace weft::rpcrdma
