#include "apps/top/command.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/address.h"
#include "apps/common/command.h"
#include "apps/common/option_checks.h"
#include "apps/common/printable.h"
#include "apps/common/progress.h"
#include "apps/common/signals.h"
#include "apps/metrics/metrics_option.h"
#include "apps/top/scraper.h"
#include "apps/top/screen.h"
#include "apps/top/terminal.h"
#include "apps/top/view.h"
#include "base/address.h"
#include "fmt/format.h"

namespace weft::apps {
namespace {

using Clock = std::chrono::steady_clock;
using top::SortKey;
using top::TimedScrape;
using top::View;

struct TopOptions {
  std::string where;
  double interval_s = 1;
  std::string sort = "calls";
  bool once = false;
  bool json = false;
};

struct NamedKey {
  const char* name;
  char key;
  SortKey sort;
};
constexpr NamedKey kKeys[] = {{"calls", 'c', SortKey::kCalls},
                              {"bytes", 'b', SortKey::kBytes},
                              {"p99", 'p', SortKey::kP99},
                              {"queue", 'u', SortKey::kQueue},
                              {"name", 'n', SortKey::kName}};

// Monitor asks the server again and again, and compares each answer with the one before.
class Monitor {
 public:
  Monitor(const sockaddr_storage& where, const StopSignals& stop) : where_(where), stop_(stop) {}

  // Asks once. False: there is no answer, and fault() says why.
  bool ask() {
    absl::StatusOr<TimedScrape> answer = top::fetch(where_, kTimeout, stop_);
    fault_ = answer.ok() ? absl::OkStatus() : answer.status();
    if (!answer.ok()) return false;
    // After a restart of the server its counters begin anew.
    const bool is_same = last_ && top::is_same_process(*last_, *answer);
    before_ = is_same ? std::move(last_) : std::nullopt;
    last_ = std::move(*answer);
    return true;
  }
  // Nothing before the second answer.
  std::optional<View> view(SortKey key) const {
    if (!before_ || !last_) return {};
    return top::make_view(*before_, *last_, key);
  }
  const absl::Status& fault() const { return fault_; }

 private:
  static constexpr std::chrono::milliseconds kTimeout{5000};

  const sockaddr_storage where_;
  const StopSignals& stop_;
  std::optional<TimedScrape> before_, last_;
  absl::Status fault_;
};

std::chrono::nanoseconds interval_of(const TopOptions& options) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(options.interval_s * 1e9));
}

SortKey sort_key(const std::string& name) {
  for (const NamedKey& key : kKeys) {
    if (name == key.name) return key.sort;
  }
  return SortKey::kCalls;
}

// False: standard output takes no more.
bool print(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) std::fputs((line + "\n").c_str(), stdout);
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

void sleep_until(Clock::time_point until, const StopSignals& stop) {
  while (!stop.requested() && Clock::now() < until) wait_readable({stop.fd()}, until);
}

// Prints views without a terminal: one with --once, else one after the other.
int run_plain(const TopOptions& options, const sockaddr_storage& where, const StopSignals& stop) {
  Monitor monitor(where, stop);
  bool was_told = false;
  for (auto next = Clock::now(); !stop.requested(); next += interval_of(options)) {
    sleep_until(next, stop);
    if (stop.requested()) break;
    if (!monitor.ask()) {
      if (options.once && !stop.requested()) return fail(monitor.fault());
      if (!std::exchange(was_told, true) && !stop.requested()) warn(std::string(monitor.fault().message()));
      continue;
    }
    was_told = false;
    const std::optional<View> view = monitor.view(sort_key(options.sort));
    if (!view) continue;
    top::Page page = top::page_of_stdout();
    page.height = 0;
    const bool is_out =
        print(options.json ? top::json_lines(*view) : top::screen_lines(*view, address_str(where), page));
    if (options.once || !is_out) break;
  }
  return kExitDone;
}

