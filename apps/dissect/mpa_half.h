#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "apps/dissect/fpdu_finder.h"
#include "apps/dissect/tcp_half.h"
#include "base/bytes.h"
#include "mpa/marker.h"
#include "mpa/startup_frame.h"

namespace weft::apps::dissect {

// MarkerMistake: a side puts Markers into its stream though the other side wants none, or the reverse.
enum class MarkerMistake : std::uint8_t { kNone, kUnwanted, kMissing };

enum class CrcVerdict : std::uint8_t { kGood, kBad, kUnused, kUnknown };

// Fpdu: one FPDU of a half connection, right or wrong.
struct Fpdu {
  ConstBytes wire = {};   // as captured, with Markers; shorter than wire_len if `cut`
  ConstBytes ulpdu = {};  // without Markers; the same
  std::size_t wire_len = 0;
  std::size_t ulpdu_len = 0;  // ULPDU_Length
  std::size_t length_at = 0;  // where this field is in wire
  std::uint64_t position =
      0;             // octets of Full Operation before it; counted from the first FPDU if the start is missing
  bool cut = false;  // the capture does not have all of it
  bool bad_marker = false;
  // Of Markers that fit: bits that are sent as zero.
  bool has_reserved_half = false, has_low_bits = false;
  mpa::MarkerLayout markers = {};  // where Markers are in wire
  CrcVerdict crc = CrcVerdict::kUnknown;
  bool follows_bad_crc = false;                         // the CRC of the FPDU before it did not fit, either
  MarkerMistake marker_mistake = MarkerMistake::kNone;  // of the side, told with its first FPDU
};

// MpaHalf finds the frames of one half connection (RFC 5044): the startup frame, then FPDUs. Where octets are missing
// it goes on with the next FPDU that it can find: by the Markers where they are in use, else as FpduFinder does. Where
// a startup frame is missing, each FPDU has to be one that FpduFinder accepts. A value without I/O; it holds at most
// three FPDUs.
class MpaHalf final : public TcpHalf::Sink {
 public:
  static constexpr std::uint64_t kMaxStreaming = 65536;
  // Octets of FPDUs, one behind the other, whose CRCs fit. So many have a Marker among them, if Markers are in use.
  static constexpr std::uint64_t kProof = 2 * mpa::kMarkerSpacing;

  class Sink {
   public:
    // Views are valid during the call.
    virtual void on_startup_frame(const mpa::StartupFrame& frame, ConstBytes wire, const Arrival& arrival) = 0;
    virtual void on_bad_startup_frame(const mpa::BadFrame& why, ConstBytes wire, const Arrival& arrival) = 0;
    virtual void on_fpdu(const Fpdu& fpdu, const Arrival& arrival) = 0;
    // A ULPDU_Length of 0, at the end of `wire`: no receiver can go on (MPA-3-09). bad_marker: of a Marker before it.
    virtual void on_empty_ulpdu(ConstBytes wire, bool bad_marker, const Arrival& arrival) = 0;
    // The side ended its stream inside a frame, of which this is there.
    virtual void on_cut_short(ConstBytes wire, const Arrival& arrival) = 0;
    // The capture ends inside an FPDU, of which this is there.
    virtual void on_unfinished(ConstBytes wire, const Arrival& arrival) = 0;
    // The capture misses octets here, or they cannot be read, and the next FPDU has to be found.
    virtual void on_gap() = 0;
    // len octets were passed over: the capture misses octets there or before them, or they cannot be read.
    virtual void on_skipped(std::uint64_t len, const Arrival& arrival) = 0;
    // len octets between two FPDUs whose CRCs fit are none whose CRC fits. The capture has all of them.
    virtual void on_damaged(std::uint64_t len, const Arrival& arrival) = 0;

   protected:
    ~Sink() = default;
  };

  // Terms: what the startup frames of both sides say about this half.
  struct Terms {
    bool markers = false;
    bool crc = true;
    bool is_known = false;  // false: the capture misses a startup frame, and this is what the last FPDU was like
  };

  explicit MpaHalf(Sink& sink) : sink_(sink) {}
  MpaHalf(const MpaHalf&) = delete;
  MpaHalf& operator=(const MpaHalf&) = delete;

  // Both startup frames are there.
  void set_terms(const Terms& terms);
  // The capture has the connection's first octets. Otherwise the first octets may be from the middle.
  void begin_at_start() { saw_start_ = true; }
  // Behind its startup frame, the side goes on without MPA: the Reply rejects the connection.
  void leave() {
    if (state_ != State::kStart) state_ = State::kForeign;
  }
  // Whether octets of an FPDU came, even if it is not whole yet or cannot be read.
  bool has_begun() const { return has_startup_ && (position_ != 0 || !pending_.empty()); }
  // Whether octets of an FPDU came, and not all of it.
  bool is_inside_fpdu() const { return has_startup_ && !pending_.empty(); }
  // The side sends nothing more (FIN).
  void end(const Arrival& arrival);
  // Takes octets that waited for the terms.
  void resume(const Arrival& arrival) { on_octets({}, arrival); }
  // The capture has no more of this side.
  void finish();

