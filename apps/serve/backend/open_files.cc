#include "apps/serve/backend/open_files.h"

#include <fcntl.h>
#include <unistd.h>

namespace weft::serve {

int OpenFile::sync(const DiskCalls& calls, bool data_only, WritePromise& promise, nfs3::Verf& verf) {
  std::lock_guard lock(sync_mutex_);
  is_dirty_.store(false);
  int error = (data_only ? calls.fdatasync(fd()) : calls.fsync(fd())) == 0 ? 0 : errno;
  if (error != 0) promise.broken();
  verf = promise.verf();
  return error;
}

ssize_t OpenFile::pread_now(const DiskCalls& calls, MutBytes into, off_t offset) const {
  return (lies_in_memory_ ? calls.pread : calls.pread_nowait)(fd(), into.data(), into.size(), offset);
}

ssize_t OpenFile::pwrite_now(const DiskCalls& calls, ConstBytes data, off_t offset) const {
  return (lies_in_memory_ ? calls.pwrite : calls.pwrite_nowait)(fd(), data.data(), data.size(), offset);
}

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
  // Its descriptors close after the lock is released: a close may take as long as the disk does.
  Entry evicted;
  {
    std::lock_guard lock(mutex_);
    ended_.settle(order_);
    if (!files_.contains(key) && order_.is_full()) evicted = evict_locked();
    auto [it, is_new] = files_.try_emplace(key);
    if (is_new) it->second.place = order_.add(key, ActingFor::now());
    // A descriptor that is there already stays: it may hold writes that were not synced.
    if (file->is_readable() && !it->second.reader) it->second.reader = file;
    if (file->is_writable() && !it->second.writer) it->second.writer = file;
    size_.store(files_.size(), std::memory_order_relaxed);
  }
  nfs3::Verf ignored{};
  if (evicted.writer && evicted.writer->is_dirty()) evicted.writer->sync(calls_, false, promise_, ignored);
}

void OpenFiles::on_client_end(const DiskClient& client) {
  ended_.add(client, order_, mutex_);
}

std::size_t OpenFiles::num_holders() const {
  std::lock_guard lock(mutex_);
  return order_.num_holders();
}

OpenFiles::Entry OpenFiles::evict_locked() {
  auto it = files_.find(order_.next_out());
  order_.remove(it->second.place);
  return std::move(files_.extract(it).mapped());
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
  if (auto file = find(node.key, &Entry::writer)) return file;
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
  if (auto kept = find(node.key, &Entry::writer)) return kept;
  return file;
}

std::shared_ptr<OpenFile> OpenFiles::any_open(const FileKey& key) {
  if (auto file = find(key, &Entry::writer)) return file;
  return find(key, &Entry::reader);
}

void OpenFiles::insert(const FileKey& key, Fd fd) {
  put(key, std::make_shared<OpenFile>(std::move(fd), true, true, calls_));
}

void OpenFiles::erase(const FileKey& key) {
  Entry erased;  // its descriptors close after the lock is released
  std::lock_guard lock(mutex_);
  auto it = files_.find(key);
  if (it == files_.end()) return;
  order_.remove(it->second.place);
  erased = std::move(files_.extract(it).mapped());
  size_.store(files_.size(), std::memory_order_relaxed);
}

bool OpenFile::is_needed_for_writing() const {
  if (!is_writable_ || (was_written_.load() && !is_dirty())) return false;
  return ::faccessat(fd(), "", W_OK, AT_EACCESS | AT_EMPTY_PATH) != 0;
}

std::vector<OpenFiles::Idle> OpenFiles::count_sweep() {
  std::vector<Idle> out;
  std::lock_guard lock(mutex_);
  out.reserve(files_.size());
  for (auto& [key, entry] : files_) out.push_back({key, entry.reader, entry.writer, ++entry.idle_sweeps});
  return out;
}

void OpenFiles::sweep() {
  std::vector<Idle> idle = count_sweep();
  nfs3::Verf ignored{};
  std::erase_if(idle, [&](const Idle& file) {
    const Outcome<FileStat> st = stat_fd((file.writer ? file.writer : file.reader)->fd());
    if (st && st->nlink == 0) {
      erase(file.key);
      return true;
    }
    if (file.idle_sweeps < kIdleSweeps || !file.writer) return file.idle_sweeps < kIdleSweeps;
    if (file.writer->is_needed_for_writing() && file.idle_sweeps < kNeededSweeps) return true;
    // The sync runs while the file can still be found: a COMMIT that comes now waits for it and sees its outcome.
    if (file.writer->is_dirty()) file.writer->sync(calls_, false, promise_, ignored);
    return false;
  });
  close_idle(idle);
}

// Takes out the files that were neither used nor written since they were counted. The caller's `idle` holds them until
// the lock is released, and closes them.
void OpenFiles::close_idle(const std::vector<Idle>& idle) {
  // The entry and `idle` each hold the file once, or twice if one descriptor serves reading and writing.
  const auto is_free = [](const std::shared_ptr<OpenFile>& file, bool is_shared) {
    return !file || (file.use_count() == (is_shared ? 4 : 2) && !file->is_dirty());
  };
  std::lock_guard lock(mutex_);
  for (const Idle& file : idle) {
    auto it = files_.find(file.key);
    if (it == files_.end() || it->second.idle_sweeps < file.idle_sweeps) continue;
    if (it->second.reader != file.reader || it->second.writer != file.writer) continue;
    const bool is_shared = file.reader == file.writer;
    if (!is_free(file.reader, is_shared) || !is_free(file.writer, is_shared)) continue;
    order_.remove(it->second.place);
    files_.erase(it);
  }
  size_.store(files_.size(), std::memory_order_relaxed);
}

}  // namespace weft::serve
