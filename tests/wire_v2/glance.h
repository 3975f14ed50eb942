#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/wire_v2/message.h"

// What the octets of one message show before anyone knows its draft.
namespace weft::wire_v2 {

std::optional<std::uint32_t> version_of(const Bytes& octets);
// is_allowed: whether a sender of this draft may send it.
bool is_allowed(const Bytes& octets, Profile profile);
// draft_of: the draft that alone allows this message. Empty for a message that both allow, or none.
std::optional<Profile> draft_of(const Bytes& octets);
// is_mismatch: RDMA2_ERR_VERS_MISMATCH bears the version of the message that it answers (W2-7-2), be it version 1.
bool is_mismatch(const Bytes& octets);
// is_probe: a client of several versions asks with a NULL Call of program 0.
bool is_probe(const Bytes& octets);
std::string hex(const Bytes& octets);

}  // namespace weft::wire_v2