  void on_octets(ConstBytes octets, const Arrival& arrival) override;
  void on_missing(std::uint64_t len, const Arrival& arrival) override;

 private:
  enum class State : std::uint8_t {
    kStart,    // the startup frame comes
    kFpdus,    // Full Operation, at the start of an FPDU
    kSkip,     // Full Operation, inside an FPDU that the capture cut
    kSearch,   // the next FPDU has to be found
    kForeign,  // no MPA, or none that can be read
  };

  bool has_front_of_fpdu() const;
  void look_for_startup(ConstBytes octets);
  // Each takes octets off the front and returns their number; 0 asks for more.
  std::size_t step(ConstBytes octets, const Arrival& arrival);
  std::size_t take_startup(ConstBytes octets, const Arrival& arrival);
  std::size_t take_fpdu(ConstBytes octets, const Arrival& arrival);
  std::size_t search(ConstBytes octets, const Arrival& arrival);
  std::size_t search_by_marker(ConstBytes octets);
  std::size_t search_by_header(ConstBytes octets);
  // Guesses whether the first FPDU has Markers against the terms, and goes on as the side does. is_cut: no more of it
  // comes, and its header has to do.
  FpduFinder::Guess try_other_markers(ConstBytes octets, bool is_cut);
  bool may_have_other_markers() const { return !has_tried_markers_ && terms_.is_known && !was_lost_ && position_ == 0; }
  void report_front(const Arrival& arrival);
  // Whether FPDUs whose CRCs fit have shown the terms: what stands where the next one begins is one, right or wrong.
  bool has_proof() const { return terms_.is_known || num_proven_ >= kProof; }
  // Whether FPDUs that fit have shown where Markers are. Without CRCs, their headers have to do.
  bool knows_shape() const { return has_proof() || num_fitting_ >= kProof; }
  FpduFinder::Guess try_proven(ConstBytes octets);
  // Whether the FPDU here is worth telling.
  FpduFinder::Guess can_tell(ConstBytes octets);
  CrcVerdict report_fpdu(ConstBytes wire, std::size_t ulpdu_len, bool cut, const Arrival& arrival);
  void take_markers(Fpdu& fpdu, std::size_t present);
  std::size_t behind_bad_crc(ConstBytes octets, std::size_t len, std::size_t length_end);
  void begin_search();
  void tell_gap();
  void pass_over(std::uint64_t len, const Arrival& arrival);
  CrcVerdict judge_crc(ConstBytes wire) const;
  FpduFinder::Shape shape() const { return {terms_.markers, terms_.crc, position_ + phase_}; }
  mpa::MarkerLayout layout() const {
    return terms_.markers ? mpa::MarkerLayout::at(position_ + phase_) : mpa::MarkerLayout();
  }
  void advance(std::size_t len);

  Sink& sink_;
  State state_ = State::kStart;
  bool saw_start_ = false;
  bool has_startup_ = false;
  bool has_bad_startup_ = false;  // the last startup frame of this side cannot be read
  bool was_lost_ = false;         // an FPDU had to be found
  Terms terms_;
  std::vector<std::uint8_t> pending_;  // octets that arrived and are not taken
  // Octets among which the startup frame may still begin: a ULP can talk before it starts MPA (MPA-7.1-01).
  std::uint64_t streaming_left_ = kMaxStreaming;
  std::uint64_t position_ = 0;    // octets of Full Operation before pending_
  std::uint64_t phase_ = 0;       // what position_ lacks if it counts from an arbitrary octet; modulo 512
  std::uint64_t skip_ = 0;        // kSkip: octets up to the FPDU's end
  std::uint64_t skipped_ = 0;     // kSearch: octets passed over so far
  bool told_gap_ = false;         // kSearch: Sink::on_gap was called
  Arrival last_ = {};             // of octets
  std::uint64_t num_proven_ = 0;  // see kProof; up to kProof, since the last search
  // Octets of whole FPDUs that fit the guess, one behind the other, since the last search; up to kProof.
  std::uint64_t num_fitting_ = 0;
  bool is_damaged_ = false;  // kSearch: it began at the start of an FPDU, and no octets are missing since
  bool is_ending_ = false;   // nothing more comes
  bool has_tried_markers_ = false;
  MarkerMistake marker_mistake_ = MarkerMistake::kNone;  // not told yet
  bool was_found_ = false;                               // kFpdus: the search has accepted the FPDU here
  bool was_bad_crc_ = false;                             // kFpdus: of the FPDU before
  FpduFinder finder_;
  std::vector<std::uint8_t> bare_;
};

}  // namespace weft::apps::dissect
