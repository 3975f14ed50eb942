#include "apps/common/global_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <functional>
#include <initializer_list>
#include <map>
#include <string_view>

#include "apps/common/command.h"
#include "apps/common/option_checks.h"
#include "mpa/fpdu.h"
#include "rpcrdma/connection_setup.h"
#include "rpcrdma/framing.h"

namespace weft::apps {
namespace {

constexpr const char* kGroup = "Options of every command";

// one_of accepts these values.
CLI::Validator one_of(std::vector<std::string> values) {
  std::string allowed = CLI::detail::join(values, "|");
  return CLI::Validator(
      [=](std::string& value) -> std::string {
        if (std::find(values.begin(), values.end(), value) != values.end()) return {};
        return "must be " + allowed + ", not '" + value + "'";
      },
      "", "one_of");
}

// Empty if a name is unknown or missing, or comes twice.
std::optional<std::vector<rpcrdma::Protocol>> parse_protocols(const std::string& list) {
  if (list == "auto") return rpcrdma::all_protocols();
  if (list.ends_with(',')) return {};  // split() leaves no empty name behind it
  std::vector<rpcrdma::Protocol> protocols;
  for (const std::string& name : CLI::detail::split(list, ',')) {
    const auto protocol = rpcrdma::parse_protocol(name);
    if (!protocol || std::ranges::find(protocols, *protocol) != protocols.end()) return {};
    protocols.push_back(*protocol);
  }
  return protocols;
}

// Every version that is built, best first.
std::string protocol_names(const char* between) {
  std::string names;
  for (const rpcrdma::Protocol protocol : rpcrdma::all_protocols()) {
    names.append(names.empty() ? "" : between).append(rpcrdma::protocol_str(protocol));
  }
  return names;
}

std::string protocols_fault(const std::string& list) {
  if (parse_protocols(list)) return {};
  return "must be auto, or one or more of " + protocol_names(", ") + " with commas between them, not '" + list + "'";
}

CLI::Option* add_choice(CLI::App& root, const std::string& name, std::function<void(const std::string&)> store,
                        std::vector<std::string> values, const std::string& text) {
  const std::string shown = CLI::detail::join(values, "|");
  return root.add_option_function<std::string>(name, std::move(store), text)
      ->check(one_of(std::move(values)))
      ->type_name(shown)
      ->group(kGroup);
}

// num_workers returns the N of threads=N, or nothing for another value or an N out of bounds.
std::optional<std::uint32_t> num_workers(std::string_view value) {
  constexpr std::string_view kPrefix = "threads=";
  constexpr std::uint32_t kMaxWorkers = 64;
  if (!value.starts_with(kPrefix)) return std::nullopt;
  value.remove_prefix(kPrefix.size());
  std::uint32_t num = 0;
  auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), num);
  if (error != std::errc() || end != value.data() + value.size() || num < 1 || num > kMaxWorkers) return std::nullopt;
  return num;
}

void add_progress(CLI::App& root, GlobalOptions& options) {
  root.add_option_function<std::string>(
          "--progress",
          [&options](const std::string& value) {
            options.progress = value == "spin" ? ProgressMode::kSpin : ProgressMode::kBlock;
            options.num_workers = num_workers(value).value_or(0);
          },
          "spin polls without sleeping, block sleeps, threads=N distributes the connections over N threads (default: "
          "perf and ping poll while a core is free, all other commands block)")
      ->check(CLI::Validator(
          [](std::string& value) -> std::string {
            if (value == "spin" || value == "block" || num_workers(value)) return {};
            return "must be spin, block or threads=N with N from 1 to 64, not '" + value + "'";
          },
          "", "progress"))
      ->type_name("spin|block|threads=N")
      ->group(kGroup);
}

