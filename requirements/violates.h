#pragma once

#ifdef WEFT_MUTATE
#include <source_location>
#include <string_view>
#include <type_traits>
#endif

namespace weft {

// Every receive-side check uses violates: `if (violates("DDP-7.1-09", header.msn != msn_)) return ...`. The
// requirement's id stands beside the condition under which a peer breaks it. violates returns the condition, except in
// builds with WEFT_MUTATE. There the checks that the environment variable WEFT_SWITCH_OFF names never fire, so that
// `scripts/conformance --mutate` can see whether a test notices. "DDP-7.1-09" names every check with this id,
// "DDP-7.1-09@ddp/untagged_queue.cc:12" only the check at this place.
#ifdef WEFT_MUTATE
bool is_switched_off(std::string_view id, std::source_location place);
constexpr bool violates(std::string_view id, bool condition,
                        std::source_location place = std::source_location::current()) {
  return condition && (std::is_constant_evaluated() || !is_switched_off(id, place));
}
#else
constexpr bool violates(const char* /*id*/, bool condition) {
  return condition;
}
#endif

}  // namespace weft
