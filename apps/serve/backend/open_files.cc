#include "apps/serve/backend/open_files.h"

#include <fcntl.h>

#include <utility>

namespace weft::serve {

std::shared_ptr<OpenFile> OpenFiles::find(const FileKey& key, std::shared_ptr<OpenFile> Entry::*which) {
  std::lock_guard lock(mutex_);
  return find_locked(key, which);
}

std::shared_ptr<OpenFile> OpenFiles::find_now(const FileKey& key, std::shared_ptr<OpenFile> Entry::*which) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  return lock ? find_locked(key, which) : nullptr;
}

std::shared_ptr<OpenFile> OpenFiles::find_locked(const FileKey& key, std::shared_ptr<OpenFile> Entry::*which) {
  ended_.settle(order_);
  auto it = files_.find(key);
  if (it == files_.end()) return nullptr;
  order_.touch(it->second.place, ActingFor::now());
  it->second.idle_sweeps = 0;
  return it->second.*which;
}

void OpenFiles::put(const FileKey& key, const std::shared_ptr<OpenFile>& file) {
  std::unique_lock lock(mutex_);
  Entry closed = put_locked(key, file);
  lock.unlock();
  close(std::move(closed));
}

OpenFiles::Entry OpenFiles::put_locked(const FileKey& key, const std::shared_ptr<OpenFile>& file) {
  Entry closed;
  ended_.settle(order_);
  if (!files_.contains(key) && order_.is_full()) closed = evict_locked();
  auto [it, is_new] = files_.try_emplace(key);
  if (is_new) it->second.place = order_.add(key, ActingFor::now());
  // A descriptor that is there already stays: it may hold writes that were not synced.
  if (file->is_readable() && !it->second.reader) it->second.reader = file;
  if (file->is_writable() && !it->second.writer) it->second.writer = file;
  count_locked();
  return closed;
}

// The descriptors close without the lock: a close may take as long as the disk does.
void OpenFiles::close(Entry closed) {
  nfs3::Verf ignored{};
  if (closed.writer && closed.writer->is_dirty()) closed.writer->sync(calls_, false, promise_, ignored);
}

std::shared_ptr<OpenFile> OpenFiles::writer(const FileKey& key) {
  Entry closed;
  std::unique_lock lock(mutex_);
  std::shared_ptr<OpenFile> file = writer_locked(key, closed);
  lock.unlock();
  close(std::move(closed));
  return file;
}

void OpenFiles::on_client_end(const DiskClient& client) {
  ended_.add(client, order_, mutex_);
}

std::size_t OpenFiles::num_holders() const {
  std::lock_guard lock(mutex_);
  return order_.num_holders();
}

// If the file has to be synced first and there is no place for it among the evicted ones, the client, or its address,
// loses a file of its own instead.
OpenFiles::Entry OpenFiles::evict_locked() {
  const DiskClient& client = ActingFor::now();
  FileKey key = order_.next_out();
  const bool needs_sync = may_lose_writes(files_.at(key));
  const bool stays_open = needs_sync && evicted_.add(key, files_.at(key).writer, client.group);
  const FileKey* own = needs_sync && !stays_open ? order_.next_out_of(client) : nullptr;
  if (own != nullptr) key = *own;
  auto node = files_.extract(key);
  Entry& entry = node.mapped();
  order_.remove(entry.place);
  if (stays_open) entry.writer.reset();
  count_locked();
  return std::move(entry);
}

// Whether a close without a sync may lose the report of a failed write. A thread that has the file may still write it.
bool OpenFiles::may_lose_writes(const Entry& entry) {
  const long own = entry.reader == entry.writer ? 2 : 1;
  return entry.writer && (entry.writer->is_dirty() || entry.writer.use_count() > own);
}

// An evicted file that is used again is an open file again.
std::shared_ptr<OpenFile> OpenFiles::writer_locked(const FileKey& key, Entry& closed) {
  if (auto file = find_locked(key, &Entry::writer)) return file;
  std::shared_ptr<OpenFile> file = evicted_.take(key);
  if (!file) return nullptr;
  closed = put_locked(key, file);
  count_locked();
  return file;
}

void OpenFiles::count_locked() {
  size_.store(files_.size() + evicted_.size(), std::memory_order_relaxed);
  num_waiting_.store(evicted_.num_waiting(), std::memory_order_relaxed);
}

void OpenFiles::sync_evicted() {
  nfs3::Verf ignored{};
  std::unique_lock lock(mutex_);
  while (auto next = evicted_.begin_sync()) {
    count_locked();
    lock.unlock();
    // The sync runs while the file can still be found: a COMMIT that comes now waits for it and sees its outcome.
    next->second->sync(calls_, false, promise_, ignored);
    lock.lock();
    evicted_.end_sync(*next);
    count_locked();
    lock.unlock();
    next.reset();  // a close may take as long as the disk does
    lock.lock();
  }
}

