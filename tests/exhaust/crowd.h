#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "tests/exhaust/attack.h"

namespace weft::exhaust {

// Crowd makes the connections of an attack and does what they do. One thread.
class Crowd {
 public:
  // The connections come from these addresses of 127.0.0.0/8 in turn. `what` and `done` outlive the Crowd.
  Crowd(const Attack& what, const sockaddr_in& server, std::vector<std::string> addresses, Done& done);
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  // connect_one makes one more connection. If there are as many as the attack has, it is made instead of the oldest
  // one; or not at all, if the attack does not replace its connections. Returns whether it was made.
  bool connect_one();

  // turn handles the events of the connections. Without any it waits for one, at most wait_ms milliseconds. Returns the
  // number of events.
  std::size_t turn(int wait_ms);

 private:
  class Connection;
  const Attack& attack_;
  const sockaddr_in server_;
  const std::vector<std::string> addresses_;
  Done& done_;
  const Fd epoll_;
  std::size_t next_ = 0;
  std::deque<std::unique_ptr<Connection>> open_;
};

}  // namespace weft::exhaust
