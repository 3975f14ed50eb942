#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "apps/serve/backend/disk_calls.h"
#include "apps/serve/backend/write_promise.h"
#include "apps/serve/export/shared_order.h"
#include "apps/serve/export/tree.h"
#include "base/bytes.h"
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

// OpenFiles keeps the most recently used files open. Opening costs time, and three things live with the descriptor: the
// kernel's read-ahead, its report of lost writes, and the right to write a file that was created read-only. But a
// program that is open for writing cannot be executed, and a removed file keeps its space while it is open. So sweep
// closes idle files. If too many are open, the client that holds most of them loses the one that it used longest ago
// (SharedOrder). ActingFor says for which client a thread opens a file. Any thread.
class OpenFiles {
 public:
  OpenFiles(std::size_t max_open, const DiskCalls& calls, WritePromise& promise)
      : order_(std::max<std::size_t>(max_open, 1)), calls_(calls), promise_(promise) {}

  // The file of a node that was just resolved, open for reading or for writing.
  Outcome<std::shared_ptr<OpenFile>> for_read(const Node& node);
  Outcome<std::shared_ptr<OpenFile>> for_write(const Node& node);
  // A file that is open already, for writing rather than reading; null for none.
  std::shared_ptr<OpenFile> any_open(const FileKey& key);
  // A file that is open already and can be had without waiting for another thread; null for none.
  std::shared_ptr<OpenFile> reader_now(const FileKey& key) { return find_now(key, &Entry::reader); }
  std::shared_ptr<OpenFile> writer_now(const FileKey& key) { return find_now(key, &Entry::writer); }

  // insert adds a descriptor for reading and writing that came from creating the file.
  void insert(const FileKey& key, Fd fd);
  void erase(const FileKey& key);
  // The client has ended, and no thread acts for it any more: its files become its address's. Waits for no thread.
  void on_client_end(const DiskClient& client);
  // The number of clients that have files open, and of addresses that have files of clients that ended.
  std::size_t num_holders() const;
  // A thread may ask for size without waiting for another thread.
  std::size_t size() const { return size_.load(std::memory_order_relaxed); }

  // sweep closes files without a name, and files that had no use for kIdleSweeps sweeps. A file that is needed for
  // writing stays for kNeededSweeps. sweep syncs a file before it closes it. Blocks on the disk; one call at a time.
  void sweep();
  static constexpr unsigned kIdleSweeps = 3;
  // Clients keep their own writes in memory for half a minute at most.
  static constexpr unsigned kNeededSweeps = 60;

 private:
  struct Entry {
    std::shared_ptr<OpenFile> reader, writer;
    SharedOrder<FileKey>::Place place;
    unsigned idle_sweeps = 0;  // since it was used
  };
  struct Idle {
    FileKey key;
    std::shared_ptr<OpenFile> reader, writer;
    unsigned idle_sweeps = 0;
  };
  std::vector<Idle> count_sweep();
  void close_idle(const std::vector<Idle>& idle);
  std::shared_ptr<OpenFile> find(const FileKey& key, std::shared_ptr<OpenFile> Entry::*which);
  std::shared_ptr<OpenFile> find_now(const FileKey& key, std::shared_ptr<OpenFile> Entry::*which);
  std::shared_ptr<OpenFile> find_locked(const FileKey& key, std::shared_ptr<OpenFile> Entry::*which);
  void put(const FileKey& key, const std::shared_ptr<OpenFile>& file);
  // Takes a file out to make room. Returns a file that the caller must sync, without the lock.
  Entry evict_locked();

  SharedOrder<FileKey> order_;
  ClientEnds ended_;  // not yet in order_
  const DiskCalls& calls_;
  WritePromise& promise_;
  mutable std::mutex mutex_;
  std::unordered_map<FileKey, Entry, FileKeyHash> files_;
  std::atomic<std::size_t> size_{0};
};

}  // namespace weft::serve
