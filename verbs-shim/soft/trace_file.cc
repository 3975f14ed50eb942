#include "verbs-shim/soft/trace_file.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

namespace weft::verbs::soft {

namespace {

constexpr std::chrono::milliseconds kWritePeriod{100};
constexpr std::size_t kWriteAt = BlockQueue::kPiece;  // octets that are worth a write before the period ends

}  // namespace

TraceFile::TraceFile(const TraceConfig& config, TraceRing ring, Fd fd)
    : config_(config),
      cut_note_(config.in_words ? config.in_words(kTraceCutNote) : kTraceCutNote),
      since_epoch_(std::chrono::system_clock::now().time_since_epoch() -
                   std::chrono::steady_clock::now().time_since_epoch()),
      ring_(std::move(ring)),
      fd_(std::move(fd)) {
  // The head of the file is written at once: a program that is killed soon leaves a capture that can be read.
  failed_ = !begin_file();
  // Signals are for the threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { write_all(); });
  } catch (const std::system_error&) {
    has_thread_ = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TraceFile::~TraceFile() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  more_.notify_one();
  thread_.join();
  if (num_dropped_ > 0) {
    warn(std::to_string(num_dropped_) + " packets were dropped" +
         (failed_ ? " since then" : ": the file took them more slowly than they came"));
  }
}

void TraceFile::warn(const std::string& what) const {
  if (config_.log.wants(LogLevel::kWarn)) config_.log.sink(LogLevel::kWarn, "trace " + ring_.path() + ": " + what);
}

Trace::Counters TraceFile::counters() const {
  const std::lock_guard lock(mutex_);
  return {.packets = num_packets_, .dropped = num_dropped_, .failed = failed_, .full = !is_open()};
}

void TraceFile::put(ConstBytes head, ConstBytes payload, std::size_t wire_len, TimePoint time,
                    std::string_view comment) {
  const PacketBlock block{head, payload, wire_len, since_epoch_ + time.time_since_epoch(), comment};
  const std::size_t len = block.len();
  const std::lock_guard lock(mutex_);
  if (!is_open()) return;
  const std::size_t before = waiting_.len();
  if (failed_ || before + being_written_ + len > config_.max_buffered) {
    ++num_dropped_;
    return;
  }
  ++num_packets_;
  block.emit(waiting_.add(len));
  if (before < kWriteAt && waiting_.len() >= kWriteAt) more_.notify_one();
}

// Whether the file, which is a pipe, takes more octets.
bool TraceFile::wait_for_room() {
  std::chrono::milliseconds waited{0};
  while (true) {
    pollfd room{fd_.get(), POLLOUT, 0};
    if (::poll(&room, 1, static_cast<int>(kWritePeriod.count())) != 0) return true;
    const std::lock_guard lock(mutex_);
    if (ending_) waited += kWritePeriod;
    if (waited >= kPatience) return false;
  }
}

bool TraceFile::write_out(ConstBytes octets) {
  file_len_ += octets.size();
  while (!octets.empty()) {
    const ssize_t n = ::write(fd_.get(), octets.data(), octets.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      if (wait_for_room()) continue;
      warn("the program that reads it does not go on; the rest of the trace is lost");
      return false;
    }
    if (n < 0) {
      warn(std::string("cannot be written any more: ") + std::strerror(errno));
      return false;
    }
    octets = octets.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

bool TraceFile::begin_file() {
  file_len_ = num_in_file_ = 0;
  std::string comment;
  if (ring_.num_files() > 1) {
    comment = "file " + std::to_string(ring_.num_opened()) + " of this trace, in a ring of " +
              std::to_string(ring_.num_files());
  }
  return write_out(section_head(comment));
}

bool TraceFile::end_file() {
  std::uint64_t dropped = 0;
  {
    const std::lock_guard lock(mutex_);
    dropped = num_dropped_;
  }
  const Drops drops{num_in_file_, dropped - std::exchange(num_dropped_before_, dropped)};
  return write_out(statistics(drops, since_epoch_ + std::chrono::steady_clock::now().time_since_epoch()));
}

bool TraceFile::next_file() {
  if (!end_file()) return false;
  if (ring_.num_files() == 1) {
    full_ = true;
    warn("it has its " + std::to_string(config_.max_file) + " bytes; the traffic from here on is not in it");
    return false;
  }
  auto next = ring_.open_next();
  if (!next.ok()) {
    warn("the ring ends here: " + next.error().message);
    return false;
  }
  fd_ = std::move(next.value());
  return begin_file();
}

// Room for so many octets, and for the statistics behind them.
bool TraceFile::has_room(std::size_t len) const {
  return config_.max_file == 0 || file_len_ + len + kStatisticsLen <= config_.max_file;
}

// A file ends with the last block that fits.
bool TraceFile::write_piece(const BlockQueue::Piece& piece) {
  ConstBytes blocks = piece.octets();
  if (has_room(blocks.size())) {
    num_in_file_ += piece.num_blocks;
    return write_out(blocks);
  }
  while (!blocks.empty()) {
    std::size_t len = 0;
    while (len < blocks.size() && has_room(len + block_len(blocks.subspan(len)))) {
      len += block_len(blocks.subspan(len));
      ++num_in_file_;
    }
    if (!write_out(blocks.first(len))) return false;
    blocks = blocks.subspan(len);
    if (!blocks.empty() && !next_file()) return false;
  }
  return true;
}

void TraceFile::write_all() {
  std::unique_lock lock(mutex_);
  while (true) {
    more_.wait_for(lock, kWritePeriod, [this] { return ending_ || waiting_.len() >= kWriteAt; });
    const bool is_last = ending_;
    bool done = !failed_ && is_open();
    being_written_ = waiting_.len();
    for (auto& piece : waiting_.take()) {
      lock.unlock();
      done = done && write_piece(piece);
      lock.lock();
      being_written_ -= piece.len;
      waiting_.give_back(std::move(piece));
    }
    // Behind a part of a block nothing could be read.
    failed_ = failed_ || (!done && is_open());
    if (!done) waiting_.clear();
    if (!is_last) continue;
    lock.unlock();
    if (done) (void)end_file();
    return;
  }
}

}  // namespace weft::verbs::soft

namespace weft::verbs {

std::vector<std::string> trace_paths(const TraceConfig& config) {
  return soft::ring_paths(config.path, config.num_files);
}

Result<std::shared_ptr<Trace>> open_trace(const TraceConfig& config) {
  const bool is_ring = config.num_files != 0;
  if (config.max_file != 0 && config.max_file < TraceConfig::kMinFile) {
    return Error{EINVAL, config.path + ": a limit below " + std::to_string(TraceConfig::kMinFile) + " bytes"};
  }
  if (is_ring && (config.max_file == 0 || config.num_files < 2 || config.num_files > TraceConfig::kMaxFiles)) {
    return Error{EINVAL, config.path + ": a ring has 2 to " + std::to_string(TraceConfig::kMaxFiles) +
                             " files, and a limit for each"};
  }
  soft::TraceRing ring(config.path, config.num_files);
  auto fd = ring.open_first();
  if (!fd.ok()) return fd.error();
  auto trace = std::make_shared<soft::TraceFile>(config, std::move(ring), std::move(fd.value()));
  if (!trace->has_thread()) return Error{EAGAIN, "no thread for the trace"};
  return std::shared_ptr<Trace>(std::move(trace));
}

}  // namespace weft::verbs
