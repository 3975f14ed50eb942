#pragma once

#include <termios.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "apps/top/screen.h"

namespace weft::apps::top {

// page_of_stdout returns the size of the terminal on stdout. If the terminal does not know it: 80 columns, 24 lines.
// Without a terminal it is a page of 120 columns without end.
Page page_of_stdout();

// Terminal shows pages on the terminal of stdout while it lives, and reads single keys from stdin. Its end restores the
// screen and the mode of the terminal.
class Terminal {
 public:
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  static bool is_there();  // whether stdout is a terminal
  // Shows the lines from the top of the screen.
  void show(const std::vector<std::string>& lines);
  // Waits for a key. Returns nothing at `until`, after a change of the window's size, and if stop_fd is readable.
  std::optional<char> wait_key(std::chrono::steady_clock::time_point until, int stop_fd);

 private:
  std::optional<termios> before_;  // the mode of stdin, if that is a terminal
  bool has_input_ = true;
};

}  // namespace weft::apps::top
