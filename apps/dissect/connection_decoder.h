#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "apps/dissect/fault_log.h"
#include "apps/dissect/frame.h"
#include "apps/dissect/held_entries.h"
#include "apps/dissect/held_messages.h"
#include "apps/dissect/mpa_half.h"
#include "apps/dissect/rdmap_decoder.h"
#include "apps/dissect/rpc_decoder.h"
#include "apps/dissect/tcp_half.h"
#include "apps/dissect/tcp_segment.h"
#include "apps/dissect/waiting_segments.h"

namespace weft::apps::dissect {

// Numbers: counters over the whole capture.
struct Numbers {
  std::uint64_t frames = 0;
  std::uint32_t connections = 0;
};

// Held: the memory that all connections hold together.
struct Held {
  // Memory that the next frame finds.
  Frame frame;
  TransportHeader header;
  CallTable::Pool calls;
  HeldOctets segments;
  HeldMessages messages;
  HeldEntries entries;
};

// ConnectionDecoder reads one TCP connection, and tells of it if it is iWARP.
class ConnectionDecoder {
 public:
  // The references outlive the decoder. first: the connection's first segment in the capture; its sender is taken for
  // the client until an MPA Request or a SYN says otherwise.
  ConnectionDecoder(const Options& options, Listener& listener, Numbers& numbers, Held& held, const TcpSegment& first);
  ConnectionDecoder(const ConnectionDecoder&) = delete;
  ConnectionDecoder& operator=(const ConnectionDecoder&) = delete;

  void on_segment(const TcpSegment& segment);
  // The connection or the capture ends.
  void finish();

  // Connection::id; 0 before its first frame.
  std::uint32_t id() const { return id_; }
  Timestamp last() const { return last_; }
  // Whether both ends have said their last (FIN), or one of them broke off (RST).
  bool has_ended() const { return was_reset_ || (has_fin_[0] && has_fin_[1]); }
  // Whether this segment, which has the connection's ends, is of another connection.
  bool is_over(const TcpSegment& segment) const;

 private:
  // Direction: what one end sends.
  class Direction final : public MpaHalf::Sink {
   public:
    Direction(ConnectionDecoder& of, int end, HeldOctets& held)
        : tcp(held), mpa(*this), waiting(held), of_(of), end_(end) {}

    void on_startup_frame(const mpa::StartupFrame& frame, ConstBytes wire, const Arrival& arrival) override;
    void on_bad_startup_frame(const mpa::BadFrame& why, ConstBytes wire, const Arrival& arrival) override;
    void on_fpdu(const Fpdu& fpdu, const Arrival& arrival) override;
    void on_empty_ulpdu(ConstBytes wire, bool bad_marker, const Arrival& arrival) override;
    void on_cut_short(ConstBytes wire, const Arrival& arrival) override;
    void on_unfinished(ConstBytes wire, const Arrival& arrival) override;
    void on_gap() override;
    void on_skipped(std::uint64_t len, const Arrival& arrival) override;
    void on_damaged(std::uint64_t len, const Arrival& arrival) override;

    TcpHalf tcp;
    MpaHalf mpa;
    std::optional<mpa::StartupFrame> startup;
    WaitingSegments waiting;
    bool saw_syn = false;
    std::optional<std::uint32_t> sent;  // the sequence number behind the last octet in the capture
    // The other side has answered octets before this sequence number, and the capture has them later. Empty: there are
    // none.
    std::optional<std::uint32_t> late_until;

    // Octets came behind the startup frame.
    void note_first_octets();

   private:
    void judge_early_reply(Frame& frame) const;
    void tell_octets();

    ConnectionDecoder& of_;
    int end_;
    bool has_begun_ = false;  // see note_first_octets
    bool is_early_ = false;   // they came before the Reply, which is not told yet
  };

  void on_syn(const TcpSegment& segment, Direction& from, Direction& to);
  static bool is_stray_reset(const TcpSegment& segment, const Direction& from);
  static void note_sent(const TcpSegment& segment, Direction& from);
  bool is_waiting() const { return !first_.waiting.empty() || !second_.waiting.empty(); }
  bool has_to_wait(const TcpSegment& segment, int end) const;
  bool lacks_octets_before(int end, std::uint32_t ack) const;
  std::size_t num_older(const TcpSegment& segment, int end) const;
  void take_or_hold(const TcpSegment& segment, int end);
  void pass_lost(const TcpSegment& segment, int end);
  void take_waiting();
  void take_first_waiting(int end);
  void take_all_waiting();
  void note_late_side(const TcpSegment& segment, int end);
  void overtake(int end, std::uint32_t ack);
  void take(const TcpSegment& segment, int end);
  void begin_frame(int end, const Arrival& arrival, ConstBytes wire);
  void tell_frame();
  void settle_terms();
  // End: a FIN or a RST that is not told yet.
  struct End {
    Arrival arrival;
    int from = 0;
    bool reset = false;
    std::uint32_t seq = 0;  // behind the last octet
  };
  void on_end(const TcpSegment& segment, int end);
  void tell_ends(bool all);
  void tell_end(const End& end);
  void tell_comments(const TcpSegment& segment, int end);
  // Silence: a part of the rules is not judged any more.
  struct Silence {
    std::string_view what;
    bool was_told = false;
    std::string_view why = {};
    std::uint64_t since = 0;  // a packet
  };
  void tell_unjudged(std::uint64_t packet);
  void tell_silence(Silence& silence);
  Side side_of(int end) const { return end == client_ ? Side::kClient : Side::kServer; }
  int end_of(const TcpSegment& segment) const { return segment.src == ends_[0] ? 0 : 1; }
  Direction& direction(int end) { return end == 0 ? first_ : second_; }
  const Direction& direction(int end) const { return end == 0 ? first_ : second_; }

  const Options& options_;
  Listener& listener_;
  Numbers& numbers_;
  Frame& frame_;
  std::array<IpEndpoint, 2> ends_;
  int client_ = 0;
  std::uint32_t id_ = 0;  // 0: nothing was told yet
  bool told_end_ = false;
  std::array<bool, 2> has_fin_{};  // by end
  std::vector<End> ends_waiting_;  // a FIN of each side and a RST, at most
  bool was_reset_ = false;
  Silence both_sides_{"rules about both sides"};
  Silence missing_octets_{"rules that need the missing bytes"};
  Silence offered_memory_{"RDMA Writes and Reads outside the memory of open Calls"};
  Timestamp last_{};
  std::uint64_t last_packet_ = 0;
  RpcDecoder rpc_;
  RdmapDecoder rdmap_;
  FaultLog faults_;
  Direction first_, second_;
};

}  // namespace weft::apps::dissect
