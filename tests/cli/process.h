#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace weft::testing {

// Outcome is what a command left behind. A command that was killed has status 128 + signal.
struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

// run_weft runs the built `weft` with these words to its end.
Outcome run_weft(const std::vector<std::string>& words);

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

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  std::string ready_line_;
};

}  // namespace weft::testing
