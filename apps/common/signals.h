#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string_view>

namespace weft::apps {

// StopSignals turns SIGINT, SIGTERM and SIGHUP into a flag while it lives, and ignores SIGPIPE. A SIGHUP that the
// program was started to ignore stays ignored. A second signal of the same kind kills as usual. A process has one
// StopSignals at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Whether a signal came. Any thread may call it. It makes no system call.
  bool requested() const;
  // Readable from the first signal on. No code reads it.
  int fd() const;

 private:
  bool takes_hang_up_ = false;  // SIGHUP was not ignored
};

// stop_fd returns the descriptor of the newest StopSignals; -1 for none.
int stop_fd();

// read_unless_stopped reads as read(2) does. A stop signal, even an earlier one, ends it with EINTR.
ssize_t read_unless_stopped(int fd, void* octets, std::size_t len);

// remove_when_killed names a file that a second signal removes before it kills: an unfinished one. An empty path ends
// this. The process has one such file at a time.
void remove_when_killed(std::string_view path);

// stop_signal returns the first signal that the newest StopSignals saw, 0 for none. It stays known after the
// StopSignals is gone.
int stop_signal();

// die_by flushes the output and ends the process as the signal does by default. A shell that waits for the process then
// sees that the user stopped it, and ends its loop. An ordinary exit status would not show this.
[[noreturn]] void die_by(int signal_number);

}  // namespace weft::apps
