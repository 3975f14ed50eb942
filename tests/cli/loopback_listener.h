#pragma once

#include <cstdint>

namespace weft::testing {

// LoopbackListener is a listening TCP socket on 127.0.0.1, closed at its end.
class LoopbackListener {
 public:
  // port: 0 takes a free port. fd() is -1 where another socket has the port that was asked for.
  explicit LoopbackListener(std::uint16_t port = 0);
  ~LoopbackListener();
  LoopbackListener(const LoopbackListener&) = delete;
  LoopbackListener& operator=(const LoopbackListener&) = delete;

  int fd() const { return fd_; }
  std::uint16_t port() const { return port_; }

 private:
  int fd_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace weft::testing
