#pragma once

#ifdef WEFT_MUTATE
#include <source_location>
#include <string_view>
#include <type_traits>
#endif

namespace weft {

// Every receive-side check uses violates: `if (violates("DDP-7.1-09", header.msn != msn_)) return ...`. The ids of the
// rows that demand it stand beside it, with blanks between them. violates returns the condition, except in builds with
// WEFT_MUTATE. There the checks that the variable WEFT_SWITCH_OFF names never fire, so `scripts/conformance --mutate`
// sees whether a test notices. "DDP-7.1-09" names every check that has this id, alone or among others, and
// "DDP-7.1-09@ddp/untagged_queue.h:12" only the check at this place.
#ifdef WEFT_MUTATE
bool is_switched_off(std::string_view ids, std::source_location place);
constexpr bool violates(std::string_view ids, bool condition,
                        std::source_location place = std::source_location::current()) {
  return condition && (std::is_constant_evaluated() || !is_switched_off(ids, place));
}
#else
constexpr bool violates(const char* /*ids*/, bool condition) {
  return condition;
}
#endif

}  // namespace weft
