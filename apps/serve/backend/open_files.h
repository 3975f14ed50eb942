#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "apps/serve/backend/disk_calls.h"
#include "apps/serve/backend/evicted_files.h"
#include "apps/serve/backend/open_file.h"
#include "apps/serve/backend/write_promise.h"
#include "apps/serve/export/shared_order.h"
#include "apps/serve/export/tree.h"

namespace weft::serve {

// OpenFiles keeps the most recently used files open. Opening costs time, and three things live with the descriptor: the
// kernel's read-ahead, its report of lost writes, and the right to write a file that was created read-only. But a
// program that is open for writing cannot be executed, and a removed file keeps its space while it is open. So sweep
// closes idle files. If too many are open, the client that holds most of them loses the one that it used longest ago
// (SharedOrder); if that one has to be synced first, it becomes one of the EvictedFiles. ActingFor says for which
// client a thread opens a file. Any thread.
class OpenFiles {
 public:
  OpenFiles(std::size_t max_open, const DiskCalls& calls, WritePromise& promise)
      : order_(places(max_open)), evicted_(evicted_places(max_open)), calls_(calls), promise_(promise) {}

  // The most descriptors that have a place here: each file may be open twice, for reading and for writing, and an
  // evicted file is open once.
  static constexpr std::size_t num_descriptors(std::size_t max_open) {
    return 2 * places(max_open) + EvictedFiles::all_places(evicted_places(max_open));
  }
  // The most descriptors that one call has open at once without a place here, with the file that it returns: another
  // thread may take the place of a file that is in use. for_write: the file that it opened, the one that another thread
  // opened first and that it uses instead, and both descriptors of a file that lost its place.
  static constexpr std::size_t kDescriptorsOfOpening = 4;
  // erase: both descriptors of the file, and an evicted one.
  static constexpr std::size_t kDescriptorsOfErase = 3;
  // sweep: both descriptors of the file that it looks at, and then erase. sync_evicted has one.
  static constexpr std::size_t kDescriptorsOfSweep = 2 + kDescriptorsOfErase;

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
  // Open files, those that lost their place and are still open included. A thread may ask for size without waiting for
  // another thread.
  std::size_t size() const { return size_.load(std::memory_order_relaxed); }

  // sync_evicted syncs and closes files that lost their place, until none waits. Blocks on the disk; several threads
  // may share the work.
  void sync_evicted();
  // How many of them wait. A thread may ask without waiting for another thread.
  std::size_t num_waiting() const { return num_waiting_.load(std::memory_order_relaxed); }

  // sweep closes files without a name, and files that had no use for kIdleSweeps sweeps. A file that is needed for
  // writing stays for kNeededSweeps. sweep syncs a file before it closes it. It holds one file at a time, because
  // others may lose their place during a sync. Blocks on the disk; one call at a time.
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
  // Counted is a file as a sweep found it.
  struct Counted {
    std::shared_ptr<OpenFile> reader, writer;
    unsigned idle_sweeps = 0;
  };
  static constexpr std::size_t places(std::size_t max_open) { return std::max<std::size_t>(max_open, 1); }
  static constexpr std::size_t evicted_places(std::size_t max_open) { return max_open / 8; }
  // Counts the sweep for each file, and returns their keys.
  std::vector<FileKey> count_sweep();
  std::optional<Counted> counted(const FileKey& key) const;
  void sweep_file(const FileKey& key);
  void close_idle(const FileKey& key, const Counted& idle);
  std::shared_ptr<OpenFile> find(const FileKey& key, std::shared_ptr<OpenFile> Entry::*which);
  std::shared_ptr<OpenFile> find_now(const FileKey& key, std::shared_ptr<OpenFile> Entry::*which);
  std::shared_ptr<OpenFile> find_locked(const FileKey& key, std::shared_ptr<OpenFile> Entry::*which);
  void put(const FileKey& key, const std::shared_ptr<OpenFile>& file);
  // put_locked returns what the caller closes without the lock, and syncs first if it is dirty.
  Entry put_locked(const FileKey& key, const std::shared_ptr<OpenFile>& file);
  void close(Entry closed);
  // Takes a file out to make room. A file that has to be synced stays open if there is a place for it.
  Entry evict_locked();
  static bool may_lose_writes(const Entry& entry);
  // The file if it is open for writing, evicted or not; null for none.
  std::shared_ptr<OpenFile> writer(const FileKey& key);
  std::shared_ptr<OpenFile> writer_locked(const FileKey& key, Entry& closed);
  void count_locked();

  SharedOrder<FileKey> order_;
  ClientEnds ended_;  // not yet in order_
  EvictedFiles evicted_;
  const DiskCalls& calls_;
  WritePromise& promise_;
  mutable std::mutex mutex_;
  std::unordered_map<FileKey, Entry, FileKeyHash> files_;
  std::atomic<std::size_t> size_{0};
  std::atomic<std::size_t> num_waiting_{0};
};

}  // namespace weft::serve
