#include "apps/serve/backend/shared_syncs.h"

#include <utility>

namespace weft::serve {

int SharedSyncs::sync(const FileKey& key, const std::function<int()>& run, const std::function<void()>& meanwhile) {
  std::promise<int> end;
  std::unique_lock lock(mutex_);
  File& file = files_[key];
  ++file.num_waiting;
  if (!file.next.valid()) {
    file.next = end.get_future().share();
    const Round before = file.running;
    const Round mine = file.next;
    lock.unlock();
    // The round comes first: other threads wait for it.
    lead(key, before, std::move(end), run);
    if (meanwhile) meanwhile();
    return error_of(mine, before);
  }
  const Round mine = file.next, before = file.running;
  lock.unlock();
  if (meanwhile) meanwhile();
  return error_of(mine, before);
}

// The round before ran while this one waited. Its loss may be of changes that this round is to make stable, and the
// kernel does not report it again.
int SharedSyncs::error_of(const Round& mine, const Round& before) {
  const int error = mine.get();
  return error != 0 || !before.valid() ? error : before.get();
}

void SharedSyncs::lead(const FileKey& key, const Round& before, std::promise<int> end,
                       const std::function<int()>& run) {
  if (before.valid()) before.wait();
  {
    const std::lock_guard lock(mutex_);
    File& file = files_[key];
    file.running = std::exchange(file.next, {});
    file.num_waiting = 0;
  }
  const int error = run();
  {
    const std::lock_guard lock(mutex_);
    if (!files_[key].next.valid()) files_.erase(key);
  }
  end.set_value(error);
}

std::size_t SharedSyncs::size() const {
  const std::lock_guard lock(mutex_);
  return files_.size();
}

std::size_t SharedSyncs::num_waiting(const FileKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = files_.find(key);
  return it == files_.end() ? 0 : it->second.num_waiting;
}

}  // namespace weft::serve
