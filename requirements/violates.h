#pragma once

#ifdef WEFT_MUTATE
#include <source_location>
#include <string_view>
#include <type_traits>
#endif

namespace weft {

// violates is how a receive-side check is written: `if (violates("DDP-7.1-09", header.msn != msn_)) return ...`, the
// requirement's id beside the condition under which a peer broke it. It is the condition itself, but for builds with
// WEFT_MUTATE: there the checks named by the environment variable WEFT_SWITCH_OFF never fire, so that
// `scripts/conformance --mutate` can see whether a test notices. "DDP-7.1-09" names each check that carries the id,
// "DDP-7.1-09@ddp/untagged_queue.cc:12" the one that stands there.
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
