#include "verbs-shim/ibv/windows.h"

#include <algorithm>

#include "verbs-shim/ibv/pd.h"

namespace weft::verbs::ibv {

void WindowTable::on_bound(IbvMw& mw, IbvMr& mr, std::uint32_t rkey) {
  const std::lock_guard lock(mutex_);
  std::erase_if(bound_, [&](const auto& item) { return item.second.mw == &mw; });
  std::erase_if(free_, [&](const auto& item) { return item.second == &mw; });
  bound_[rkey] = {&mw, &mr};
}

void WindowTable::on_invalidated(std::uint32_t rkey) {
  const std::lock_guard lock(mutex_);
  const auto found = bound_.find(rkey);
  if (found == bound_.end()) return;
  free_[rkey] = found->second.mw;
  bound_.erase(found);
}

bool WindowTable::is_free(std::uint32_t rkey) const {
  const std::lock_guard lock(mutex_);
  return free_.contains(rkey);
}

void WindowTable::on_destroyed(IbvMw& mw) {
  const std::lock_guard lock(mutex_);
  std::erase_if(bound_, [&](const auto& item) { return item.second.mw == &mw; });
  std::erase_if(free_, [&](const auto& item) { return item.second == &mw; });
}

std::size_t WindowTable::num_windows(const IbvMr& mr) const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(bound_.begin(), bound_.end(), [&](const auto& item) { return item.second.mr == &mr; }));
}

void WindowTable::release(IbvMr& mr) {
  const std::lock_guard lock(mutex_);
  for (auto& [rkey, bound] : bound_) {
    if (bound.mr == &mr) bound.mw->replace();
  }
  std::erase_if(bound_, [&](const auto& item) { return item.second.mr == &mr; });
}

}  // namespace weft::verbs::ibv
