#include "apps/ping/command.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/common/address.h"
#include "apps/common/command.h"
#include "apps/ping/protocol.h"
#include "apps/ping/run.h"

namespace weft::apps {

void register_ping_command(CLI::App& root, CommandContext& context) {
  auto options = std::make_shared<ping::PingOptions>();
  CLI::App* ping = root.add_subcommand("ping", "Round trips of RDMA Reads and Writes, in rping's protocol.");
  const auto check_address = [](const std::string& text) { return address_fault(text, ping::kDefaultPort); };
  CLI::Option* target =
      ping->add_option("target", options->target, "server to ping")->check(check_address)->type_name("ADDR[:PORT]");
  CLI::Option* listen = ping->add_option("--listen", options->listen, "answer pings on this address; port 0 picks one")
                            ->check(check_address)
                            ->type_name("ADDR[:PORT]")
                            ->excludes(target);
  ping->add_option("-S,--size", options->size, "bytes of a ping, the same on both sides (default 64)")
      ->check(CLI::Range(ping::kMinSize, ping::kMaxSize))
      ->excludes(listen)
      ->type_name("BYTES");
  ping->add_option("-C,--count", options->count,
                   "number of pings; with --listen number of connections to serve (default no end)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000'000}))
      ->type_name("N");
  add_timeout_option(*ping, options->timeout,
                     "give up after this time without a message from the other side (default 10; listener: 30)");
  ping->add_flag("-V,--verify", options->verify, "compare the returned bytes with the sent bytes")->excludes(listen);
  ping->add_flag("--json", options->json, "print the result as JSON")->excludes(listen);
  ping->footer(
      "Example, two terminals:\n  weft ping --listen 127.0.0.1:7174\n  weft ping 127.0.0.1:7174 -C 1000 -V\n"
      "Either side may be rping (rping -s -a ADDR, rping -c -a ADDR). The default port is 7174.");
  ping->callback([options, &context] {
    if (options->listen.empty() == options->target.empty()) {
      context.exit_status = usage_error("ping wants a server's ADDR:PORT, or --listen ADDR:PORT");
    } else if (options->listen.empty()) {
      context.exit_status = ping::run_client(context.options, *options);
    } else {
      context.exit_status = ping::run_server(context.options, *options);
    }
  });
}

}  // namespace weft::apps
