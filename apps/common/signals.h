#pragma once

namespace weft::apps {

// StopSignals turns SIGINT and SIGTERM into a flag while it lives, and ignores SIGPIPE. A second signal of the kind
// kills as usual. One per process at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // requested: a signal came. Any thread; no system call.
  bool requested() const;
  // Readable once a signal came, and from then on; nobody reads it.
  int fd() const;
};

// stop_signal is the first signal that the newest StopSignals saw, 0 for none; it is remembered after that has gone.
int stop_signal();

// die_by ends the process as the signal does by default, with what was printed flushed. A shell that waits for the
// process sees that the user stopped it, and ends its loop; an exit status of the program's own would not tell it.
[[noreturn]] void die_by(int signal_number);

}  // namespace weft::apps
