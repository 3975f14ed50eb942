#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "apps/dissect/frame.h"
#include "apps/dissect/held_entries.h"
#include "apps/dissect/queue.h"
#include "ddp/segment.h"
#include "rdmap/header.h"

namespace weft::apps::dissect {

// StreamRules judges what the two sides of a connection do to each other: requests and their responses, IRD, messages
// behind a Terminate (RFC 5040 sections 5.2 and 5.4, RFC 7306 section 5), a responder that speaks first (RFC 5044
// section 7.1.2). Rules about both sides are judged only where the capture has both directions from the first FPDU on.
// A value without I/O; it remembers at most kMaxOutstanding requests of each side, and no more than HeldEntries have
// room for.
class StreamRules {
 public:
  static constexpr std::size_t kMaxOutstanding = 1024;

  // held outlives the value.
  explicit StreamRules(HeldEntries& held) : count_(held) {}

  // The capture has the first FPDU of this side. ird: how many requests at once the side takes; empty: unknown.
  // is_responder: it sent the MPA Reply.
  void on_start(Side side, std::optional<std::uint16_t> ird, bool is_responder);
  // Octets are missing, or the order of the two directions is not that of the capture. why outlives the value.
  void stop(std::string_view why);
  // Empty: they have not stopped.
  std::string_view why_stopped() const { return why_stopped_; }
  // The capture misses octets of this side, or has them too late. Rules that need no such octet go on.
  void on_gap(Side of);

  bool is_judging() const { return why_stopped_.empty() && halves_[0].started && halves_[1].started; }

  // on_first_octets: octets of the first FPDU came. The FPDU may not be whole.
  void on_first_octets(Side from) { half(from).has_begun = true; }
  void on_fpdu(Side from, Frame& frame) {
    const Half& own = half(from);
    if (!own.has_sent || own.terminated) judge_fpdu(from, frame);
  }
  void on_tagged(Side from, rdmap::Opcode opcode, bool last, Frame& frame);
  void on_read_request(Side from, const rdmap::ReadRequestHeader& request, Frame& frame);
  // Whether the segment is certainly one that a Request of the other side asked for.
  bool on_read_response(Side from, const ddp::TaggedHeader& header, std::uint64_t len, Frame& frame);
  void on_atomic_request(Side from, std::uint32_t request_id, Frame& frame);
  void on_atomic_response(Side from, std::uint32_t request_id, Frame& frame);
  void on_terminate(Side from) { half(from).terminated = true; }
  // Whether it is known which RDMA Reads and Atomics of a side are under way, and how many the other side takes.
  bool knows_requests(Side of) const {
    const Half& own = halves_[static_cast<std::size_t>(of)];
    return halves_[static_cast<std::size_t>(other(of))].ird && own.knows_reads() && own.knows_atomics();
  }
  bool has_terminated(Side from) { return half(from).terminated; }

 private:
  struct Read {
    rdmap::ReadRequestHeader request;
    std::uint64_t num_gaps = 0;  // Half::num_gaps at its time
    std::uint64_t received = 0;
    // Findings about its Response: each is one fault, however many segments have it.
    bool is_wrong = false, is_scattered = false;
  };
  struct Atomic {
    std::uint32_t id = 0;  // Request Identifier
    std::uint64_t num_gaps = 0;
  };
  struct Half {
    bool started = false;
    bool is_responder = false;
    bool has_begun = false;  // its first FPDU
    bool has_sent = false;   // an FPDU
    bool terminated = false;
    std::optional<std::uint16_t> ird;
    std::optional<rdmap::Opcode> tagged_open;
    Queue<Read> reads;      // this side's
    Queue<Atomic> atomics;  // this side's
    // Gaps in which Requests of this side or their Responses may be. The requests that are known are all that are
    // under way if one that came behind the last gap has had a Response: Responses have the order of the Requests.
    std::uint64_t num_gaps = 0;
    std::uint64_t num_gaps_of_reads = 0, num_gaps_of_atomics = 0;  // the gaps that such a Response was behind

    bool knows_reads() const { return num_gaps_of_reads == num_gaps; }
    bool knows_atomics() const { return num_gaps_of_atomics == num_gaps; }
  };

  void judge_fpdu(Side from, Frame& frame);
  Half& half(Side side) { return halves_[static_cast<std::size_t>(side)]; }
  // Whether one more request can be remembered. Else the rules stop.
  bool has_room();
  // The queues have changed.
  void count();
  void judge_outstanding(Side from, Frame& frame);
  Read* find_read(Half& asker, const ddp::TaggedHeader& header, std::uint64_t len);

  std::string_view why_stopped_ = {};
  std::array<Half, 2> halves_;
  EntryCount count_;
};

}  // namespace weft::apps::dissect