// RFC 8797 gives thresholds in units of 1024 octets, up to 256 units.
std::string inline_fault(const std::string& value) {
  constexpr std::size_t kUnit = 1024, kMost = 262144;
  std::size_t octets = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), octets);
  const bool is_number = error == std::errc() && end == value.data() + value.size();
  if (is_number && octets >= kUnit && octets <= kMost && octets % kUnit == 0) return "";
  return "must be a multiple of 1024 from 1024 to 262144, not '" + value + "'";
}

// A ULPDU of the least MULPDU always fits (MPA-3-04), so a smaller FPDU would be no limit. A peer may ask for Markers.
constexpr std::size_t kLeastFpdu = 140;
static_assert(mpa::mulpdu(kLeastFpdu, true) > mpa::kMinMulpdu && mpa::mulpdu(kLeastFpdu - 4, true) == mpa::kMinMulpdu);

std::string fpdu_fault(const std::string& value) {
  constexpr std::size_t kMost = 65535;
  std::size_t octets = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), octets);
  const bool is_number = error == std::errc() && end == value.data() + value.size();
  if (is_number && (octets == 0 || (octets >= kLeastFpdu && octets <= kMost))) return "";
  return fmt::format("must be 0 or from {} to {}, not '{}': MPA sends FPDUs of up to {} bytes whatever the limit",
                     kLeastFpdu, kMost, value, kLeastFpdu);
}

void add_nudge(CLI::App& root, GlobalOptions& options) {
  constexpr int kMostMs = 60000;
  root.add_option_function<std::string>(
          "--nudge",
          [&options](const std::string& value) {
            options.nudge = std::chrono::milliseconds(value == "off" ? 0 : std::stoi(value));
          },
          "if an accepting server sends nothing for this time, send an RDMA Write of zero bytes: Linux siw can miss a "
          "message that comes while it accepts (milliseconds or off; default 50 for --peer auto and siw, else off)")
      ->check(CLI::Validator(
          [](std::string& value) -> std::string {
            if (value == "off" || CLI::Range(1, kMostMs)(value).empty()) return "";
            return "must be off or milliseconds from 1 to 60000, not '" + value + "'";
          },
          "", "nudge"))
      ->type_name("MS|off")
      ->group(kGroup);
}

void add_parts(CLI::App& root, GlobalOptions& options) {
  const auto number_of = [](const std::string& value) {
    std::size_t octets = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), octets);
    const bool is_good = error == std::errc() && end == value.data() + value.size() && octets <= rpcrdma::kMaxContinued;
    return is_good ? std::optional(octets) : std::nullopt;
  };
  root.add_option_function<std::string>(
          "--parts", [&options, number_of](const std::string& value) { options.parts = number_of(value); },
          "the longest call of RPC-over-RDMA 2-wg07 that goes in several messages, and not by chunks; 0: none; auto: "
          "8192 bytes, and up to 32768 while the round trip takes longer than the work of the messages (default auto)")
      ->check(CLI::Validator(
          [number_of](std::string& value) -> std::string {
            if (value == "auto" || number_of(value)) return {};
            return "must be auto or bytes up to " + std::to_string(rpcrdma::kMaxContinued) + ", not '" + value + "'";
          },
          "", "parts"))
      ->type_name("BYTES|auto")
      ->group(kGroup);
}