// Live is the interactive program on a terminal.
class Live {
 public:
  Live(const TopOptions& options, const sockaddr_storage& where, const StopSignals& stop)
      : interval_(interval_of(options)),
        where_(address_str(where)),
        stop_(stop),
        monitor_(where, stop),
        key_(sort_key(options.sort)) {}

  void run() {
    for (auto next = Clock::now(); !stop_.requested() && !quits_;) {
      if (Clock::now() >= next) {
        has_answer_ = monitor_.ask();
        next = Clock::now() + interval_;
      }
      show();
      if (const auto key = terminal_.wait_key(next, stop_.fd())) on_key(*key);
    }
  }

 private:
  void on_key(char key) {
    if (key == 'q') quits_ = true;
    for (const NamedKey& known : kKeys) {
      if (known.key == key) key_ = known.sort;
    }
  }

  std::string foot() const {
    std::string text = "q quits; sort by:";
    for (const NamedKey& key : kKeys) {
      text += key.sort == key_ ? fmt::format(" [{} {}]", key.key, key.name) : fmt::format(" {} {}", key.key, key.name);
    }
    return text;
  }

  void show() {
    top::Page page = top::page_of_stdout();
    const std::size_t height = page.height;
    std::vector<std::string> lines;
    if (!has_answer_) {
      lines = {"weft top " + where_, "", printable(std::string(monitor_.fault().message())), "asking again ..."};
    } else if (const auto view = monitor_.view(key_)) {
      page.height = height > 1 ? height - 1 : 1;
      lines = top::screen_lines(*view, where_, page);
    } else {
      lines = {"weft top " + where_, "", "The first figures come after one interval."};
    }
    lines.resize(height > 1 ? height - 1 : 0);
    lines.push_back(foot());
    for (std::string& line : lines) line = top::fit(line, page.width);
    terminal_.show(lines);
  }

  const std::chrono::nanoseconds interval_;
  const std::string where_;
  const StopSignals& stop_;
  Monitor monitor_;
  SortKey key_;
  bool has_answer_ = true;
  bool quits_ = false;
  top::Terminal terminal_;
};

int run_top(const TopOptions& options) {
  const auto where = resolve_address(options.where, metrics::kMetricsPort);
  if (!where.ok()) return fail(where.status());
  const bool is_plain = options.once || options.json;
  if (!is_plain && !top::Terminal::is_there()) {
    return usage_error("top wants a terminal; --once prints one view, and --json prints views for scripts");
  }
  StopSignals stop;
  if (is_plain) return run_plain(options, *where, stop);
  Live(options, *where, stop).run();
  return kExitDone;
}

}  // namespace

void register_top_command(CLI::App& root, CommandContext& context) {
  auto options = std::make_shared<TopOptions>();
  CLI::App* top = root.add_subcommand("top", "Show the metrics of a running serve or gateway, live.");
  top->add_option("address", options->where, "the --metrics address of the server; default port 9450")
      ->required()
      ->check([](const std::string& text) { return address_fault(text, metrics::kMetricsPort); })
      ->type_name("ADDR[:PORT]");
  top->add_option("--interval", options->interval_s, "seconds between two answers")
      ->check(CLI::Range(0.1, 3600.0))
      ->check(nan_fault)
      ->type_name("S")
      ->capture_default_str();
  top->add_option("--sort", options->sort, "the order of the rows: calls, bytes, p99, queue or name")
      ->check(CLI::IsMember({"calls", "bytes", "p99", "queue", "name"}))
      ->type_name("KEY")
      ->capture_default_str();
  top->add_flag("--once", options->once, "print the figures of one interval, then end");
  top->add_flag("--json", options->json, "print each view as JSON objects, one per line");
  top->footer(
      "Example, two terminals:\n  weft serve --metrics 127.0.0.1 /usr/share/doc\n  weft top 127.0.0.1\n"
      "Keys: q quits; c, b, p, u and n sort by calls, bytes, p99, queue and name.");
  top->callback([options, &context] { context.exit_status = run_top(*options); });
}

}  // namespace weft::apps
