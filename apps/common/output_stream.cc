#include "apps/common/output_stream.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <utility>

#include "apps/common/signals.h"

namespace weft::apps {
namespace {

constexpr int kPatienceMs = 500;  // after a stop signal, for a reader that does not read

// Whether a write can wait for a reader.
bool has_reader(int fd) {
  struct stat file {};
  return ::fstat(fd, &file) == 0 && (S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode) || ::isatty(fd) == 1);
}

// Writer is behind a stream. The descriptor stays as it is, because other programs may share it: O_NONBLOCK would be
// theirs, too.
class Writer {
 public:
  explicit Writer(Fd fd) : fd_(std::move(fd)), has_reader_(has_reader(fd_.get())) {}

  // The number of octets that were written. With fewer than len, errno says why.
  std::size_t write(const char* octets, std::size_t len) {
    // A pipe that poll calls writable takes this many without a wait.
    const std::size_t most = has_reader_ ? PIPE_BUF : len;
    std::size_t done = 0;
    while (done < len && (!has_reader_ || wait_for_reader())) {
      const ssize_t num = ::write(fd_.get(), octets + done, std::min(len - done, most));
      if (num < 0 && errno != EINTR && !(errno == EAGAIN && has_reader_)) break;
      done += num > 0 ? static_cast<std::size_t>(num) : 0;
    }
    return done;
  }

 private:
  // False: the program has to end, and the reader has not read in time. The write reports a reader that has gone.
  bool wait_for_reader() {
    while (!gave_up_) {
      const bool stops = stop_signal() != 0;
      std::array<pollfd, 2> polled = {pollfd{fd_.get(), POLLOUT, 0}, pollfd{stops ? -1 : stop_fd(), POLLIN, 0}};
      const int num = ::poll(polled.data(), polled.size(), stops ? kPatienceMs : -1);
      if (polled[0].revents != 0) return true;
      gave_up_ = stops && num == 0;
    }
    errno = EINTR;
    return false;
  }

  const Fd fd_;
  const bool has_reader_;
  bool gave_up_ = false;
};

ssize_t write(void* cookie, const char* octets, std::size_t len) {
  return static_cast<ssize_t>(static_cast<Writer*>(cookie)->write(octets, len));
}

int close(void* cookie) {
  delete static_cast<Writer*>(cookie);
  return 0;
}

// The stream owns the writer, unless there is none.
OutputStream make_stream(Writer* writer) {
  return OutputStream(::fopencookie(writer, "w", {.read = nullptr, .write = write, .seek = nullptr, .close = close}));
}

void replace(std::FILE*& stream, Writer* writer, int buffering) {
  OutputStream made = make_stream(writer);
  if (!made) return;
  std::setvbuf(made.get(), nullptr, buffering, BUFSIZ);
  stream = made.release();
}

}  // namespace

OutputStream open_output_stream(Fd fd) {
  auto writer = std::make_unique<Writer>(std::move(fd));
  OutputStream stream = make_stream(writer.get());
  if (stream) writer.release();
  return stream;
}

void fill_standard_files() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free descriptor is the one that is missing. It is opened for the other direction.
    (void)::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void use_output_streams() {
  // Both live as long as the program. LeakSanitizer finds them here, and not behind the streams.
  static Writer* const out = new Writer(Fd(STDOUT_FILENO));
  static Writer* const err = new Writer(Fd(STDERR_FILENO));
  replace(stdout, out, ::isatty(STDOUT_FILENO) == 1 ? _IOLBF : _IOFBF);
  replace(stderr, err, _IONBF);
}

}  // namespace weft::apps
