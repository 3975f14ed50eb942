#pragma once

#include <deque>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "base/time.h"
#include "capture.h"
#include "expected.h"
#include "rdmap/testing/pair.h"

namespace weft::e2e {

enum class End : std::uint8_t { kResponder, kInitiator };
constexpr End other(End end) {
  return end == End::kInitiator ? End::kResponder : End::kInitiator;
}

// Setup configures the two ends of a conversation: revision 1, PD 7, stream 1, unless changed.
struct Setup {
  explicit Setup(std::string conversation, bool with_crc = true, bool with_markers = false)
      : name(std::move(conversation)), crc(with_crc), markers(with_markers) {
    for (rdmap::StreamConfig* config : {&initiator, &responder}) {
      config->crc = crc;
      config->markers = markers;
      config->mpa_revision = 1;
      config->scope = {7, 1};
    }
  }

  std::string name;
  bool crc;
  bool markers;  // in both directions
  std::size_t emss = 1460;
  rdmap::StreamConfig initiator = {};
  rdmap::StreamConfig responder = {};
};

// Damage changes a segment on its way, before it is captured.
enum class Damage : std::uint8_t {
  kNone,
  kLastOctet,       // of the ULPDU, under the CRC; not for an FPDU with Markers
  kLeadingPointer,  // the FPDUPTR of the Marker that leads the FPDU becomes 4
};

// Conversation is two streams on an ideal wire. Every FPDU and every startup frame is one TCP segment. It goes into the
// capture together with the script's description, which came first. If the streams leave the script, the program ends
// with status 1.
class Conversation {
 public:
  Conversation(Capture& capture, Setup setup);

  rdmap::testing::Side& side(End end) { return end == End::kInitiator ? initiator_ : responder_; }
  const Setup& setup() const { return setup_; }

  // expect: `from` will send this segment next, behind the segments that are expected already.
  void expect(End from, Startup startup) { expected_[index(from)].push_back({std::move(startup)}); }
  void expect(End from, Ulpdu ulpdu, Damage damage = Damage::kNone) {
    expected_[index(from)].push_back({std::move(ulpdu), damage});
  }
  // inject puts a segment on the wire, as from `from`, that its stream did not make.
  void inject(End from, const Startup& startup);
  void inject(End from, const Ulpdu& ulpdu);
  void post(End from, rdmap::SendWr wr);
  // pump moves segments both ways until both ends are quiet; by then all that was expected has been sent.
  void pump();

  // connect brings both ends to Full Operation with these two frames, whose Private Data begins with the four octets of
  // RFC 6581 where the S bit is set; or, with revision 1, the setup's frames and some Private Data.
  void connect(const Startup& request, const Startup& reply);
  void connect(std::size_t private_data_len = 9);
  // request starts both ends, and the initiator's Request arrives.
  void request(const Startup& request);
  // marker_places: how far into their FPDUs the Markers were so far.
  const std::set<std::size_t>& marker_places() const { return marker_places_; }
  // check_success: `end` has had this many completions in all, none of them with an error.
  void check_success(End end, std::size_t num) const;
  // check_terminated: `by` has sent a Terminate of this triple, and the other end has read it so.
  void check_terminated(End by, Triple what) const;
  [[noreturn]] void fail(const std::string& what) const;

  TimePoint now{};

 private:
  struct Segment {
    std::variant<Startup, Ulpdu> what;
    Damage damage = Damage::kNone;
  };

  static std::size_t index(End end) { return static_cast<std::size_t>(end); }
  bool step(End from);
  void deliver(End from, Octets octets, Segment segment);
  Json fpdu_json(End from, const Ulpdu& ulpdu, Damage damage);

  Capture& capture_;
  Setup setup_;
  rdmap::testing::Side initiator_;
  rdmap::testing::Side responder_;
  std::deque<Segment> expected_[2];
  std::uint64_t position_[2] = {};  // octets of Full Operation that went before, Markers included
  std::set<std::size_t> marker_places_;
  bool fin_[2] = {};
};

}  // namespace weft::e2e
