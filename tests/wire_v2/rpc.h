#pragma once

#include <optional>

#include "tests/wire_v2/message.h"

// Rules for the RPC message that one or more transport messages carried. libtirpc's decoders read it.
namespace weft::wire_v2 {

inline constexpr std::uint64_t kMinCall = 40, kMinReply = 20;  // octets of an RPC message (RFC 5531 section 9)

// Rules: the rows of the two drafts for one requirement.
struct Rules {
  const char* cel05 = nullptr;
  const char* wg07 = nullptr;
  std::string in(Profile profile) const { return profile == Profile::kCel05 ? cel05 : wg07; }
};

// judge_payload: the (reduced) Payload stream, whole, against the header that came with it, or with the last part of
// it.
std::optional<Fault> judge_payload(const Message& header, Octets payload);
// judge_external: the chunk that carries a Payload stream, by its length.
std::optional<Fault> judge_external(const Message& header);

}  // namespace weft::wire_v2
