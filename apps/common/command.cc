#include "apps/common/command.h"

#include <cstdio>

#include "apps/common/option_words.h"
#include "apps/common/printable.h"

namespace weft::apps {
namespace {

void say(std::string_view message) {
  std::fprintf(stderr, "weft: %s\n", printable(in_options(message)).c_str());
}

}  // namespace

int fail(std::string_view message) {
  say(message);
  return kExitFailed;
}

void warn(std::string_view message) {
  say(message);
}

int fail(const absl::Status& status) {
  return fail(std::string_view(status.message().data(), status.message().size()));
}

int usage_error(std::string_view message) {
  say(message);
  return kExitUsage;
}

absl::Status to_status(const verbs::Error& error, std::string_view what) {
  std::string text(what);
  if (!text.empty()) text += ": ";
  text += error.message;
  // The errno's own code helps callers to distinguish causes. The sentence is already in the message.
  return absl::Status(absl::ErrnoToStatusCode(error.errno_value), text);
}

}  // namespace weft::apps
