#include "apps/dissect/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <memory>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "apps/common/signals.h"
#include "apps/dissect/capture.h"
#include "apps/dissect/check.h"
#include "apps/dissect/dissector.h"
#include "apps/dissect/html_page.h"
#include "apps/dissect/json_lines.h"
#include "apps/dissect/ladder.h"
#include "apps/dissect/output_file.h"
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
  std::string html;  // a file
};

// Unread counts what a capture has and the dissector cannot read.
struct Unread {
  std::uint64_t num_packets = 0;  // of the link type
  std::uint64_t num_fragments = 0;
  int link_type = 0;  // the first that is unknown
  bool read_any = false;

  void count(const Packet& packet) {
    if (is_known_link_type(packet.link_type)) {
      read_any = true;
    } else if (num_packets++ == 0) {
      link_type = packet.link_type;
    }
  }
  // Returns an error line if the capture has nothing that can be read.
  std::string tell(const std::string& file) const {
    if (num_fragments != 0) {
      warn(
          fmt::format("{}: {} came in IP fragments, of which only the first is read; the other octets count as missing",
                      file, counted(num_fragments, "TCP segment")));
    }
    if (num_packets == 0) return "";
    const std::string what =
        fmt::format("{} of link type {} cannot be read", counted(num_packets, "packet"), link_type);
    if (!read_any) return what + ". Try: a capture of an Ethernet or loopback interface, or of 'any'";
    warn(fmt::format("{}: {}", file, what));
    return "";
  }
};

// Reads the whole capture. Returns an error line, or an empty string.
std::string read_capture(const std::string& file, Capture& capture, Dissector& dissector, const StopSignals& signals,
                         std::FILE* out) {
  Packet packet;
  Unread unread;
  while (!signals.requested() && std::ferror(out) == 0) {
    const Capture::Next next = capture.next(packet);
    // Ctrl-C interrupts the wait for a pipe.
    if (next == Capture::Next::kError) return signals.requested() ? "" : capture.error();
    if (next == Capture::Next::kEnd) break;
    unread.count(packet);
    const auto segment = parse_tcp_segment(packet);
    if (!segment) continue;
    unread.num_fragments += segment->is_fragment ? 1 : 0;
    dissector.on_segment(*segment);
  }
  return unread.tell(file);
}

// Dissects the whole capture for `listener`, which prints.
int dissect_all(const DissectOptions& options, Listener& listener) {
  StopSignals signals;
  auto capture = Capture::open(options.file);
  if (!capture.ok()) return fail(capture.error());
  Dissector dissector({.fields = options.fields || options.json}, listener);
  // The messages of a live capture come as they happen.
  if (options.file == "-") std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string error = read_capture(options.file, *capture, dissector, signals, stdout);
  dissector.finish();
  return error.empty() ? kExitDone : fail(options.file + ": " + error);
}

// "wrote a.html: 12 messages, 1 connection, 90.1 KiB".
void tell_page(const std::string& file, const HtmlPage::Totals& totals) {
  std::string text =
      fmt::format("wrote {}: {}, {}, {}", file == "-" ? "the page" : file, counted(totals.messages, "message"),
                  counted(totals.connections, "connection"), format_octets(static_cast<double>(totals.octets)));
  if (totals.messages_left_out != 0 || totals.connections_left_out != 0) {
    text += fmt::format("; left out: {}, {}", counted(totals.messages_left_out, "message"),
                        counted(totals.connections_left_out, "connection"));
  }
  warn(text);
}

// Ctrl-C ends a live capture, whose page is then complete. It stops the work on a file, and leaves no page.
int write_page(const DissectOptions& options) {
  StopSignals signals;
  auto capture = Capture::open(options.file);
  if (!capture.ok()) return fail(capture.error());
  auto file = OutputFile::open(options.html, options.file);
  if (!file.ok()) return fail(file.status());
  HtmlPage page(file->stream(), options.file == "-" ? "standard input" : options.file);
  Dissector dissector({.fields = true}, page);
  const std::string error = read_capture(options.file, *capture, dissector, signals, file->stream());
  if (signals.requested() && options.file != "-") return kExitFailed;
  dissector.finish();
  page.finish(error);
  const absl::Status written = file->commit();
  if (!written.ok()) return fail(written);
  tell_page(options.html, page.totals());
  return error.empty() ? kExitDone : fail(options.file + ": " + error);
}

int tell(const DissectOptions& options) {
  const bool html = !options.html.empty();
  if (options.fields + options.check + options.summary + options.ladder + options.json + html > 1) {
    return usage_error("--verbose, --check, --summary, --ladder, --json and --html exclude each other");
  }
  if (html) return write_page(options);
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
  sub->add_flag("-v,--verbose", options->fields, "print every field and its first 32 bytes");
  sub->add_flag("--check", options->check, "print each violation of a rule; exit status 1 if there is one");
  sub->add_flag("--summary", options->summary, "print what each connection did: operations, RPCs, latencies");
  sub->add_flag("--ladder", options->ladder, "print a ladder diagram");
  sub->add_flag("--json", options->json, "print everything, a JSON object in each line");
  sub->add_option("--html", options->html,
                  "write one HTML page into this file, to look at everything in a browser; - is standard output")
      ->type_name("FILE");
  sub->footer(
      "Examples:\n  tcpdump -i lo -w nfs.pcap tcp port 20049\n  weft dissect nfs.pcap\n"
      "  tcpdump -i lo -U -w - tcp port 20049 | weft dissect -\n"
      "  weft dissect --html nfs.html nfs.pcap\n"
      "Each line is a message: its time, the number of its connection, > from the client or < from the server.");
  sub->callback([options, &context] { context.exit_status = tell(*options); });
}

}  // namespace weft::apps
