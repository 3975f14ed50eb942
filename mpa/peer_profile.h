#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>

#include "mpa/fpdu.h"
#include "mpa/startup_frame.h"

namespace weft::mpa {

// Rtr is a ready-to-receive indication (RFC 6581 section 9.2): an ordinary message of no length that the initiator
// sends first in the peer-to-peer model.
enum class Rtr : std::uint8_t { kNone, kSend, kWrite, kRead };

// RtrSet is the set of RTR indications that an end supports.
struct RtrSet {
  bool send = false;
  bool write = false;
  bool read = false;
  bool any() const { return send || write || read; }
  friend bool operator==(const RtrSet&, const RtrSet&) = default;
};

// PeerProfile holds the needs and limits of one kind of peer beyond the RFCs. It is plain data for the startup and its
// drivers, so no code asks which profile it is. The defaults suit an unknown peer.
struct PeerProfile {
  std::string_view name = "auto";
  // The largest PD_Length of a startup frame that it takes, in octets, the words of RFC 6581 included.
  std::size_t max_pd_length = kMaxPrivateDataLen;
  // The longest ULPDU_Length that we take from it, in octets.
  std::size_t max_ulpdu_len = kMaxUlpduLength;
  // The largest IRD and ORD that we may announce to it.
  std::uint16_t max_reads = EnhancedWords::kManual - 1;
  // The default offer of an initiator.
  RtrSet rtr_offered = {};
  // The RTR indication that it waits for at revision 1, which has no negotiation.
  Rtr rtr_unasked = Rtr::kNone;
  // Whether it accepts a frame with M=1, our wish for Markers.
  bool stands_markers = true;
  // Whether we repeat the Request with revision 1, over a new TCP connection, when the peer closes on revision 2.
  bool fall_back = true;
  // After its first FPDU, an initiator waits this long for the responder's first FPDU. Then it sends a message of no
  // octets, which wakes a siw that lost the wake-up of its accept. 0 if the peer does not need it (rdmap/nudge.h).
  std::chrono::milliseconds nudge{50};
};

// peer_profiles lists all profiles, "auto" first. find_peer_profile returns null for an unknown name.
std::span<const PeerProfile> peer_profiles();
const PeerProfile* find_peer_profile(std::string_view name);

}  // namespace weft::mpa
