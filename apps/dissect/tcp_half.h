#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "apps/dissect/tcp_segment.h"
#include "base/bytes.h"

namespace weft::apps::dissect {

// Arrival: the packet in which octets came.
struct Arrival {
  std::uint64_t packet = 0;
  Timestamp time{};
};

// HeldOctets bounds what all half connections hold for segments that came too early.
struct HeldOctets {
  static constexpr std::size_t kMaxOfHalf = 4 << 20;
  static constexpr std::size_t kMax = 128 << 20;
  std::size_t now = 0;
};

// TcpHalf puts the octets of one direction of a TCP connection into their order. It drops retransmissions, holds early
// segments, and passes over octets that the capture does not have: a segment that the capture cut, or a packet that it
// missed. A value without I/O.
class TcpHalf {
 public:
  // Sink takes the octets in order.
  class Sink {
   public:
    // The view is valid during the call.
    virtual void on_octets(ConstBytes octets, const Arrival& arrival) = 0;
    // len octets are not in the capture.
    virtual void on_missing(std::uint64_t len, const Arrival& arrival) = 0;

   protected:
    ~Sink() = default;
  };

  struct Counters {
    std::uint64_t octets = 0;         // delivered
    std::uint64_t retransmitted = 0;  // segments with nothing new
    std::uint64_t out_of_order = 0;   // segments that came too early
    std::uint64_t lost = 0;           // octets of packets that the capture missed
    std::uint64_t cut = 0;            // octets that the capture cut off packets
  };

  explicit TcpHalf(HeldOctets& held) : held_(held) {}
  TcpHalf(const TcpHalf&) = delete;
  TcpHalf& operator=(const TcpHalf&) = delete;
  ~TcpHalf() { drop_held(); }

  void on_segment(const TcpSegment& segment, Sink& sink);
  // The other direction acknowledged all octets before `ack`. So the capture missed a hole before `ack`. A packet that
  // comes again, or late, takes nothing back.
  void on_ack(std::uint32_t ack) {
    if (has_ack_ && seq_distance(acked_, ack) <= 0) return;
    acked_ = ack;
    has_ack_ = true;
  }
  // The capture ends: the held segments go to the sink, with the holes before it.
  void finish(Sink& sink);
  // The octets before `end` do not come any more: the capture missed those that it does not have.
  void give_up(std::uint32_t end, const Arrival& arrival, Sink& sink);

  // The other direction acknowledged the SYN: the first octet is `first`. False: the octets have begun already.
  bool begin(std::uint32_t first);
  // Whether a SYN with this sequence number is not the one of these octets.
  bool is_foreign_syn(std::uint32_t seq) const;
  // Whether the capture has the connection's first octet.
  bool saw_start() const { return saw_start_; }
  // Whether every octet before sequence number `end` went to the sink.
  bool is_complete(std::uint32_t end) const { return !has_gap_ && next_ == end; }
  // Whether a segment came too early.
  bool is_disordered() const { return disordered_; }
  // Whether neither a SYN nor an octet came: the capture may not have this direction.
  bool is_silent() const { return !saw_syn_ && counters_.octets == 0; }
  // Whether sequence number `end` is behind octets that did not go to the sink. False as long as the side is silent.
  bool lacks_octets_before(std::uint32_t end) const { return !is_silent() && seq_distance(next_, end) > 0; }
  // Whether no octet before sequence number `end` is new: all have gone to the sink, or are lost.
  bool has_octets_before(std::uint32_t end) const { return started_ && seq_distance(next_, end) <= 0; }
  // Whether octets before sequence number `end` may still come: the capture has not all of them, and they are not lost.
  bool is_waiting(std::uint32_t end) const;
  // Whether the other direction has acknowledged none of the octets so far.
  bool is_unacknowledged() const { return saw_start_ && has_ack_ && acked_ == first_; }
  // The highest sequence number that the other direction acknowledged.
  std::optional<std::uint32_t> acked() const { return has_ack_ ? std::optional(acked_) : std::nullopt; }
  // Whether segments wait for octets before them.
  bool is_holding() const { return !early_.empty(); }
  const Counters& counters() const { return counters_; }

 private:
  struct Early {
    std::vector<std::uint8_t> octets;
    std::size_t len = 0;  // with the octets that the capture cut off
    Arrival arrival;
  };

  void deliver(ConstBytes octets, std::size_t len, const Arrival& arrival, Sink& sink);
  void hold(const TcpSegment& segment, std::uint64_t at);
  void drain(Sink& sink);
  void pass_hole(Sink& sink);
  bool is_hole_lost() const;
  void drop_held();

  HeldOctets& held_;
  bool started_ = false;
  bool saw_start_ = false;
  bool saw_syn_ = false;
  bool has_gap_ = false;  // the sink did not get all octets before next_
  bool disordered_ = false;
  std::uint32_t first_ = 0;     // sequence number of the first octet in the capture
  std::uint64_t position_ = 0;  // octets of the stream so far, delivered or missing
  std::uint32_t next_ = 0;      // sequence number at position_
  std::uint32_t acked_ = 0;
  bool has_ack_ = false;
  std::map<std::uint64_t, Early> early_;  // by position
  std::size_t held_here_ = 0;
  Counters counters_;
};

}  // namespace weft::apps::dissect
