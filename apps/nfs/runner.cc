#include "apps/nfs/runner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "apps/common/output.h"
#include "apps/common/printable.h"
#include "apps/common/say.h"
#include "apps/common/setup.h"
#include "apps/nfs/tree.h"

namespace weft::nfs {

ProgressLine::ProgressLine() : is_terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressLine::begin(std::string name, std::uint64_t total) {
  constexpr std::size_t kShownName = 40;
  name_ = apps::printable_tail(name, kShownName);
  total_ = total;
  started_ = Clock::now();
  next_ = started_ + kQuiet;
}

bool ProgressLine::is_time() {
  if (!is_terminal_) return false;
  const Clock::time_point now = Clock::now();
  if (now < next_) return false;
  next_ = now + std::chrono::milliseconds(100);
  return true;
}

void ProgressLine::show(const std::function<std::string()>& text) {
  if (!is_time()) return;
  apps::say(stderr, "\r\x1b[K{}", text());
  std::fflush(stderr);
  is_shown_ = true;
}

void ProgressLine::update(std::uint64_t octets) {
  if (!is_time()) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - started_).count();
  const std::string percent = total_ > 0 ? fmt::format(" {:3.0f}%", 100.0 * double(octets) / double(total_)) : "";
  apps::say(stderr, "\r\x1b[K{}{} {} {}", name_, percent, apps::format_octets(double(octets)),
            apps::format_rate(double(octets) / seconds));
  std::fflush(stderr);
  is_shown_ = true;
}

void ProgressLine::clear() {
  if (!is_shown_) return;
  apps::say(stderr, "\r\x1b[K");
  std::fflush(stderr);
  is_shown_ = false;
}

Runner::~Runner() = default;

absl::StatusOr<Session*> Runner::session(const Url& url) {
  for (const Mounted& mounted : mounted_) {
    if (mounted.session->url().same_server(url) && below_export(*mounted.session, url.path).ok()) {
      return mounted.session.get();
    }
  }
  if (!device_) {
    auto device = apps::open_device(
        globals_, {.congestion_control = {}, .answer_timeout = options_.timeout, .files = options_.names});
    if (!device.ok()) return device.status();
    device_ = std::move(*device);
  }
  Endurance endurance{.reconnect_for = globals_.reconnect_for,
                      .timeout = options_.timeout,
                      .tell_after = globals_.tell_after,
                      .tell = [this](const std::string& line) { warn(line); }};
  auto session = Session::open(url, globals_, *device_, stop_, std::move(endurance));
  if (!session.ok()) return session.status();
  mounted_.push_back({std::move(*session), nullptr});
  return mounted_.back().session.get();
}

Transfer& Runner::transfer(Session& session) {
  for (Mounted& mounted : mounted_) {
    if (mounted.session.get() != &session) continue;
    if (!mounted.transfer) {
      TransferLimits limits = options_.limits;
      if (options_.in_flight) limits.in_flight = *options_.in_flight;
      mounted.transfer = std::make_unique<Transfer>(session, limits);
    }
    return *mounted.transfer;
  }
  std::abort();  // sessions come from session() only
}

TreeLimits Runner::tree_limits() const {
  TreeLimits limits = options_.tree;
  if (options_.in_flight) limits.files = *options_.in_flight;
  return limits;
}

void Runner::warn(const std::string& line) {
  progress_.clear();
  apps::warn(line);
}

bool Runner::report(const absl::Status& status) {
  if (is_over_) return false;
  if (status.ok()) return true;
  progress_.clear();
  exit_status_ =
      absl::IsInvalidArgument(status) ? apps::usage_error(std::string(status.message())) : apps::fail(status);
  is_over_ = absl::IsCancelled(status) || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  return !is_over_;
}

void Runner::print(const std::string& line) {
  progress_.clear();
  std::fputs((line + "\n").c_str(), stdout);
}

int Runner::finish() {
  if (options_.stats) {
    verbs::QpCounters sum;
    for (const Mounted& mounted : mounted_) sum += mounted.session->counters();
    if (options_.json) {
      print(JsonLine()
                .add("op", "stats")
                .add("rdma_writes_received", sum.writes_rx)
                .add("rdma_write_octets_received", sum.write_octets_rx)
                .add("rdma_reads_served", sum.reads_rx)
                .add("rdma_read_octets_served", sum.read_octets_tx)
                .add("sends", sum.sends_tx)
                .add("receives", sum.sends_rx)
                .str());
    } else {
      apps::say(stderr,
                "RDMA Writes received {:>8}  {:>14} bytes\nRDMA Reads served    {:>8}  {:>14} bytes\n"
                "Sends sent           {:>8}\nSends received       {:>8}\n",
                sum.writes_rx, sum.write_octets_rx, sum.reads_rx, sum.read_octets_tx, sum.sends_tx, sum.sends_rx);
    }
  }
  if (std::fflush(stdout) == 0 || exit_status_ != apps::kExitDone) return exit_status_;
  if (errno == EPIPE) {
    end_with_reader();
  } else {
    exit_status_ = apps::fail(std::string("cannot write to standard output: ") + std::strerror(errno));
  }
  return exit_status_;
}

absl::StatusOr<std::vector<Url>> remote_names(const std::vector<std::string>& texts) {
  std::vector<Url> urls;
  for (const std::string& text : texts) {
    auto url = parse_url(text);
    if (!url.ok()) return url.status();
    urls.push_back(std::move(*url));
  }
  return urls;
}

}  // namespace weft::nfs
