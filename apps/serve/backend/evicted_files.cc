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
  num_waiting_ -= file.is_waiting;
  file.place.end();
  if (places_.held_by(file.address) == 0) addresses_.erase(file.address);
  return std::move(file.open);
}

std::shared_ptr<OpenFile> EvictedFiles::find(const FileKey& key) const {
  const auto it = files_.find(key);
  return it == files_.end() ? nullptr : it->second.open;
}

std::optional<EvictedFiles::Named> EvictedFiles::begin_sync() {
  const auto it = std::ranges::find_if(files_, [](const auto& one) { return one.second.is_waiting; });
  if (it == files_.end()) return std::nullopt;
  it->second.is_waiting = false;
  --num_waiting_;
  return Named(it->first, it->second.open);
}

void EvictedFiles::retry() {
  for (auto& [key, file] : files_) file.is_waiting = true;
  num_waiting_ = files_.size();
}

}  // namespace weft::serve
