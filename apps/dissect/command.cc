#include "apps/dissect/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "apps/common/command.h"
#include "apps/common/signals.h"
#include "apps/dissect/capture.h"
#include "apps/dissect/dissector.h"
#include "apps/dissect/printer.h"
#include "apps/dissect/tcp_segment.h"

namespace weft::apps {
namespace {

using namespace dissect;

struct DissectOptions {
  std::string file;
  bool fields = false;
};

// Reads the whole capture. Returns an error line, or an empty string.
std::string read_capture(Capture& capture, Dissector& dissector, const StopSignals& signals) {
  Packet packet;
  while (!signals.requested()) {
    switch (capture.next(packet)) {
      case Capture::Next::kEnd: return "";
      case Capture::Next::kError: return capture.error();
      case Capture::Next::kPacket: break;
    }
    if (const auto segment = parse_tcp_segment(capture.link_type(), packet)) dissector.on_segment(*segment);
  }
  return "";
}

int run(const DissectOptions& options) {
  StopSignals signals;
  auto capture = Capture::open(options.file);
  if (!capture.ok()) return fail(capture.error());
  if (!is_known_link_type(capture->link_type())) {
    return fail(
        fmt::format("{}: captures of link type {} cannot be read; try a capture of an Ethernet, loopback or "
                    "'any' interface",
                    options.file, capture->link_type()));
  }
  Printer printer(stdout, {.fields = options.fields, .color = ::isatty(STDOUT_FILENO) == 1});
  Dissector dissector({.fields = options.fields}, printer);
  const std::string error = read_capture(*capture, dissector, signals);
  dissector.finish();
  std::fflush(stdout);
  return error.empty() ? kExitDone : fail(options.file + ": " + error);
}

}  // namespace

void register_dissect_command(CLI::App& root, CommandContext& context) {
  auto options = std::make_shared<DissectOptions>();
  CLI::App* sub = root.add_subcommand("dissect", "Tell of the iWARP connections in a capture, down to NFS.");
  sub->add_option("FILE", options->file, "a pcap or pcapng file; - reads standard input")->required();
  sub->add_flag("-v,--verbose", options->fields, "print every field and its octets");
  sub->footer(
      "Examples:\n  tcpdump -i lo -w nfs.pcap tcp port 20049\n  weft dissect nfs.pcap\n"
      "  tcpdump -i lo -U -w - tcp port 20049 | weft dissect -\n"
      "Each line is a message: its time, the number of its connection, > from the client or < from the server.");
  sub->callback([options, &context] { context.exit_status = run(*options); });
}

}  // namespace weft::apps
