#include "apps/serve/export/path_index.h"

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <unordered_set>

namespace weft::serve {
namespace {

// The log is rewritten when most of its records are dead. It happens in steps, since all that look for a file wait for
// the thread that has the index: each record that is appended copies some files.
constexpr std::size_t kLogSlack = 65536;
constexpr std::size_t kCopiedPerRecord = 16;

// A file with one name takes one place. Its other names take one place more for every 128 octets, and each of them
// counts 96 octets beside its text.
constexpr std::size_t kOctetsOfPlace = 128, kOctetsOfName = 96;

}  // namespace

PathIndex::PathIndex(const FileKey& root, std::size_t max_places, std::unique_ptr<IndexLog> log)
    : root_(root), max_places_(std::max<std::size_t>(max_places, 16)), order_(max_places_), log_(std::move(log)) {
  if (!log_) return;
  std::unique_ptr<IndexLog> source = std::move(log_);  // replayed records are not written again
  source->replay([this](const IndexRecord& record) {
    switch (record.op) {
      case IndexRecord::Op::kLearn: insert_locked(record.file, record.parent, record.name); break;
      case IndexRecord::Op::kForgetName: drop_name_locked(record.file, record.parent, record.name); break;
      case IndexRecord::Op::kForget: erase_locked(record.file); break;
    }
  });
  log_ = std::move(source);
  if (log_->num_records() <= files_.size()) return;
  std::lock_guard lock(mutex_);
  begin_rewrite_locked();
  if (rewriting_) rewrite_some_locked(files_.size());
}

// Oldest first, so that replaying ends with the same order.
void PathIndex::begin_rewrite_locked() {
  no_rewrite_before_ = log_->num_records() + kLogSlack;
  if (!log_->begin_rewrite()) return;
  Rewriting& rewriting = rewriting_.emplace(Rewriting{.keys = {}, .next = 0});
  rewriting.keys.reserve(files_.size());
  order_.visit_oldest_first([&](const FileKey& key) { rewriting.keys.push_back(key); });
}

void PathIndex::rewrite_some_locked(std::size_t num_files) {
  Rewriting& rewriting = *rewriting_;
  std::vector<IndexRecord> records;
  const std::size_t end = std::min(rewriting.keys.size(), rewriting.next + num_files);
  for (; rewriting.next != end; ++rewriting.next) {
    const FileKey& key = rewriting.keys[rewriting.next];
    const auto it = files_.find(key);
    if (it == files_.end()) continue;
    for (const Name& name : it->second.names | std::views::reverse)
      records.push_back({IndexRecord::Op::kLearn, key, name.parent, name.name});
  }
  const bool is_copied = log_->copy(records);
  if (is_copied && end != rewriting.keys.size()) return;
  rewriting_.reset();
  if (is_copied && log_->end_rewrite()) no_rewrite_before_ = 2 * log_->num_records() + kLogSlack;
}

void PathIndex::append_locked(const IndexRecord& record) {
  if (!log_) return;
  log_->append(record);
  const std::size_t limit = std::max(2 * files_.size() + kLogSlack, no_rewrite_before_);
  if (!rewriting_ && log_->num_records() > limit) begin_rewrite_locked();
  if (rewriting_) rewrite_some_locked(kCopiedPerRecord);
}

void PathIndex::touch_locked(Entry& entry) {
  order_.touch(entry.place, ActingFor::now());
}

void PathIndex::erase_locked(const FileKey& file) {
  const auto it = files_.find(file);
  if (it == files_.end()) return;
  order_.remove(it->second.place);
  files_.erase(it);
}

void PathIndex::on_client_end(const DiskClient& client) {
  ended_.add(client, order_, mutex_);
}

std::size_t PathIndex::Entry::num_places() const {
  std::size_t octets = 0, longest = 0;
  for (const Name& name : names) {
    const std::size_t len = kOctetsOfName + name.name.size();
    octets += len;
    longest = std::max(longest, len);
  }
  return 1 + (octets - longest) / kOctetsOfPlace;
}

void PathIndex::evict_for_locked(std::size_t num_places) {
  while (order_.size() != 0 && order_.size() + num_places > max_places_) erase_locked(FileKey(order_.next_out()));
}

bool PathIndex::insert_locked(const FileKey& file, const FileKey& parent, std::string_view name) {
  const DiskClient& client = ActingFor::now();
  if (!files_.contains(file)) evict_for_locked(1);
  auto [it, is_new] = files_.try_emplace(file);
  Entry& entry = it->second;
  if (is_new) {
    entry.place = order_.add(file, client);
  } else {
    touch_locked(entry);
    auto known = std::find_if(entry.names.begin(), entry.names.end(),
                              [&](const Name& n) { return n.parent == parent && n.name == name; });
    if (known != entry.names.end()) {
      std::rotate(entry.names.begin(), known, known + 1);
      return false;
    }
  }
  if (entry.names.size() == kMaxNames) entry.names.pop_back();
  entry.names.insert(entry.names.begin(), Name{parent, std::string(name)});
  // A client does not make another client's file take more places. The new name replaces older ones then.
  const bool is_own = order_.is_of(entry.place, client);
  const std::size_t most = is_own ? SIZE_MAX : order_.places_of(entry.place);
  while (entry.num_places() > most) entry.names.pop_back();
  order_.resize(entry.place, entry.num_places());
  evict_for_locked(0);
  return true;
}

void PathIndex::drop_name_locked(const FileKey& file, const FileKey& parent, std::string_view name) {
  auto it = files_.find(file);
  if (it == files_.end()) return;
  std::erase_if(it->second.names, [&](const Name& n) { return n.parent == parent && n.name == name; });
  order_.resize(it->second.place, it->second.num_places());
}

void PathIndex::learn(const FileKey& file, const FileKey& parent, std::string_view name) {
  if (file == root_) return;
  std::lock_guard lock(mutex_);
  ended_.settle(order_);
  if (insert_locked(file, parent, name)) append_locked({IndexRecord::Op::kLearn, file, parent, std::string(name)});
}

void PathIndex::forget_name(const FileKey& file, const FileKey& parent, std::string_view name) {
  std::lock_guard lock(mutex_);
  drop_name_locked(file, parent, name);
  append_locked({IndexRecord::Op::kForgetName, file, parent, std::string(name)});
}

void PathIndex::forget(const FileKey& file) {
  std::lock_guard lock(mutex_);
  if (!files_.contains(file)) return;
  erase_locked(file);
  append_locked({IndexRecord::Op::kForget, file, {}, {}});
}

// Stale entries can form a ring: two directories that changed places.
bool PathIndex::is_ring_locked(const FileKey& dir) const {
  std::unordered_set<FileKey, FileKeyHash> seen;
  FileKey at = dir;
  while (!(at == root_) && seen.size() <= kMaxDepth) {
    auto it = files_.find(at);
    if (it == files_.end() || it->second.names.empty()) return false;
    if (!seen.insert(at).second) return true;
    at = it->second.names.front().parent;
  }
  return false;
}

PathIndex::Way PathIndex::candidate_locked(const Name& name, Candidate& out) {
  std::vector<const std::string*> parts = {&name.name};
  FileKey at = name.parent;
  while (!(at == root_)) {
    auto it = files_.find(at);
    if (it == files_.end() || it->second.names.empty()) return Way::kUnknown;
    if (parts.size() >= kMaxDepth) return is_ring_locked(name.parent) ? Way::kUnknown : Way::kTooDeep;
    touch_locked(it->second);
    parts.push_back(&it->second.names.front().name);
    at = it->second.names.front().parent;
  }
  out = {.path = {}, .depth = parts.size(), .name = name};
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!out.path.empty()) out.path += '/';
    out.path += **part;
  }
  return Way::kFound;
}

