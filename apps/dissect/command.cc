#include "apps/dissect/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <memory>

#include "apps/common/command.h"
#include "apps/common/option_checks.h"
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

// What to look at where a capture has no iWARP connection.
std::string no_iwarp(const CaptureEnd& end) {
  if (end.packets == 0) return "no packets. Try: a longer capture, of the interface and port of the connection";
  if (end.tcp_segments == 0) {
    return fmt::format(
        "no TCP in {}. iWARP runs over TCP; RoCE and InfiniBand do not. Tunnels are not followed. Try: a capture of "
        "the "
        "interface and port of the connection, inside any tunnel",
        counted(end.packets, "packet"));
  }
  return fmt::format(
      "no iWARP connection in {}. Try: a capture that begins before the connection does and has whole packets "
      "(tcpdump -s 0), of its port",
      counted(end.tcp_segments, "TCP segment"));
}

// Reading: the packets of a capture on their way to a dissector.
struct Reading {
  CaptureEnd end;
  int unread_link_type = 0;  // the first that is unknown

  void read(Capture& capture, Dissector& dissector, const StopSignals& signals, std::FILE* out);
  // Says what the capture has that could not be read. Returns an error line, or nothing.
  std::string tell(const std::string& file) const;
};

void Reading::read(Capture& capture, Dissector& dissector, const StopSignals& signals, std::FILE* out) {
  Packet packet;
  while (!signals.requested() && std::ferror(out) == 0) {
    const Capture::Next next = capture.next(packet);
    // Ctrl-C interrupts the wait for a pipe.
    if (next == Capture::Next::kError && !signals.requested()) end.error = capture.error();
    if (next != Capture::Next::kPacket) break;
    ++end.packets;
    if (!is_known_link_type(packet.link_type) && end.unread_packets++ == 0) unread_link_type = packet.link_type;
    const auto segment = parse_tcp_segment(packet);
    if (!segment) continue;
    ++end.tcp_segments;
    end.fragments += segment->is_fragment ? 1 : 0;
    dissector.on_segment(*segment);
  }
  end.dropped_packets = capture.num_dropped();
  if (end.error.empty() && end.packets != 0 && end.unread_packets == end.packets) {
    end.error = fmt::format(
        "{} of link type {} cannot be read. Try: a capture of an Ethernet or loopback interface, or of 'any'",
        counted(end.unread_packets, "packet"), unread_link_type);
  }
}

std::string Reading::tell(const std::string& file) const {
  if (end.fragments != 0) {
    warn(fmt::format("{}: {} came in IP fragments, of which only the first is read; the other bytes count as missing",
                     file, counted(end.fragments, "TCP segment")));
  }
  if (end.dropped_packets != 0) {
    warn(fmt::format("{}: the capture says that {} dropped, so bytes are missing", file,
                     end.dropped_packets == 1 ? "1 packet was" : fmt::format("{} packets were", end.dropped_packets)));
  }
  if (end.given_up != 0) {
    warn(
        fmt::format("{}: {} given up: more than {} were open at once. What follows of them counts as new connections. "
                    "Try: fewer of "
                    "them (tcpdump -r FILE -w PART port N)",
                    file, counted(end.given_up, "iWARP connection") + (end.given_up == 1 ? " was" : " were"),
                    Dissector::kMaxConnections));
  }
  if (end.unread_packets != 0 && end.unread_packets != end.packets) {
    warn(fmt::format("{}: {} of link type {} cannot be read", file, counted(end.unread_packets, "packet"),
                     unread_link_type));
  }
  if (!end.error.empty()) return file + ": " + end.error;
  if (end.connections == 0) warn(fmt::format("{}: {}", file, no_iwarp(end)));
  return "";
}

// Dissects the whole capture for `listener`, which prints.
int dissect_all(const DissectOptions& options, Listener& listener) {
  StopSignals signals;
  auto capture = Capture::open(options.file);
  if (!capture.ok()) return signals.requested() ? kExitFailed : fail(capture.error());
  Dissector dissector({.fields = options.fields || options.json}, listener);
  // The messages of a live capture come as they happen.
  if (options.file == "-") std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Reading reading;
  reading.read(*capture, dissector, signals, stdout);
  dissector.finish();
  reading.end.connections = dissector.num_connections();
  reading.end.given_up = dissector.num_given_up();
  listener.on_capture_end(reading.end);
  const std::string error = reading.tell(options.file);
  return error.empty() ? kExitDone : fail(error);
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
  if (!capture.ok()) return signals.requested() ? kExitFailed : fail(capture.error());
  auto file = OutputFile::open(options.html, options.file);
  if (!file.ok()) return fail(file.status());
  HtmlPage page(file->stream(), options.file == "-" ? "standard input" : options.file);
  Dissector dissector({.fields = true}, page);
  Reading reading;
  reading.read(*capture, dissector, signals, file->stream());
  if (signals.requested() && options.file != "-") return kExitFailed;
  dissector.finish();
  reading.end.connections = dissector.num_connections();
  reading.end.given_up = dissector.num_given_up();
  page.finish(reading.end.error);
  const absl::Status written = file->commit();
  // finish_output reports errors of standard output. A reader that has left is no error.
  if (options.html == "-" && !written.ok()) return kExitDone;
  if (!written.ok()) return fail(written);
  tell_page(options.html, page.totals());
  const std::string error = reading.tell(options.file);
  return error.empty() ? kExitDone : fail(error);
}

int tell(const DissectOptions& options) {
  const bool html = !options.html.empty();
  if (options.fields + options.check + options.summary + options.ladder + options.json + html > 1) {
    return usage_error(
        "--verbose, --check, --summary, --ladder, --json and --html exclude each other; --json always has the "
        "violations "
        "of --check");
  }
  if (html) return write_page(options);
  if (options.check) {
    Check check(stdout);
    const int status = dissect_all(options, check);
    // A check of nothing is no success.
    return check.num_violations() == 0 && check.num_connections() != 0 ? status : kExitFailed;
  }
  if (options.summary) {
    Summary summary(stdout);
    return dissect_all(options, summary);
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
  CLI::App* sub = root.add_subcommand("dissect", "Show the iWARP connections in a capture, from MPA up to NFS.");
  sub->add_option("FILE", options->file, "a pcap or pcapng file; - reads standard input")
      ->required()
      ->check(empty_fault);
  sub->add_flag("-v,--verbose", options->fields, "print every field and its bytes, at most 1024 of each");
  sub->add_flag("--check", options->check, "print each violation of a rule; exit status 1 if there is one");
  sub->add_flag("--summary", options->summary, "print what each connection did: operations, RPCs, latencies");
  sub->add_flag("--ladder", options->ladder, "print a ladder diagram");
  sub->add_flag("--json", options->json, "print everything, violations and bytes too, a JSON object in each line");
  sub->add_option("--html", options->html,
                  "write one HTML page into this file, to look at everything in a browser; - is standard output")
      ->check(empty_fault)
      ->type_name("FILE");
  sub->footer(
      "Examples:\n  tcpdump -i lo -w nfs.pcap tcp port 20049\n  weft dissect nfs.pcap\n"
      "  tcpdump -i lo -U -w - tcp port 20049 | weft dissect -\n"
      "  weft dissect --html nfs.html nfs.pcap\n"
      "Each line is a message: its time, the number of its connection, > from the client or < from the server.");
  sub->callback([options, &context] { context.exit_status = tell(*options); });
}

}  // namespace weft::apps
