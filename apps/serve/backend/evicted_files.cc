#include "apps/serve/backend/evicted_files.h"

#include <utility>

namespace weft::serve {

bool EvictedFiles::add(const FileKey& key, std::shared_ptr<OpenFile> file, const std::string& address) {
  if (files_.contains(key)) return false;
  Ledger::Client& client = addresses_[address];
  if (!client) client = places_.enter(address);
  Lease place = client.take(1);
  if (!place) return false;
  files_.try_emplace(key, File{std::move(file), std::move(place), address});
  return true;
}

std::shared_ptr<OpenFile> EvictedFiles::find(const FileKey& key) const {
  const auto it = files_.find(key);
  return it == files_.end() ? nullptr : it->second.open;
}

std::shared_ptr<OpenFile> EvictedFiles::take(const FileKey& key) {
  auto node = files_.extract(key);
  if (node.empty()) return nullptr;
  File& file = node.mapped();
  file.place.end();
  if (places_.held_by(file.address) == 0) addresses_.erase(file.address);
  return std::move(file.open);
}

std::vector<FileKey> EvictedFiles::keys() const {
  std::vector<FileKey> keys;
  keys.reserve(files_.size());
  for (const auto& [key, file] : files_) keys.push_back(key);
  return keys;
}

}  // namespace weft::serve
