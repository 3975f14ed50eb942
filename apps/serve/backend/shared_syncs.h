#pragma once

#include <cstddef>
#include <functional>
#include <future>
#include <mutex>
#include <unordered_map>

#include "apps/serve/export/file_stat.h"

namespace weft::serve {

// SharedSyncs lets threads that changed the same file or directory share one fsync(2): an fsync(2) covers every change
// that was made before it began. Threads that come while a sync runs form the next round. The first of them leads the
// round: it syncs for all of them once the sync under way has ended. Any thread.
class SharedSyncs {
 public:
  // sync returns the result of a call of `run` that began after this call did: 0 or an errno value. `run` syncs the
  // file `key`, and may run in place of other threads' functions for the same key. Every thread of a round gets the
  // round's error, because the kernel reports a lost write only once, or else the error of the round before.
  // `meanwhile`, unless null, runs once before sync returns: beside the sync where another thread leads the round.
  int sync(const FileKey& key, const std::function<int()>& run, const std::function<void()>& meanwhile = nullptr);

  // size: files that are being synced. num_waiting: threads that wait for a sync of `key` that has not begun.
  std::size_t size() const;
  std::size_t num_waiting(const FileKey& key) const;

 private:
  // The end of a round, with the result of its `run`. Each thread waits for its own round alone: one mutex for all
  // would wake every thread at every end.
  using Round = std::shared_future<int>;
  struct File {
    Round running;                // or one that has ended already
    Round next;                   // invalid: the next thread begins a round
    std::size_t num_waiting = 0;  // threads of `next`
  };

  static int error_of(const Round& mine, const Round& before);
  void lead(const FileKey& key, const Round& before, std::promise<int> end, const std::function<int()>& run);

  mutable std::mutex mutex_;
  std::unordered_map<FileKey, File, FileKeyHash> files_;
};

}  // namespace weft::serve
