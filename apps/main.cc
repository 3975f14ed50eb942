#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "apps/common/command.h"
#include "apps/common/global_options.h"
#include "apps/common/output.h"
#include "apps/common/output_stream.h"
#include "apps/common/setup.h"
#include "apps/common/signals.h"
#include "apps/dissect/command.h"
#include "apps/doctor/command.h"
#include "apps/gateway/command.h"
#include "apps/nfs/command.h"
#include "apps/perf/command.h"
#include "apps/ping/command.h"
#include "apps/serve/command.h"
#include "apps/top/command.h"

namespace {

void register_commands(CLI::App& root, weft::apps::CommandContext& context) {
  weft::apps::register_serve_command(root, context);
  weft::apps::register_nfs_command(root, context);
  weft::apps::register_gateway_command(root, context);
  weft::apps::register_ping_command(root, context);
  weft::apps::register_perf_command(root, context);
  weft::apps::register_dissect_command(root, context);
  weft::apps::register_doctor_command(root, context);
  weft::apps::register_top_command(root, context);
}

// The innermost existing command that the line names.
const CLI::App* named_command(const CLI::App& root) {
  const CLI::App* app = &root;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return app;
}

// "weft nfs ls"
std::string words_of(const CLI::App* app) {
  const CLI::App* parent = app->get_parent();
  return parent == nullptr ? app->get_name() : words_of(parent) + " " + app->get_name();
}

// find_surplus is the first word that no command or option took. CLI11 itself would first complain of missing words,
// and would answer --help behind a command that does not exist.
std::optional<std::string> find_surplus(const CLI::App& root) {
  for (const CLI::App* app = named_command(root); app != nullptr; app = app->get_parent()) {
    if (app->get_allow_extras()) return std::nullopt;
    for (const std::string& word : app->remaining()) {
      if (word != "--") return word;
    }
  }
  return std::nullopt;
}

bool has_commands(const CLI::App* app) {
  return !app->get_subcommands([](const CLI::App*) { return true; }).empty();
}

std::string describe(const std::string& surplus, const CLI::App* command) {
  if (surplus.starts_with('-')) return "no such option: " + surplus;
  if (!has_commands(command)) return "unexpected argument: " + surplus;
  // The program's own name is left out.
  const std::string above = command->get_parent() == nullptr ? "" : words_of(command).substr(5) + " ";
  return "no such command: " + above + surplus;
}

// on_usage_error prints the error and where to look.
int on_usage_error(const CLI::App& root, const std::string& what) {
  weft::apps::usage_error(what);
  std::fprintf(stderr, "Run '%s --help' for help.\n", words_of(named_command(root)).c_str());
  return weft::apps::kExitUsage;
}

// The command has cleaned up and printed its results.
int end(int exit_status) {
  const int status = weft::apps::finish_output(exit_status);
  if (const int signal_number = weft::apps::stop_signal(); signal_number != 0) weft::apps::die_by(signal_number);
  if (status == weft::apps::kExitReaderLeft) weft::apps::die_by(SIGPIPE);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  weft::apps::fill_standard_files();
  CLI::App root("Weft: iWARP and RPC-over-RDMA in user space, without RDMA hardware.", "weft");
  root.set_version_flag("--version", "weft " WEFT_VERSION);
  root.get_formatter()->column_width(34);
  root.require_subcommand(1);
  root.footer(
      "Example, two terminals:\n  weft serve /usr/share/doc\n  weft nfs ls nfs+rdma://127.0.0.1/\n"
      "Exit status: 0 done, 1 the operation failed, 2 usage error.");

  weft::apps::CommandContext context;
  weft::apps::add_global_options(root, context.options);
  // Options are known once the whole line is read, so logging starts when the first subcommand is about to run.
  root.parse_complete_callback([&root, &context] {
    weft::apps::check_global_options(root, context.options);
    weft::apps::use_output_streams();
    weft::apps::set_up_logging(context.options.log_level);
  });
  register_commands(root, context);

  try {
    root.parse(argc, argv);
  } catch (const CLI::Success& done) {
    if (const auto surplus = find_surplus(root)) return on_usage_error(root, describe(*surplus, named_command(root)));
    return end(root.exit(done));
  } catch (const CLI::ParseError& error) {
    // An unknown word is reported before a missing one: it is most often the reason.
    const CLI::App* command = named_command(root);
    if (const auto surplus = find_surplus(root)) return on_usage_error(root, describe(*surplus, command));
    const bool lacks_command = has_commands(command) && error.get_name() == "RequiredError";
    if (lacks_command) return on_usage_error(root, "a command is missing after '" + words_of(command) + "'");
    return on_usage_error(root, error.what());
  }
  return end(context.exit_status);
}
