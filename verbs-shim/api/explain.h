#pragma once

#include <span>
#include <string>
#include <string_view>

#include "verbs-shim/api/types.h"

namespace weft::verbs {

// WcHint is what somebody who meets a status should know. The sentences have neither capital nor full stop.
struct WcHint {
  WcStatus status = WcStatus::kSuccess;
  std::string_view cause;
  std::string_view advice;
};
// One for each status but kSuccess.
std::span<const WcHint> wc_hints();

// explain puts a failed completion in one line for people: the status, the Terminate behind it where the device gave
// its code (Wc::vendor_err), the likely cause, what to try. words: what the connection itself said when it ended
// (CmEvent::text), empty where it has not. It knows more than a status can, so it stands instead of cause and advice.
std::string explain(const Wc& wc, std::string_view words = {});

}  // namespace weft::verbs
