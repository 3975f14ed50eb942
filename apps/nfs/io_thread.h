#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

namespace weft::nfs {

// IoThread runs blocking local file operations one after the other, in the order they were posted, so that a slow disk
// or pipe never keeps the connection waiting. post(), poll() and fd() are for the thread that made it.
class IoThread {
 public:
  // A job returns 0 or more, or a negative errno value. It ends soon after stopping() became true.
  using Job = std::function<std::int64_t()>;

  struct Done {
    std::uint32_t tag = 0;
    std::int64_t result = 0;
  };

  IoThread();
  // Waits for the running job, interrupts its system call if necessary, and drops the jobs behind it.
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  void post(std::uint32_t tag, Job job);
  // The next finished job, in order.
  std::optional<Done> poll();
  // Readable while poll() has something to return.
  int fd() const { return fd_; }
  // discard drops the waiting jobs, interrupts the running job, and forgets the finished ones. Afterwards no job runs.
  void discard();
  // Any thread. When it is true, a job that would start a further system call gives up (-ECANCELED) instead.
  bool stopping() const;

 private:
  void run();
  void interrupt_and_wait(std::unique_lock<std::mutex>& lock);

  struct Posted {
    std::uint32_t tag = 0;
    Job job;
  };

  int fd_ = -1;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Posted> posted_;
  std::deque<Done> done_;
  bool running_ = false;
  bool discarding_ = false;
  bool ended_ = false;
  std::thread thread_;
};

// read_fully reads from fd until `out` is full or the end came: the number of octets, or a negative errno value.
std::int64_t read_fully(int fd, std::span<std::uint8_t> out, const IoThread& thread);
// write_fully writes all of `in`: 0 or a negative errno value.
std::int64_t write_fully(int fd, std::span<const std::uint8_t> in, const IoThread& thread);

}  // namespace weft::nfs
