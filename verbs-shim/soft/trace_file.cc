#include "verbs-shim/soft/trace_file.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace weft::verbs::soft {

namespace {

using Octets = std::vector<std::uint8_t>;

// Types of blocks and options (draft-ietf-opsawg-pcapng).
constexpr std::uint32_t kSectionHeader = 0x0a0d0d0a, kInterface = 1, kStatistics = 5, kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrder = 0x1a2b3c4d;
constexpr std::uint16_t kOptEnd = 0, kOptComment = 1, kOptInterfaceName = 2, kOptResolution = 9;
constexpr std::uint16_t kOptReceived = 4, kOptDropped = 5;
constexpr std::uint16_t kLinkRaw = 101;  // LINKTYPE_RAW: packets begin with an IP header
constexpr std::uint8_t kNanoseconds = 9;

constexpr std::chrono::milliseconds kWritePeriod{100};
constexpr std::size_t kWriteAt = 256 << 10;  // octets that are worth a write before the period ends

// Integers are in the byte order of the machine, which the section header tells.
template <typename T>
void put_number(Octets& out, T value) {
  const std::size_t at = out.size();
  out.resize(at + sizeof(T));
  std::memcpy(out.data() + at, &value, sizeof(T));
}

void pad(Octets& out) {
  out.resize((out.size() + 3) / 4 * 4);
}

void put_option(Octets& out, std::uint16_t code, ConstBytes value) {
  put_number(out, code);
  put_number(out, static_cast<std::uint16_t>(value.size()));
  out.insert(out.end(), value.begin(), value.end());
  pad(out);
}

void put_option(Octets& out, std::uint16_t code, std::uint64_t value) {
  Octets octets;
  put_number(octets, value);
  put_option(out, code, ConstBytes(octets));
}

ConstBytes octets_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// Block writes the type and the two lengths around the octets that are added while it lives.
class Block {
 public:
  Block(Octets& out, std::uint32_t type) : out_(out), begin_(out.size()) {
    put_number(out, type);
    put_number(out, std::uint32_t{0});
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    const auto len = static_cast<std::uint32_t>(out_.size() - begin_ + 4);
    put_number(out_, len);
    std::memcpy(out_.data() + begin_ + 4, &len, sizeof(len));
  }

 private:
  Octets& out_;
  std::size_t begin_;
};

void put_time(Octets& out, std::chrono::nanoseconds time) {
  const auto ns = static_cast<std::uint64_t>(time.count());
  put_number(out, static_cast<std::uint32_t>(ns >> 32));
  put_number(out, static_cast<std::uint32_t>(ns));
}

}  // namespace

int claim(int fd) {
  struct stat file {};
  if (::fstat(fd, &file) != 0) return errno;
  if (!S_ISREG(file.st_mode)) return 0;
  // A file system without locks has none to respect.
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return errno;
  return ::ftruncate(fd, 0) == 0 ? 0 : errno;
}

TraceFile::TraceFile(const TraceConfig& config, Fd fd)
    : config_(config),
      fd_(std::move(fd)),
      since_epoch_(std::chrono::system_clock::now().time_since_epoch() -
                   std::chrono::steady_clock::now().time_since_epoch()) {
  // The head of the file is written at once: a program that is killed soon leaves a capture that can be read.
  begin_file();
  failed_ = !write_out(waiting_);
  waiting_.clear();
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
    if (!failed_) end_file();
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
  if (config_.log.wants(LogLevel::kWarn)) config_.log.sink(LogLevel::kWarn, "trace " + config_.path + ": " + what);
}

Trace::Counters TraceFile::counters() const {
  const std::lock_guard lock(mutex_);
  return {.packets = num_packets_, .dropped = num_dropped_, .failed = failed_};
}

void TraceFile::begin_file() {
  {
    Block block(waiting_, kSectionHeader);
    put_number(waiting_, kByteOrder);
    put_number(waiting_, std::uint16_t{1});  // version 1.0
    put_number(waiting_, std::uint16_t{0});
    put_number(waiting_, ~std::uint64_t{0});  // the section's length is not known
  }
  Block block(waiting_, kInterface);
  put_number(waiting_, kLinkRaw);
  put_number(waiting_, std::uint16_t{0});
  put_number(waiting_, std::uint32_t{0});  // no limit of a packet's length
  put_option(waiting_, kOptInterfaceName, octets_of("weft"));
  put_option(waiting_, kOptResolution, ConstBytes(&kNanoseconds, 1));
  put_option(waiting_, kOptEnd, ConstBytes());
}

void TraceFile::end_file() {
  Block block(waiting_, kStatistics);
  put_number(waiting_, std::uint32_t{0});
  put_time(waiting_, since_epoch_ + std::chrono::steady_clock::now().time_since_epoch());
  put_option(waiting_, kOptReceived, num_packets_ + num_dropped_);
  put_option(waiting_, kOptDropped, num_dropped_);
  put_option(waiting_, kOptEnd, ConstBytes());
}

void TraceFile::put(ConstBytes head, ConstBytes payload, std::size_t wire_len, TimePoint time,
                    std::string_view comment) {
  const std::lock_guard lock(mutex_);
  const std::size_t len = head.size() + payload.size();
  if (failed_ || waiting_.size() + len + comment.size() > config_.max_buffered) {
    ++num_dropped_;
    return;
  }
  ++num_packets_;
  {
    Block block(waiting_, kEnhancedPacket);
    put_number(waiting_, std::uint32_t{0});
    put_time(waiting_, since_epoch_ + time.time_since_epoch());
    put_number(waiting_, static_cast<std::uint32_t>(len));
    put_number(waiting_, static_cast<std::uint32_t>(wire_len));
    waiting_.insert(waiting_.end(), head.begin(), head.end());
    waiting_.insert(waiting_.end(), payload.begin(), payload.end());
    pad(waiting_);
    if (!comment.empty()) {
      put_option(waiting_, kOptComment, octets_of(comment));
      put_option(waiting_, kOptEnd, ConstBytes());
    }
  }
  if (waiting_.size() >= kWriteAt) more_.notify_one();
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

void TraceFile::write_all() {
  Octets writing;
  std::unique_lock lock(mutex_);
  while (true) {
    more_.wait_for(lock, kWritePeriod, [this] { return ending_ || waiting_.size() >= kWriteAt; });
    const bool is_last = ending_;
    writing.swap(waiting_);
    lock.unlock();
    const bool done = write_out(writing);
    lock.lock();
    // Behind a part of a block nothing could be read.
    failed_ = failed_ || !done;
    writing.clear();
    if (failed_) waiting_.clear();
    if (is_last) return;
  }
}

}  // namespace weft::verbs::soft

namespace weft::verbs {

Result<std::shared_ptr<Trace>> open_trace(const TraceConfig& config) {
  // O_NONBLOCK matters for FIFOs alone: neither their open nor their writes may wait for a reader.
  Fd fd(::open(config.path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600));
  if (!fd) {
    const int err = errno;
    const char* why = err == ENXIO ? "no program reads from this FIFO; start the reader first" : std::strerror(err);
    return Error{err, config.path + ": " + why};
  }
  if (const int err = soft::claim(fd.get()); err != 0) {
    return Error{
        err, config.path + ": " + (err == EWOULDBLOCK ? "another trace is being written to it" : std::strerror(err))};
  }
  auto trace = std::make_shared<soft::TraceFile>(config, std::move(fd));
  if (!trace->has_thread()) return Error{EAGAIN, "no thread for the trace"};
  return std::shared_ptr<Trace>(std::move(trace));
}

}  // namespace weft::verbs
