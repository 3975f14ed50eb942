#pragma once

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"

namespace weft::verbs::ibv {

// Epoll is a descriptor that is readable while one of its members is.
class Epoll {
 public:
  Epoll() : fd_(::epoll_create1(EPOLL_CLOEXEC)) {}
  int fd() const { return fd_.get(); }
  bool add(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    return ::epoll_ctl(fd_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  }
  void remove(int fd) { ::epoll_ctl(fd_.get(), EPOLL_CTL_DEL, fd, nullptr); }

 private:
  Fd fd_;
};

// Flag is an eventfd: readable from raise to lower.
class Flag {
 public:
  Flag() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  int fd() const { return fd_.get(); }
  void raise() {
    eventfd_t one = 1;
    [[maybe_unused]] const auto n = ::write(fd_.get(), &one, sizeof(one));
  }
  void lower() {
    eventfd_t count = 0;
    [[maybe_unused]] const auto n = ::read(fd_.get(), &count, sizeof(count));
  }

 private:
  Fd fd_;
};

inline bool make_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

}  // namespace weft::verbs::ibv
