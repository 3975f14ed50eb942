#pragma once

#include <span>
#include <string>
#include <string_view>

#include "verbs-shim/api/types.h"

namespace weft::verbs {

// WcHint tells a user the likely cause of a status and the remedy. The sentences have neither capital nor full stop.
struct WcHint {
  WcStatus status = WcStatus::kSuccess;
  std::string_view cause;
  std::string_view advice;
};
// One hint for each status but kSuccess.
std::span<const WcHint> wc_hints();

// explain describes a failed completion in one line for people: the status, the Terminate behind it if the device gave
// its code (Wc::vendor_err), the likely cause, the remedy. words: the connection's own text when it ended
// (CmEvent::text), or empty. This text is more precise than a status, so it replaces the cause and the remedy.
std::string explain(const Wc& wc, std::string_view words = {});

}  // namespace weft::verbs