std::vector<PathIndex::Candidate> PathIndex::paths(const FileKey& file, bool* too_deep) {
  std::lock_guard lock(mutex_);
  ended_.settle(order_);
  std::vector<Candidate> out;
  auto it = files_.find(file);
  if (it == files_.end()) return out;
  touch_locked(it->second);
  for (const Name& name : it->second.names) {
    Candidate candidate;
    const Way way = candidate_locked(name, candidate);
    if (way == Way::kFound) out.push_back(std::move(candidate));
    if (way == Way::kTooDeep && too_deep != nullptr) *too_deep = true;
  }
  return out;
}

std::optional<PathIndex::Candidate> PathIndex::path_now(const FileKey& file) {
  // The thread that holds the lock may be writing the log.
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return std::nullopt;
  ended_.settle(order_);
  auto it = files_.find(file);
  if (it == files_.end() || it->second.names.empty()) return std::nullopt;
  touch_locked(it->second);
  Candidate candidate;
  if (candidate_locked(it->second.names.front(), candidate) != Way::kFound) return std::nullopt;
  return candidate;
}

std::optional<FileKey> PathIndex::twin(const FileKey& file, const FileKey& parent, std::string_view name) const {
  std::lock_guard lock(mutex_);
  std::optional<FileKey> oldest;
  const std::size_t bucket = files_.bucket(file);
  for (auto it = files_.begin(bucket); it != files_.end(bucket); ++it) {
    const auto& [key, entry] = *it;
    if (!key.has_inode_of(file) || key == file || (oldest && oldest->btime_ns < key.btime_ns)) continue;
    if (std::any_of(entry.names.begin(), entry.names.end(),
                    [&](const Name& n) { return n.parent.has_inode_of(parent) && n.name == name; }))
      oldest = key;
  }
  return oldest;
}

std::vector<FileKey> PathIndex::twins(const FileKey& file) const {
  std::lock_guard lock(mutex_);
  std::vector<FileKey> out;
  const std::size_t bucket = files_.bucket(file);
  for (auto it = files_.begin(bucket); it != files_.end(bucket); ++it) {
    if (it->first.has_inode_of(file) && !(it->first == file)) out.push_back(it->first);
  }
  return out;
}

std::vector<PathIndex::Name> PathIndex::names(const FileKey& file) const {
  std::lock_guard lock(mutex_);
  auto it = files_.find(file);
  return it == files_.end() ? std::vector<Name>() : it->second.names;
}

std::size_t PathIndex::num_files() const {
  std::lock_guard lock(mutex_);
  return files_.size();
}

std::size_t PathIndex::num_holders() const {
  std::lock_guard lock(mutex_);
  return order_.num_holders();
}

}  // namespace weft::serve
