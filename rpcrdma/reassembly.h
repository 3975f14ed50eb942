#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/ledger.h"
#include "base/time.h"
#include "rpcrdma/earned_time.h"

namespace weft::rpcrdma {

// Reassembly joins the parts of RPC messages that one peer sends in several messages
// (draft-ietf-nfsv4-rpcrdma-version-two-07 sections 6.3.6, 6.3.9 and 6.6.2). It sees every message of the peer, in
// order: a peer sends one RPC message after the other, so there is at most one sequence of parts. Parts are copied, and
// their Receives can be posted again at once. A length that a peer announces reserves nothing: memory grows with the
// octets that arrived, to at most twice as many, and goes when the sequence ends. But an RPC message that is announced
// as longer than it may be is refused at its first part. A value without I/O; its clock is handed in.
class Reassembly {
 public:
  struct Limits {
    std::size_t max_octets = 1048576;              // of one RPC message
    std::uint32_t max_parts = 1024;                // of one RPC message
    Duration max_time = std::chrono::seconds(30);  // from the first part to the last one, without waits for memory
    EarnedTime::Terms while_others_wait = {};      // for the share
  };

  enum class Direction : std::uint8_t { kCall, kReply };

  // Share: this connection's share of a budget. A sequence takes more of it as its octets arrive. Its Lease ends with
  // the memory.
  struct Share {
    // take: adds at least `least` octets to the Lease, and at most `most`, which is all that the sequence may still
    // need. False: there is no room now. True without a larger Lease: this memory is not counted. A share that lets
    // sequences hold memory of others while they wait for more must end the wait: Responder::take_memory takes all at
    // once then. Empty: no memory is counted.
    std::function<bool(Direction direction, Lease& lease, std::size_t least, std::size_t most)> take = {};
    // is_wanted: whether others wait for the share. Empty: never.
    std::function<bool()> is_wanted = {};
  };

  // Part: a message of the peer.
  struct Part {
    enum class Kind : std::uint8_t {
      kMiddle,    // CALL_MIDDLE, REPLY_MIDDLE
      kInline,    // CALL_INLINE, REPLY_INLINE
      kExternal,  // CALL_EXTERNAL, REPLY_EXTERNAL: these are never parts
      kExempt,    // GRANT, ERROR: two peers that are in a sequence and have no credits could not go on otherwise
      kOther,
    };
    using Direction = Reassembly::Direction;
    Kind kind = Kind::kOther;
    Direction direction = Direction::kCall;
    std::uint32_t xid = 0;
    ConstBytes payload;
    std::size_t max_octets = SIZE_MAX;  // of the RPC message, beside Limits::max_octets; may rise from part to part
    bool is_barred = false;             // another sequence of the peer is under way: no RPC message may begin
    std::size_t announced = 0;          // octets of the RPC message that the peer says are to follow
  };

  // Joined: the Payload stream of an RPC message that came in several messages, with its part of the share.
  struct Joined {
    std::vector<std::uint8_t> octets;
    Lease lease;
  };

  enum class Verdict : std::uint8_t {
    kAlone,      // the message belongs to no sequence
    kTaken,      // a part; others are to come
    kWhole,      // the last part: take_message() has the Payload stream
    kDiscard,    // a part of an RPC message that was refused: no answer
    kInvalCont,  // another message inside a sequence, or a barred one: INVAL_CONT
    kBadXdr,     // the first part does not begin with its XID: BAD_XDR
    kTooLong,    // too many octets, arrived or announced, or too many parts: SYSTEM
    kShort,      // the budget has no room for the part. Nothing changed: offer the part again later, or refuse()
  };

  Reassembly(const Limits& limits, Share share) : limits_(limits), share_(std::move(share)) {}
  ~Reassembly() { drop(); }
  Reassembly(const Reassembly&) = delete;
  Reassembly& operator=(const Reassembly&) = delete;

  // on_message: the next message of the peer, which has a good header. With kInvalCont, kBadXdr and kTooLong the
  // message is dropped, and the rest of its RPC message is discarded. A Call is answered with the error that the
  // Verdict names and the XID of `part`. A Reply gets no answer: its RPC has failed (section 7.1.4 lets responders
  // alone answer). A sequence goes on after a message with another XID or of the other direction.
  Verdict on_message(const Part& part, TimePoint now);

  // take_message: the Payload stream, once, after kWhole and before the next message. It holds capacity() octets of the
  // share.
  Joined take_message();

  // refuse: the rest of this RPC message is discarded: one part was malformed, or the RPC is over. Only the last one
  // that was refused is remembered.
  void refuse(Direction direction, std::uint32_t xid);
  // on_malformed: a message with this XID has no good header. A responder answers it with an error, which ends the RPC
  // (W2-7.1.4-1). So a Call under way with this XID is refused, too.
  void on_malformed(std::uint32_t xid);
  // on_last: the last part of this RPC message came and is not wanted. Nothing of it is kept or remembered.
  void on_last(Direction direction, std::uint32_t xid);

  struct Sequence {
    Direction direction = Direction::kCall;
    std::uint32_t xid = 0;
    friend bool operator==(const Sequence&, const Sequence&) = default;
  };
  // on_time: returns the sequence that was refused because its time is over, or because its peer is too slow while
  // others wait; answer it as one that is too long.
  std::optional<Sequence> on_time(TimePoint now);
  std::optional<TimePoint> next_timeout() const;

  // Whether no sequence is under way, and no refused one can go on.
  bool is_idle() const { return state_ == State::kIdle && !refused_; }

  // Octets of the sequence that have arrived.
  std::size_t len() const { return state_ == State::kCollecting ? octets_.size() : 0; }
  // Octets of memory for the sequence.
  std::size_t memory() const { return octets_.capacity(); }

 private:
  enum class State : std::uint8_t { kIdle, kCollecting, kWhole };

  Verdict begin(const Part& part, TimePoint now);
  Verdict add(const Part& part, TimePoint now);
  bool reserve(std::size_t len);
  void on_short(TimePoint now);
  void on_progress(std::size_t octets, TimePoint now);
  bool is_wanted() const { return share_.is_wanted && share_.is_wanted(); }
  Verdict refuse_part(const Part& part, Verdict verdict);
  bool is_refused(const Part& part) const;
  void drop();

  const Limits limits_;
  const Share share_;
  State state_ = State::kIdle;
  Sequence sequence_;  // unless kIdle
  TimePoint deadline_{};
  std::size_t max_octets_ = 0;            // of the sequence
  std::optional<EarnedTime> earned_;      // while others wait
  std::optional<TimePoint> short_since_;  // since when its next part waits for memory
  std::uint32_t num_parts_ = 0;
  Lease lease_;
  std::vector<std::uint8_t> octets_;
  std::optional<Sequence> refused_;  // its last part has not arrived
};

}  // namespace weft::rpcrdma
