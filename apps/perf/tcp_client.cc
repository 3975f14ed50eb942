#include <algorithm>
#include <cerrno>
#include <chrono>
#include <vector>

#include "apps/common/address.h"
#include "apps/perf/client.h"
#include "apps/perf/socket.h"
#include "apps/perf/tcp_server.h"
#include "base/address.h"
#include "mpa/wire/cursor.h"

namespace weft::apps::perf {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::nanoseconds to_duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

// TcpRun is one baseline on its connection.
class TcpRun {
 public:
  TcpRun(const PerfOptions& options, const StopSignals& stop, Fd fd, Waiter& waiter, std::uint64_t file_len)
      : options_(options), stop_(stop), fd_(std::move(fd)), waiter_(waiter), file_len_(file_len) {
    measured_.op = options.op;
    measured_.size = effective_size(options);
    measured_.depth = effective_depth(options);
  }

  absl::StatusOr<Measured> run();

 private:
  IoResult stream();
  IoResult ping_pong();
  IoResult send_batches();
  // must_wait: there is nothing else to do until an answer comes.
  IoResult read_answers(std::uint64_t& answered, bool must_wait);
  IoResult read_file();
  // The client's end: everything is on its way, and the listener says how much arrived.
  IoResult finish(Totals& totals);

  // However short the time is, one operation is done.
  bool goes_on(std::uint64_t num_done) const { return !stop_.requested() && (num_done == 0 || Clock::now() < end_); }

  const PerfOptions& options_;
  const StopSignals& stop_;
  Fd fd_;
  Waiter& waiter_;
  std::uint64_t file_len_;
  Measured measured_;
  Clock::time_point start_, end_;
};

absl::StatusOr<Measured> TcpRun::run() {
  announce(options_);
  start_ = Clock::now();
  end_ = start_ + to_duration(options_.seconds);
  IoResult result = IoResult::kError;
  switch (options_.op) {
    case Op::kTcpLat: result = ping_pong(); break;
    case Op::kTcpBatch: result = send_batches(); break;
    case Op::kTcpFileRead: result = read_file(); break;
    default: result = stream(); break;
  }
  Totals totals;
  bool counted = options_.op != Op::kTcpLat && options_.op != Op::kTcpFileRead;
  // An interrupted run counts the octets that were sent; it does not ask the listener how many arrived.
  measured_.interrupted = stop_.requested();
  if (measured_.interrupted) {
    result = IoResult::kDone;
    counted = false;
  }
  if (result == IoResult::kDone && counted) result = finish(totals);
  if (result == IoResult::kEof) return absl::UnavailableError("the listener closed the TCP connection too early");
  if (result != IoResult::kDone && errno == ETIMEDOUT) return not_responding("the listener", options_);
  if (result != IoResult::kDone) return errno_status("the TCP connection failed");
  measured_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  measured_.mss = mss_of(fd_.get());
  measured_.congestion_control = congestion_control_of(fd_.get());
  if (counted && totals.octets != measured_.octets) {
    return absl::DataLossError("the listener counted " + std::to_string(totals.octets) + " bytes of " +
                               std::to_string(measured_.octets));
  }
  return measured_;
}

IoResult TcpRun::stream() {
  constexpr std::size_t kLargest = 2 << 20;
  std::vector<std::uint8_t> buffer(std::max<std::size_t>(measured_.size, kLargest), 0x5a);
  while (goes_on(measured_.ops)) {
    std::size_t len = measured_.size != 0 ? measured_.size : write_size_of(fd_.get());
    if (IoResult result = send_all(fd_.get(), std::span(buffer).first(len), waiter_); result != IoResult::kDone)
      return result;
    measured_.octets += len;
    ++measured_.ops;
  }
  if (measured_.size == 0) measured_.size = write_size_of(fd_.get());
  return IoResult::kDone;
}

IoResult TcpRun::finish(Totals& totals) {
  shutdown(fd_.get(), SHUT_WR);
  std::vector<std::uint8_t> octets(kTotalsLen);
  IoResult result = recv_all(fd_.get(), octets, waiter_);
  if (result != IoResult::kDone) return result;
  std::optional<Totals> parsed = parse_totals(octets);
  if (!parsed) return IoResult::kEof;
  totals = *parsed;
  return IoResult::kDone;
}

IoResult TcpRun::ping_pong() {
  std::vector<std::uint8_t> buffer(measured_.size, 0x5a);
  Samples samples;
  while (goes_on(measured_.ops)) {
    Clock::time_point sent = Clock::now();
    IoResult result = send_all(fd_.get(), buffer, waiter_);
    if (result == IoResult::kDone) result = recv_all(fd_.get(), buffer, waiter_);
    if (stop_.requested()) break;
    if (result != IoResult::kDone) return result;
    samples.add(std::uint64_t(std::chrono::nanoseconds(Clock::now() - sent).count()));
    ++measured_.ops;
  }
  measured_.octets = measured_.ops * measured_.size;
  take_quantiles(measured_, samples);
  return IoResult::kDone;
}

// Each message has its number in front, its own copy of the payload and its own entry in a table, which its answer
// clears. That is the least that any message layer does.
IoResult TcpRun::send_batches() {
  struct Entry {
    std::uint64_t wr_id = 0;
    std::size_t len = 0;
    bool open = false;
  };
  std::size_t size = measured_.size, depth = measured_.depth;
  std::vector<std::uint8_t> payload(size, 0x5a), batch(size * depth);
  std::vector<Entry> entries(depth * kBatchWindow);
  std::uint64_t posted = 0, cleared = 0, answered = 0;
  while (goes_on(posted)) {
    if (posted - cleared + depth <= entries.size()) {
      for (std::size_t i = 0; i < depth; ++i, ++posted) {
        entries[posted % entries.size()] = {posted, size, true};
        MutBytes message = MutBytes(batch).subspan(i * size, size);
        std::copy(payload.begin(), payload.end(), message.begin());
        Writer writer(message);
        if (!writer.u32(std::uint32_t(posted))) return IoResult::kError;
      }
      if (IoResult result = send_all(fd_.get(), batch, waiter_); result != IoResult::kDone) return result;
    }
    const bool is_full = posted - cleared + depth > entries.size();
    if (IoResult result = read_answers(answered, is_full); result != IoResult::kDone) return result;
    for (; cleared < std::min(answered, posted); ++cleared) entries[cleared % entries.size()].open = false;
  }
  measured_.ops = posted;
  measured_.octets = posted * size;
  while (answered < posted && !stop_.requested()) {
    if (IoResult result = read_answers(answered, true); result != IoResult::kDone) return result;
  }
  return IoResult::kDone;
}

IoResult TcpRun::read_answers(std::uint64_t& answered, bool must_wait) {
  std::array<std::uint8_t, kBatchAckLen * 64> octets{};
  ssize_t n =
      must_wait ? recv_some(fd_.get(), octets, waiter_) : recv(fd_.get(), octets.data(), octets.size(), MSG_DONTWAIT);
  if (n == 0) return IoResult::kEof;
  if (n < 0) return !must_wait && (errno == EAGAIN || errno == EINTR) ? IoResult::kDone : IoResult::kError;
  // Answers are eight octets and sent whole, but TCP may cut them anywhere.
  auto filled = std::size_t(n);
  std::size_t torn = filled % kBatchAckLen;
  if (torn != 0) {
    auto rest = std::span(octets).subspan(filled, kBatchAckLen - torn);
    if (IoResult result = recv_all(fd_.get(), rest, waiter_); result != IoResult::kDone) return result;
    filled += rest.size();
  }
  Reader reader(ConstBytes(octets).subspan(filled - kBatchAckLen, kBatchAckLen));
  return reader.u64(answered) ? IoResult::kDone : IoResult::kError;
}

IoResult TcpRun::read_file() {
  std::vector<std::uint8_t> buffer(1 << 20);
  while (goes_on(measured_.ops)) {
    const std::uint8_t ask = 1;
    if (IoResult result = send_all(fd_.get(), {&ask, 1}, waiter_); result != IoResult::kDone) return result;
    for (std::uint64_t left = file_len_; left != 0;) {
      auto want = std::size_t(std::min<std::uint64_t>(buffer.size(), left));
      ssize_t n = recv_some(fd_.get(), std::span(buffer).first(want), waiter_);
      if (n <= 0) return n == 0 ? IoResult::kEof : IoResult::kError;
      left -= std::uint64_t(n);
      if (stop_.requested()) return IoResult::kDone;
    }
    measured_.octets += file_len_;
    measured_.ops += (file_len_ + buffer.size() - 1) / buffer.size();
  }
  return IoResult::kDone;
}

}  // namespace

