#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "apps/serve/export/file_stat.h"

namespace weft::serve {

// SharedSyncs lets threads that changed the same file or directory share one fsync(2): an fsync(2) covers every change
// that was made before it began. Of the threads that wait for a file, one syncs for all of them. Later threads wait for
// the next round. Any thread.
class SharedSyncs {
 public:
  // sync returns the result of a call of `run` that began after this call did: 0 or an errno value. `run` syncs the
  // file `key`, and may run in place of other threads' functions for the same key. Every thread of a round gets the
  // round's error, because the kernel reports a lost write only once.
  int sync(const FileKey& key, const std::function<int()>& run);

  // size: files that are being synced. num_waiting: threads that wait for a sync of `key` that has not begun.
  std::size_t size() const;
  std::size_t num_waiting(const FileKey& key) const;

 private:
  struct Waiter {
    bool done = false;
    int error = 0;
  };
  struct File {
    bool is_running = false;
    std::size_t num_users = 0;
    std::vector<Waiter*> waiting;  // for a round that has not begun
    std::condition_variable round_ended;
  };

  mutable std::mutex mutex_;
  std::unordered_map<FileKey, File, FileKeyHash> files_;
};

}  // namespace weft::serve