void add_protocol_options(CLI::App& root, GlobalOptions& options) {
  add_choice(
      root, "--crc", [&options](const std::string& v) { options.crc = v == "on"; }, {"on", "off"},
      "CRC32c of every FPDU (default on; off only if both ends ask for that, and only safe if something else protects "
      "the data end to end)");
  add_choice(
      root, "--mpa-rev", [&options](const std::string& v) { options.mpa_revision = std::uint8_t(v[0] - '0'); },
      {"0", "1", "2"},
      "MPA revision that a client asks for, and the newest that a server accepts; 0: as 1, and also RDMAC peers "
      "(default 2)");
  add_choice(
      root, "--rtr", [&options](const std::string& v) { options.rtr = v; }, {"none", "auto", "send", "write", "read"},
      "ready-to-receive message of MPA revision 2 that a client offers; send and read stop the kernel of a Linux "
      "NFS/RDMA server over siw (default auto: what --peer needs, else none)");
  add_choice(
      root, "--placement", [&options](const std::string& v) { options.direct_placement = v == "direct"; },
      {"verify", "direct"}, "when received data reaches memory (default verify: after its CRC was checked)");
  add_choice(
      root, "--peer", [&options](const std::string& v) { options.peer = v; },
      {"auto", "siw", "cxgb4", "irdma", "strict"},
      "the kind of peer to adapt to; cxgb4 offers what --rtr read offers, and so stops the kernel of a Linux NFS/RDMA "
      "server over siw (default auto)");
  root.add_option_function<std::string>(
          "--rpcrdma", [&options](const std::string& v) { options.protocols = *parse_protocols(v); },
          "RPC-over-RDMA versions, best first: " + protocol_names(", ") +
              "; a client of several versions finds out which one its server speaks; auto: " + protocol_names(",") +
              " (default 1)")
      ->check(CLI::Validator(protocols_fault, "", "rpcrdma"))
      ->type_name("LIST")
      ->group(kGroup);
  add_choice(
      root, "--credit-formula", [&options](const std::string& v) { options.literal_credits = v == "literal"; },
      {"sane", "literal"},
      "the messages from which the credits of RPC-over-RDMA 2-wg07 count: sane: the received ones; literal: the sent "
      "ones, as section 4.2.1 of the draft prints it (default sane)");
  add_parts(root, options);
  add_choice(
      root, "--remote-invalidation",
      [&options](const std::string& v) {
        options.remote_invalidation = v == "on"    ? RemoteInvalidation::kOn
                                      : v == "off" ? RemoteInvalidation::kOff
                                                   : RemoteInvalidation::kAuto;
      },
      {"auto", "on", "off"},
      "a reply invalidates memory of its call where both ends want it (RFC 8797, Send with Invalidate): auto: a server "
      "does so; on: a client lets the server do so, too, by memory windows (default auto)");
  add_nudge(root, options);
  add_trace_options(root, options.trace);
  root.add_flag("--markers", options.markers, "ask the peer for MPA Markers")->group(kGroup);
  root.add_flag("--port-map", options.port_map,
                "use the iWARP port mapper (UDP 3935): ask the server's host for the real port, as RNICs behind iwpmd "
                "need it, and answer hosts that ask for a port of our listeners")
      ->group(kGroup);
}

}  // namespace

void add_global_options(CLI::App& root, GlobalOptions& options) {
  root.fallthrough();
  add_choice(
      root, "--backend", [&options](const std::string& v) { options.backend = v; }, {"soft", "ibv"},
      "the RDMA device: Weft's own over TCP sockets, or a device of the kernel through libibverbs (default soft)");
  root.add_option("--device", options.device, "RDMA device of --backend ibv (default the first)")
      ->check(empty_fault)
      ->type_name("NAME")
      ->group(kGroup);
  add_progress(root, options);
  add_protocol_options(root, options);
  root.add_option("--fpdu", options.fpdu_limit,
                  "the largest FPDU, from 140 to 65535; 0: the largest that the path allows (default 0)")
      ->check(CLI::Validator(fpdu_fault, "", "fpdu"))
      ->type_name("BYTES")
      ->group(kGroup);
  root.add_option("--ird", options.ird, "inbound RDMA Reads served at once (default 16)")
      ->check(CLI::Range(0, 255))
      ->type_name("N")
      ->group(kGroup);
  root.add_option("--ord", options.ord, "outbound RDMA Reads requested at once (default 16)")
      ->check(CLI::Range(0, 255))
      ->type_name("N")
      ->group(kGroup);
  root.add_option("--inline", options.inline_threshold,
                  "RPC-over-RDMA inline threshold, a multiple of 1024 up to 262144 (default 4096)")
      ->check(CLI::Validator(inline_fault, "", "inline"))
      ->type_name("BYTES")
      ->group(kGroup);
  root.add_option("--credits", options.credits,
                  "RPC-over-RDMA credits to ask for and to grant (default 32; serve and nfs: 128)")
      ->check(CLI::Range(1u, rpcrdma::kMaxCredits))
      ->type_name("N")
      ->group(kGroup);
  root.add_option("--cc", options.congestion_control, "TCP congestion control (default the system's; perf: reno)")
      ->check(empty_fault)
      ->type_name("NAME")
      ->group(kGroup);
  add_choice(
      root, "--log-level", [&options](const std::string& v) { options.log_level = v; },
      {"trace", "debug", "info", "warn", "error", "off"}, "the least severe messages that go to stderr (default warn)");
}