absl::StatusOr<Measured> run_tcp(const GlobalOptions& global, const PerfOptions& options, const StopSignals& stop,
                                 const sockaddr_storage& addr) {
  auto fd = tcp_connect(addr, wanted_congestion_control(global), patience(options));
  if (!fd.ok()) return fd.status();
  Waiter waiter(global.progress_or(ProgressMode::kAdapt), place_of(addr), patience(options), &stop);
  waiter.prepare(fd->get());
  const bool spins = waiter.mode() != ProgressMode::kBlock;
  Hello hello{options.op, false, spins, effective_size(options), effective_depth(options)};
  std::vector<std::uint8_t> octets(kReadyLen);
  if (send_all(fd->get(), emit_hello(hello), waiter) != IoResult::kDone ||
      recv_all(fd->get(), octets, waiter) != IoResult::kDone) {
    if (stop.requested()) return absl::CancelledError("interrupted");
    return absl::UnavailableError("no answer from " + address_str(addr) +
                                  "; is it a weft perf --listen of this version?");
  }
  std::optional<Ready> ready = parse_ready(octets);
  if (!ready)
    return absl::UnavailableError(address_str(addr) + " is not a weft perf listener, or it has another version");
  if (!ready->error.empty()) return absl::FailedPreconditionError(ready->error);
  auto measured = TcpRun(options, stop, std::move(*fd), waiter, ready->length).run();
  if (measured.ok()) {
    measured->peer_congestion_control = ready->congestion_control;
    measured->waiting = how_it_waited(global, waiter.mode(), waiter.waits());
  }
  return measured;
}

}  // namespace weft::apps::perf
