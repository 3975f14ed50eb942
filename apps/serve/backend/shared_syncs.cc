#include "apps/serve/backend/shared_syncs.h"

#include <utility>

namespace weft::serve {

int SharedSyncs::sync(const FileKey& key, const std::function<int()>& run) {
  std::unique_lock lock(mutex_);
  File& file = files_[key];  // stays where it is while it has users
  ++file.num_users;
  Waiter me;
  file.waiting.push_back(&me);
  while (!me.done) {
    if (file.is_running) {
      file.round_ended.wait(lock);
      continue;
    }
    file.is_running = true;
    const std::vector<Waiter*> round = std::exchange(file.waiting, {});
    lock.unlock();
    const int error = run();
    lock.lock();
    for (Waiter* waiter : round) *waiter = {.done = true, .error = error};
    file.is_running = false;
    file.round_ended.notify_all();
  }
  if (--file.num_users == 0) files_.erase(key);
  return me.error;
}

std::size_t SharedSyncs::size() const {
  const std::lock_guard lock(mutex_);
  return files_.size();
}

std::size_t SharedSyncs::num_waiting(const FileKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = files_.find(key);
  return it == files_.end() ? 0 : it->second.waiting.size();
}

}  // namespace weft::serve
