#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "apps/common/global_options.h"
#include "verbs-shim/api/result.h"

// Each command joins the program in this way. apps/X/command.h declares
//     void register_X_command(CLI::App& root, CommandContext& context);
// which adds the subcommand with its options, a footer() with one worked example, and a callback() that runs it and
// stores its exit status in context.exit_status. The CMake target of the folder is weft_app_X.
namespace weft::apps {

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
// The reader of standard output has left. main then ends the program by SIGPIPE, without a message, as this signal ends
// other programs. Shells show this status.
constexpr int kExitReaderLeft = 141;

// fail prints "weft: MESSAGE" on stderr, as one line that is printable(), and returns kExitFailed.
int fail(std::string_view message);
int fail(const absl::Status& status);
// warn prints the same. The command goes on.
void warn(std::string_view message);
// usage_error prints the same and returns kExitUsage.
int usage_error(std::string_view message);

// add_timeout_option adds --timeout, in seconds and fractions of a second.
void add_timeout_option(CLI::App& app, std::chrono::milliseconds& timeout, const std::string& text);

// to_status turns a verbs error into a status for commands. `what` names the attempt and comes first: "what: why".
absl::Status to_status(const verbs::Error& error, std::string_view what = {});

}  // namespace weft::apps
