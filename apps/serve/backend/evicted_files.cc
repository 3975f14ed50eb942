#include "apps/serve/backend/evicted_files.h"

namespace weft::serve {

bool EvictedFiles::add(const FileKey& key, std::shared_ptr<OpenFile> file, const std::string& address) {
  if (files_.size() == max_files_ || files_.contains(key)) return false;
  Ledger::Client& client = addresses_[address];
  if (!client) client = places_.enter(address);
  Lease place = client.take(1);
  if (!place) return false;
  files_.try_emplace(key, File{std::move(file), std::move(place), address});
  ++num_waiting_;
  return true;
}

std::shared_ptr<OpenFile> EvictedFiles::take(const FileKey& key) {
  auto node = files_.extract(key);
  if (node.empty()) return nullptr;
  File& file = node.mapped();
  num_waiting_ -= file.state == State::kWaits;
  file.place.end();
  if (places_.held_by(file.address) == 0) addresses_.erase(file.address);
  return std::move(file.open);
}

std::shared_ptr<OpenFile> EvictedFiles::find(const FileKey& key) const {
  const auto it = files_.find(key);
  return it == files_.end() ? nullptr : it->second.open;
}

std::optional<EvictedFiles::Named> EvictedFiles::begin_sync() {
  const auto it = std::ranges::find_if(files_, [](const auto& one) { return one.second.state == State::kWaits; });
  if (it == files_.end()) return std::nullopt;
  it->second.state = State::kIsSynced;
  --num_waiting_;
  return Named(it->first, it->second.open);
}

void EvictedFiles::end_sync(const Named& synced) {
  const auto& [key, open] = synced;
  const auto it = files_.find(key);
  if (it == files_.end() || it->second.open != open) return;
  constexpr long kHereAndAtTheWorker = 2;
  const bool may_be_written = open.use_count() > kHereAndAtTheWorker || open->is_dirty();
  if (!may_be_written) {
    take(key);
  } else if (it->second.state == State::kIsSynced) {
    it->second.state = State::kStays;
  }
}

void EvictedFiles::retry() {
  for (auto& [key, file] : files_) {
    if (file.state != State::kStays) continue;
    file.state = State::kWaits;
    ++num_waiting_;
  }
}

}  // namespace weft::serve
