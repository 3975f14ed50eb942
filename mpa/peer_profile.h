#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>

#include "mpa/fpdu.h"
#include "mpa/startup_frame.h"

namespace weft::mpa {

// Rtr is a ready-to-receive indication (RFC 6581 section 9.2): an ordinary message of no length that the initiator
// sends before all else in the peer-to-peer model.
enum class Rtr : std::uint8_t { kNone, kSend, kWrite, kRead };

// RtrSet says which RTR indications an end can do.
struct RtrSet {
  bool send = false;
  bool write = false;
  bool read = false;
  bool any() const { return send || write || read; }
  friend bool operator==(const RtrSet&, const RtrSet&) = default;
};

// PeerProfile is what a kind of peer needs or cannot do beyond the RFCs: plain data that the startup and its drivers go
// by, so that nobody ever asks which profile it is. The defaults suit a peer of whom nothing is known.
struct PeerProfile {
  std::string_view name = "auto";
  // The largest PD_Length of a startup frame that it takes, in octets; the words of RFC 6581 count.
  std::size_t max_pd_length = kMaxPrivateDataLen;
  // The longest ULPDU_Length that we take from it, in octets.
  std::size_t max_ulpdu_len = kMaxUlpduLength;
  // The most IRD and ORD that it can be told of.
  std::uint16_t max_reads = EnhancedWords::kManual - 1;
  // What an initiator offers where it was not told what to offer.
  RtrSet rtr_offered = {};
  // The RTR indication that it waits for at revision 1, where nothing can be negotiated.
  Rtr rtr_unasked = Rtr::kNone;
  // Whether it stands a frame with M=1, a wish of ours for Markers.
  bool stands_markers = true;
  // Whether the Request is repeated with revision 1, over a new TCP connection, when it closes on revision 2.
  bool fall_back = true;
  // How long an initiator that has spoken waits for the first word of the responder before it sends a message of no
  // octets, which wakes a siw that lost the wake-up of its accept; 0 where the peer does not need it (rdmap/nudge.h).
  std::chrono::milliseconds nudge{50};
};

// peer_profiles lists all there are, "auto" first; find_peer_profile is null for a name that is none of theirs.
std::span<const PeerProfile> peer_profiles();
const PeerProfile* find_peer_profile(std::string_view name);

}  // namespace weft::mpa
