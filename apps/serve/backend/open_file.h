#pragma once

#include <sys/types.h>

#include <atomic>
#include <mutex>
#include <utility>

#include "apps/serve/backend/disk_calls.h"
#include "apps/serve/backend/write_promise.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "base/time.h"

namespace weft::serve {

// OpenFile is one regular file open for READ or WRITE. Any thread.
class OpenFile {
 public:
  OpenFile(Fd fd, bool is_readable, bool is_writable, const DiskCalls& calls)
      : fd_(std::move(fd)),
        is_readable_(is_readable),
        is_writable_(is_writable),
        lies_in_memory_(calls.lies_in_memory(fd_.get())) {}

  int fd() const { return fd_.get(); }
  bool is_readable() const { return is_readable_; }
  bool is_writable() const { return is_writable_; }

  // pread_now and pwrite_now work as pread(2) and pwrite(2), but they fail or stop short rather than wait for a device.
  ssize_t pread_now(const DiskCalls& calls, MutBytes into, off_t offset) const;
  ssize_t pwrite_now(const DiskCalls& calls, ConstBytes data, off_t offset) const;

  // set_here_until sets the time until which the file is assumed to lie in the export: a path beneath the root was
  // found to lead to it.
  void set_here_until(TimePoint when) { here_until_.store(when, std::memory_order_relaxed); }
  TimePoint here_until() const { return here_until_.load(std::memory_order_relaxed); }

  // The caller calls mark_dirty before it writes octets that are not synced yet.
  void mark_dirty() {
    was_written_.store(true);
    is_dirty_.store(true);
  }
  bool is_dirty() const { return is_dirty_.load(); }
  // Whether further writes may come that need this descriptor. That is so when the mode forbids to open the file again,
  // and either the creator's writes are not synced yet or no write has come so far.
  bool is_needed_for_writing() const;

  // sync makes the earlier writes stable: 0 or an errno value. An error breaks the promise, because the kernel reports
  // a loss only once. verf is the promise after that. A file has one sync at a time, so that no later caller misses an
  // error that the earlier one got.
  int sync(const DiskCalls& calls, bool data_only, WritePromise& promise, nfs3::Verf& verf);

 private:
  const Fd fd_;
  const bool is_readable_;
  const bool is_writable_;
  const bool lies_in_memory_;
  std::atomic<TimePoint> here_until_{TimePoint::min()};
  std::atomic<bool> is_dirty_{false};
  std::atomic<bool> was_written_{false};
  std::mutex sync_mutex_;
};

}  // namespace weft::serve
