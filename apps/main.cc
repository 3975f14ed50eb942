#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/common/command.h"
#include "apps/common/global_options.h"
#include "apps/common/setup.h"
#include "apps/doctor/command.h"
#include "apps/gateway/command.h"
#include "apps/nfs/command.h"
#include "apps/perf/command.h"
#include "apps/ping/command.h"
#include "apps/serve/command.h"

namespace {

void register_commands(CLI::App& root, weft::apps::CommandContext& context) {
  weft::apps::register_serve_command(root, context);
  weft::apps::register_nfs_command(root, context);
  weft::apps::register_gateway_command(root, context);
  weft::apps::register_ping_command(root, context);
  weft::apps::register_perf_command(root, context);
  weft::apps::register_doctor_command(root, context);
  weft::apps::add_unbuilt_commands(root, context);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App root("Weft: iWARP and RPC-over-RDMA in user space, without RDMA hardware.", "weft");
  root.set_version_flag("--version", "weft " WEFT_VERSION);
  root.get_formatter()->column_width(34);
  root.require_subcommand(1);
  root.footer(
      "Example, two terminals:\n  weft serve /usr/share/doc\n  weft nfs ls nfs+rdma://127.0.0.1/\n"
      "Exit status: 0 done, 1 the operation failed, 2 usage or not built yet.");

  weft::apps::CommandContext context;
  weft::apps::add_global_options(root, context.options);
  // Options are known once the whole line is read, so logging starts when the first subcommand is about to run.
  root.parse_complete_callback([&root, &context] {
    weft::apps::check_global_options(root, context.options);
    weft::apps::set_up_logging(context.options.log_level);
  });
  register_commands(root, context);

  try {
    root.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return root.exit(done);
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> rest = root.remaining();
    const bool unknown = root.get_subcommands().empty() && !rest.empty() && !rest.front().starts_with('-');
    std::fprintf(stderr, "weft: %s\n", unknown ? ("no such command: " + rest.front()).c_str() : error.what());
    if (std::string(error.what()).find("not built yet") == std::string::npos) {
      std::fprintf(stderr, "Run 'weft --help' or 'weft COMMAND --help' for what there is.\n");
    }
    return weft::apps::kExitUsage;
  }
  return context.exit_status;
}
