#pragma once

#include <functional>
#include <optional>

#include "tests/wire_v2/requests.h"
#include "tests/wire_v2/rpc.h"

namespace weft::wire_v2 {

// judge_reply compares the last or only message of a Reply with its Call. The Reply returns the offered chunks. No
// chunk is longer than it was offered, or longer than the octets that were written into it.
void judge_reply(const Request& call, const Message& reply,
                 const std::function<void(const Rules& rules, const char* text)>& report);

// judge_invalidation: the handle, if any, that a Send invalidates at the other end. `call` is the Call whose
// Reply ends with this message; null for every other message.
void judge_invalidation(const Request* call, const Message& message, std::optional<std::uint32_t> invalidated,
                        const std::function<void(const Rules& rules, const char* text)>& report);

}  // namespace weft::wire_v2
