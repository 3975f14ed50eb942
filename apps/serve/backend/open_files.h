#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "apps/serve/backend/disk_calls.h"
#include "apps/serve/backend/write_promise.h"
#include "apps/serve/export/tree.h"
#include "rpcrdma/bytes.h"

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

  // pread_now and pwrite_now: as pread(2) and pwrite(2), but rather than wait for a device they fail or stop short.
  ssize_t pread_now(const DiskCalls& calls, rpcrdma::MutBytes into, off_t offset) const;
  ssize_t pwrite_now(const DiskCalls& calls, rpcrdma::ConstBytes data, off_t offset) const;

  // Until when the file is taken to lie in the export still, because a path beneath the root was found to lead to it.
  void set_here_until(DiskCalls::TimePoint when) { here_until_.store(when, std::memory_order_relaxed); }
  DiskCalls::TimePoint here_until() const { return here_until_.load(std::memory_order_relaxed); }

  // To be called before octets are written that nobody synced.
  void mark_dirty() {
    was_written_.store(true);
    is_dirty_.store(true);
  }
  bool is_dirty() const { return is_dirty_.load(); }
  // Whether more writing is to be expected for which this descriptor is needed: the mode forbids to open the file
  // again, and what its creator wrote has not been synced yet, or nothing has come so far.
  bool is_needed_for_writing() const;

  // sync makes what was written stable: 0, or an errno, and then the promise is broken: the kernel tells of a loss only
  // once. verf is the promise as of then. One at a time for a file, so that nobody who came second is told that all is
  // well.
  int sync(const DiskCalls& calls, bool data_only, WritePromise& promise, nfs3::Verf& verf);

 private:
  const Fd fd_;
  const bool is_readable_;
  const bool is_writable_;
  const bool lies_in_memory_;
  std::atomic<DiskCalls::TimePoint> here_until_{DiskCalls::TimePoint::min()};
  std::atomic<bool> is_dirty_{false};
  std::atomic<bool> was_written_{false};
  std::mutex sync_mutex_;
};

// OpenFiles keeps the files that were used last open: opening costs, and the kernel's read-ahead, its report of lost
// writes, and the right to write a file that was created read-only all live with the descriptor. But a program that is
// open for writing cannot be executed, and a removed file keeps its space while it is open: so sweep closes what lies
// idle. Any thread.
class OpenFiles {
 public:
  OpenFiles(std::size_t max_open, const DiskCalls& calls, WritePromise& promise)
      : max_open_(max_open), calls_(calls), promise_(promise) {}

  // The file of a node that was just resolved, open for reading or for writing.
  Outcome<std::shared_ptr<OpenFile>> for_read(const Node& node);
  Outcome<std::shared_ptr<OpenFile>> for_write(const Node& node);
  // One that is open already, for writing rather than reading; null for none.
  std::shared_ptr<OpenFile> any_open(const FileKey& key);
  // One that is open already and can be had without waiting for another thread; null for none.
  std::shared_ptr<OpenFile> reader_now(const FileKey& key) { return find_now(key, &Entry::reader); }
  std::shared_ptr<OpenFile> writer_now(const FileKey& key) { return find_now(key, &Entry::writer); }

  // insert: a descriptor for reading and writing, from creating the file.
  void insert(const FileKey& key, Fd fd);
  void erase(const FileKey& key);
  // size may be asked for without waiting for another thread.
  std::size_t size() const { return size_.load(std::memory_order_relaxed); }

  // sweep closes files without a name, and files without a use for kIdleSweeps sweeps. Files that are needed for
  // writing stay for kNeededSweeps. A file is synced before it is closed. Blocks on the disk; one call at a time.
  void sweep();
  static constexpr unsigned kIdleSweeps = 3;
  // Clients keep what was written in memory for half a minute at most.
  static constexpr unsigned kNeededSweeps = 60;

 private:
  struct Entry {
    std::shared_ptr<OpenFile> reader, writer;
    std::list<FileKey>::iterator recent;
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
  // Takes the oldest out; returns those that must be synced, by the caller and without the lock.
  std::shared_ptr<OpenFile> evict_locked();

  const std::size_t max_open_;
  const DiskCalls& calls_;
  WritePromise& promise_;
  mutable std::mutex mutex_;
  std::unordered_map<FileKey, Entry, FileKeyHash> files_;
  std::list<FileKey> recent_;
  std::atomic<std::size_t> size_{0};
};

}  // namespace weft::serve
