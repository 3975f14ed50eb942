#pragma once

#include <functional>
#include <optional>

#include "tests/wire_v2/requests.h"
#include "tests/wire_v2/rpc.h"

namespace weft::wire_v2 {

// judge_reply: the last or only message of a Reply against its Call: the chunks that it returns are those that were
// offered, no longer than they were and than what was written into them.
void judge_reply(const Request& call, const Message& reply,
                 const std::function<void(const Rules& rules, const char* text)>& report);

// judge_invalidation: the handle, if any, that a Send invalidates at the other end. `call` is what the message answers
// as the last or only message of a Reply; null for every other message.
void judge_invalidation(const Request* call, const Message& message, std::optional<std::uint32_t> invalidated,
                        const std::function<void(const Rules& rules, const char* text)>& report);

}  // namespace weft::wire_v2