Outcome<std::shared_ptr<OpenFile>> OpenFiles::for_read(const Node& node) {
  if (auto file = find(node.key, &Entry::reader)) return file;
  Outcome<Fd> fd = reopen(node.path_fd(), O_RDONLY);
  if (!fd) return fd.error();
  auto file = std::make_shared<OpenFile>(std::move(fd.value()), true, false, calls_);
  put(node.key, file);
  return file;
}

Outcome<std::shared_ptr<OpenFile>> OpenFiles::for_write(const Node& node) {
  if (auto file = writer(node.key)) return file;
  bool is_readable = true;
  Outcome<Fd> fd = reopen(node.path_fd(), O_RDWR);
  if (!fd && fd.error() == Errno{EACCES}) {
    is_readable = false;
    fd = reopen(node.path_fd(), O_WRONLY);
  }
  if (!fd) return fd.error();
  auto file = std::make_shared<OpenFile>(std::move(fd.value()), is_readable, true, calls_);
  put(node.key, file);
  // Two threads may open a file at once. Both use the descriptor that the cache kept: writes and syncs of a file share
  // one.
  if (auto kept = writer(node.key)) return kept;
  return file;
}

std::shared_ptr<OpenFile> OpenFiles::any_open(const FileKey& key) {
  if (auto file = writer(key)) return file;
  return find(key, &Entry::reader);
}

void OpenFiles::insert(const FileKey& key, Fd fd) {
  put(key, std::make_shared<OpenFile>(std::move(fd), true, true, calls_));
}

void OpenFiles::erase(const FileKey& key) {
  // The descriptors close after the lock is released.
  Entry erased;
  std::shared_ptr<OpenFile> evicted;
  std::lock_guard lock(mutex_);
  evicted = evicted_.take(key);
  count_locked();
  auto it = files_.find(key);
  if (it == files_.end()) return;
  order_.remove(it->second.place);
  erased = std::move(files_.extract(it).mapped());
  count_locked();
}

std::vector<FileKey> OpenFiles::count_sweep() {
  std::vector<FileKey> out;
  std::lock_guard lock(mutex_);
  evicted_.retry();
  count_locked();
  out.reserve(files_.size());
  for (auto& [key, entry] : files_) {
    ++entry.idle_sweeps;
    out.push_back(key);
  }
  return out;
}

std::optional<OpenFiles::Counted> OpenFiles::counted(const FileKey& key) const {
  std::lock_guard lock(mutex_);
  const auto it = files_.find(key);
  if (it == files_.end()) return std::nullopt;
  return Counted{it->second.reader, it->second.writer, it->second.idle_sweeps};
}

void OpenFiles::sweep() {
  for (const FileKey& key : count_sweep()) sweep_file(key);
}

void OpenFiles::sweep_file(const FileKey& key) {
  const std::optional<Counted> file = counted(key);
  if (!file) return;
  const Outcome<FileStat> st = stat_fd((file->writer ? file->writer : file->reader)->fd());
  if (st && st->nlink == 0) return erase(key);
  if (file->idle_sweeps < kIdleSweeps) return;
  if (file->writer) {
    if (file->writer->is_needed_for_writing() && file->idle_sweeps < kNeededSweeps) return;
    // The sync runs while the file can still be found: a COMMIT that comes now waits for it and sees its outcome.
    nfs3::Verf ignored{};
    if (file->writer->is_dirty()) file->writer->sync(calls_, false, promise_, ignored);
  }
  close_idle(key, *file);
}

// Takes out a file that was neither used nor written since it was counted. The caller's `idle` holds it until the lock
// is released, and closes it.
void OpenFiles::close_idle(const FileKey& key, const Counted& idle) {
  // The entry and `idle` each hold the file once, or twice if one descriptor serves reading and writing.
  const bool is_shared = idle.reader == idle.writer;
  const auto is_free = [&](const std::shared_ptr<OpenFile>& file) {
    return !file || (file.use_count() == (is_shared ? 4 : 2) && !file->is_dirty());
  };
  std::lock_guard lock(mutex_);
  const auto it = files_.find(key);
  if (it == files_.end() || it->second.idle_sweeps < idle.idle_sweeps) return;
  if (it->second.reader != idle.reader || it->second.writer != idle.writer) return;
  if (!is_free(idle.reader) || !is_free(idle.writer)) return;
  order_.remove(it->second.place);
  files_.erase(it);
  count_locked();
}

}  // namespace weft::serve
