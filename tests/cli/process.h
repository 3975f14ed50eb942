#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace weft::testing {

using Words = std::vector<std::string>;
inline Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}
inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Of "HOST:PORT".
inline std::string port_of(const std::string& address) {
  return address.substr(address.rfind(':') + 1);
}

// Outcome is the status and the output of a command. A command that was killed has status 128 + signal.
struct Outcome {
  int status = -1;
  int signal = 0;  // that it died by, 0 for none
  std::string out;
  std::string err;
};

// run_weft runs the built `weft` with these words to its end.
Outcome run_weft(const std::vector<std::string>& words);

// run_weft_on_terminal runs it with a terminal as stdout and stderr. `out` has the output of both.
Outcome run_weft_on_terminal(const std::vector<std::string>& words);

// RunningWeft is a `weft` that runs meanwhile, its stdout and stderr in pipes.
class RunningWeft {
 public:
  // input: its stdin; negative for /dev/null. has_small_pipes: stdout and stderr take one page at a time.
  explicit RunningWeft(const std::vector<std::string>& words, int input = -1, bool has_small_pipes = false);
  ~RunningWeft();  // kills it
  RunningWeft(const RunningWeft&) = delete;
  RunningWeft& operator=(const RunningWeft&) = delete;

  // wait_for reads until stdout or stderr holds `part`; false where they ended before.
  bool wait_for(const std::string& part);
  void send_signal(int number);
  // wait_written waits until the program has written to stdout, and reads nothing.
  void wait_written();
  // ends_unread waits for the end, and reads nothing meanwhile. False: after a minute it still runs.
  bool ends_unread();
  // leave closes stdout, as a reader does that has seen enough.
  void leave();
  // finish reads the rest and waits for the end.
  Outcome finish();

 private:
  // False at the end of both.
  bool read_some();

  pid_t pid_ = -1;
  int fds_[2] = {-1, -1};  // stdout, stderr
  Outcome outcome_;
};

// WeftListener is a `weft` that listens. The constructor waits for its ready line.
class WeftListener {
 public:
  explicit WeftListener(const std::vector<std::string>& words);
  ~WeftListener();
  WeftListener(const WeftListener&) = delete;
  WeftListener& operator=(const WeftListener&) = delete;

  const std::string& ready_line() const { return ready_line_; }
  // The address after "name=" in the ready line; empty where there is none.
  std::string address(const std::string& name) const;
  // Sends the signal and waits for the end; the exit status.
  int stop(int signal_number);
  void send_signal(int number);

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  std::string ready_line_;
};

}  // namespace weft::testing
