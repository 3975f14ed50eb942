#include "mpa/peer_profile.h"

namespace weft::mpa {
namespace {

constexpr PeerProfile kProfiles[] = {
    {},
    // The Linux software RNIC. It closes on a PD_Length above 256 (RDMA_MAX_PRIVATE_DATA), ends a connection whose
    // responder announces more than 128 Reads, and rejects M=1. As initiator it never asks for the peer-to-peer model.
    {.name = "siw", .max_pd_length = 256, .max_reads = 128, .stands_markers = false},
    // Chelsio T4 to T6. The same bound of private data; by default the peer-to-peer model with an RTR by Read only,
    // which it expects at revision 1 too; 32 Reads.
    {.name = "cxgb4",
     .max_pd_length = 256,
     .max_reads = 32,
     .rtr_offered = {.read = true},
     .rtr_unasked = Rtr::kRead,
     .nudge = {}},
    // Intel X722 and E810. It treats revision 2 without A=1 as an error. It offers Write and Read itself.
    {.name = "irdma", .rtr_offered = {.write = true, .read = true}, .nudge = {}},
    // The RFCs to the letter: no ULPDU beyond the legal length (RFC 5044 section 3), and a peer that refuses revision 2
    // is an error.
    {.name = "strict", .max_ulpdu_len = kMaxMulpdu, .fall_back = false, .nudge = {}},
};

}  // namespace

std::span<const PeerProfile> peer_profiles() {
  return kProfiles;
}

const PeerProfile* find_peer_profile(std::string_view name) {
  for (const PeerProfile& profile : kProfiles)
    if (profile.name == name) return &profile;
  return nullptr;
}

}  // namespace weft::mpa