void add_timeout_option(CLI::App& app, std::chrono::milliseconds& timeout, const std::string& text) {
  constexpr double kLeast = 0.1, kMost = 86400;
  app.add_option_function<double>(
         "--timeout", [&timeout](double seconds) { timeout = std::chrono::milliseconds(std::int64_t(seconds * 1000)); },
         text)
      ->check(CLI::Range(kLeast, kMost))
      ->check(nan_fault)
      ->type_name("S");
}

namespace {

// Some commands make no RDMA connection. Every option of connections would be ignored there.
void check_command_has_connections(const CLI::App& root) {
  constexpr std::string_view kWithout[] = {"dissect", "doctor", "top"};
  constexpr std::string_view kOfAll[] = {"--help", "--version", "--log-level"};
  for (const CLI::App* command : root.get_subcommands()) {
    if (std::ranges::find(kWithout, command->get_name()) == std::end(kWithout)) continue;
    for (const CLI::Option* option : root.get_options()) {
      const std::string name = option->get_name();
      if (option->count() == 0 || std::ranges::find(kOfAll, name) != std::end(kOfAll)) continue;
      throw CLI::ValidationError(name + " does not apply to weft " + command->get_name() +
                                 ": it makes no RDMA connection");
    }
  }
}

}  // namespace

void check_global_options(const CLI::App& root, const GlobalOptions& options) {
  check_command_has_connections(root);
  check_trace_options(options.trace);
  if (options.literal_credits &&
      std::ranges::find(options.protocols, rpcrdma::Protocol::k2Wg07) == options.protocols.end()) {
    throw CLI::ValidationError("--credit-formula literal needs 2-wg07 in --rpcrdma: other versions have one formula");
  }
  if (root.get_option("--parts")->count() > 0 &&
      std::ranges::find(options.protocols, rpcrdma::Protocol::k2Wg07) == options.protocols.end()) {
    throw CLI::ValidationError("--parts needs 2-wg07 in --rpcrdma: other versions have no calls in several messages");
  }
  if (options.is_soft()) {
    if (root.get_option("--device")->count() > 0) throw CLI::ValidationError("--device needs --backend ibv");
    if (options.mpa_revision < 2 && options.rtr != "auto" && options.rtr != "none") {
      throw CLI::ValidationError("--rtr " + options.rtr + " needs --mpa-rev 2: earlier revisions do not agree on one");
    }
    return;
  }
  if (options.num_workers > 0) {
    throw CLI::ValidationError(
        "--progress threads=N does not apply to --backend ibv: the device makes progress by itself");
  }
  if (options.port_map) {
    throw CLI::ValidationError("--port-map does not apply to --backend ibv: the kernel uses iwpmd, if it runs");
  }
  constexpr const char* kSoftOnly[] = {
      "--crc",  "--markers", "--mpa-rev", "--rtr",   "--placement",
      "--peer", "--fpdu",    "--cc",      "--nudge", "--trace"};  // --trace-limit and its like need --trace
  for (const char* name : kSoftOnly) {
    if (root.get_option(name)->count() == 0) continue;
    throw CLI::ValidationError(std::string(name) +
                               " does not apply to --backend ibv: the device and its driver decide that");
  }
}

}  // namespace weft::apps
