#include "apps/dissect/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "apps/common/command.h"
#include "apps/common/signals.h"
#include "apps/dissect/capture.h"
#include "apps/dissect/check.h"
#include "apps/dissect/dissector.h"
#include "apps/dissect/json_lines.h"
#include "apps/dissect/ladder.h"
#include "apps/dissect/printer.h"
#include "apps/dissect/summary.h"
#include "apps/dissect/tcp_segment.h"

namespace weft::apps {
namespace {

using namespace dissect;

struct DissectOptions {
  std::string file;
  bool fields = false;
  bool check = false;
  bool summary = false;
  bool ladder = false;
  bool json = false;
};

// Reads the whole capture. Returns an error line, or an empty string.
std::string read_capture(Capture& capture, Dissector& dissector, const StopSignals& signals) {
  Packet packet;
  while (!signals.requested() && std::ferror(stdout) == 0) {
    switch (capture.next(packet)) {
      case Capture::Next::kEnd: return "";
      case Capture::Next::kError: return capture.error();
      case Capture::Next::kPacket: break;
    }
    if (const auto segment = parse_tcp_segment(capture.link_type(), packet)) dissector.on_segment(*segment);
  }
  return "";
}

// Dissects the whole capture for `listener`.
int dissect_all(const DissectOptions& options, Listener& listener) {
  StopSignals signals;
  auto capture = Capture::open(options.file);
  if (!capture.ok())
    return fail(capture.error().starts_with(options.file) ? capture.error() : options.file + ": " + capture.error());
  if (!is_known_link_type(capture->link_type())) {
    return fail(
        fmt::format("{}: packets of link type {} cannot be read. Try: a capture of an Ethernet or loopback "
                    "interface, or of 'any'",
                    options.file, capture->link_type()));
  }
  Dissector dissector({.fields = options.fields || options.json}, listener);
  // The messages of a live capture come as they happen.
  if (options.file == "-") std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string error = read_capture(*capture, dissector, signals);
  dissector.finish();
  return error.empty() ? kExitDone : fail(options.file + ": " + error);
}

// The reader of a pipe may have seen enough.
int on_written(int status) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  return errno == EPIPE || errno == 0 ? kExitFailed
                                      : fail(fmt::format("cannot write the output: {}", std::strerror(errno)));
}

int tell(const DissectOptions& options) {
  if (options.fields + options.check + options.summary + options.ladder + options.json > 1) {
    return usage_error("--verbose, --check, --summary, --ladder and --json exclude each other");
  }
  if (options.check) {
    Check check(stdout);
    const int status = dissect_all(options, check);
    check.finish();
    return check.num_violations() == 0 ? status : kExitFailed;
  }
  if (options.summary) {
    Summary summary(stdout);
    const int status = dissect_all(options, summary);
    summary.finish();
    return status;
  }
  if (options.ladder) {
    Ladder ladder(stdout);
    return dissect_all(options, ladder);
  }
  if (options.json) {
    JsonLines lines(stdout);
    return dissect_all(options, lines);
  }
  Printer printer(stdout, {.fields = options.fields,
                           .color = ::isatty(STDOUT_FILENO) == 1,
                           .live = options.file == "-" || ::isatty(STDOUT_FILENO) == 1});
  return dissect_all(options, printer);
}

}  // namespace

void register_dissect_command(CLI::App& root, CommandContext& context) {
  auto options = std::make_shared<DissectOptions>();
  CLI::App* sub = root.add_subcommand("dissect", "Tell of the iWARP connections in a capture, down to NFS.");
  sub->add_option("FILE", options->file, "a pcap or pcapng file; - reads standard input")->required();
  sub->add_flag("-v,--verbose", options->fields, "print every field and its bytes");
  sub->add_flag("--check", options->check, "print each violation of a rule; exit status 1 if there is one");
  sub->add_flag("--summary", options->summary, "print what each connection did: operations, RPCs, latencies");
  sub->add_flag("--ladder", options->ladder, "print a ladder diagram");
  sub->add_flag("--json", options->json, "print everything, a JSON object in each line");
  sub->footer(
      "Examples:\n  tcpdump -i lo -w nfs.pcap tcp port 20049\n  weft dissect nfs.pcap\n"
      "  tcpdump -i lo -U -w - tcp port 20049 | weft dissect -\n"
      "Each line is a message: its time, the number of its connection, > from the client or < from the server.");
  sub->callback([options, &context] { context.exit_status = on_written(tell(*options)); });
}

}  // namespace weft::apps
