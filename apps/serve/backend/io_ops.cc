#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "apps/serve/backend/backend.h"
#include "apps/serve/backend/nfs_status.h"

// READ, READLINK, WRITE, COMMIT.
namespace weft::serve {

using nfs3::Nfsstat3;
using nfs3::StableHow;

namespace {

constexpr std::uint64_t kMaxOffset = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());

int check_regular(const Node& node) {
  if (node.stat.is_dir()) return EISDIR;
  return node.stat.is_regular() ? 0 : EINVAL;
}

// The part of `into` that a READ may fill. The file has no octets behind the last place that an offset can name.
MutBytes readable_part(const nfs3::ReadArgs& args, MutBytes into, std::uint32_t rtmax) {
  if (args.offset > kMaxOffset) return {};
  return into.first(std::min<std::uint64_t>({into.size(), args.count, rtmax, kMaxOffset - args.offset}));
}

bool is_writable_part(std::uint64_t offset, std::size_t len) {
  return offset <= kMaxOffset && len <= kMaxOffset - offset;
}

// Reads until `into` is full or the file ends. Returns the octets read, even if an error comes after them.
Outcome<std::size_t> pread_all(const DiskCalls& calls, int fd, MutBytes into, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < into.size()) {
    ssize_t n = calls.pread(fd, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && done == 0) return last_errno();
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

Outcome<std::size_t> pwrite_all(const DiskCalls& calls, int fd, ConstBytes data, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < data.size()) {
    ssize_t n = calls.pwrite(fd, data.data() + done, data.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && done == 0) return last_errno();
    if (n <= 0) break;  // the client sees the short count, asks again, and is told why
    done += static_cast<std::size_t>(n);
  }
  return done;
}

}  // namespace

nfs3::ReadRes Backend::read(const nfs3::ReadArgs& args, MutBytes into) {
  nfs3::ReadRes res;
  Outcome<Node> node = tree_.resolve(args.file);
  if (!node) {
    res.status = to_nfsstat3(node.error());
    return res;
  }
  auto fail = [&](int error) {
    res.status = to_nfsstat3(Errno{error});
    res.file_attributes = post_attr(node.value());
    return res;
  };
  if (int error = check_regular(node.value()); error != 0) return fail(error);
  Outcome<std::shared_ptr<OpenFile>> file = files_.for_read(node.value());
  if (!file) return fail(file.error().value);
  Outcome<std::size_t> count = pread_all(calls_, (*file)->fd(), readable_part(args, into, config_.rtmax), args.offset);
  if (!count) return fail(count.error().value);
  Outcome<FileStat> after = stat_fd(node->path_fd());
  return read_result(node->key, after ? after.value() : node->stat, args, count.value());
}

std::optional<FileStat> Backend::stat_now(const FileKey& key, OpenFile& file) {
  const TimePoint now = calls_.now();
  if (now < file.here_until()) {
    Outcome<FileStat> st = stat_fd(file.fd());
    return st && st->nlink > 0 ? std::optional(st.value()) : std::nullopt;
  }
  std::optional<Node> node = tree_.resolve_now(key);
  if (!node || !node->stat.is_regular()) return std::nullopt;
  file.set_here_until(now + kPathHolds);
  return node->stat;
}

std::optional<nfs3::ReadRes> Backend::read_now(const nfs3::ReadArgs& args, MutBytes into) {
  Outcome<FileKey> key = tree_.key_of(args.file);
  if (!key) return std::nullopt;
  std::shared_ptr<OpenFile> file = files_.reader_now(key.value());
  if (!file) return std::nullopt;
  into = readable_part(args, into, config_.rtmax);
  ssize_t count = file->pread_now(calls_, into, static_cast<off_t>(into.empty() ? 0 : args.offset));
  // stat_now checks after the reading whether the file may be read, so the attributes are from after the reading.
  const std::optional<FileStat> st = count < 0 ? std::nullopt : stat_now(key.value(), *file);
  if (!st) return std::nullopt;
  nfs3::ReadRes res = read_result(key.value(), *st, args, static_cast<std::size_t>(count));
  // Fewer octets than asked for: either the file ends, or the part that memory holds ends.
  if (res.count < into.size() && !res.eof) return std::nullopt;
  return res;
}

nfs3::ReadRes Backend::read_result(const FileKey& key, const FileStat& st, const nfs3::ReadArgs& args,
                                   std::size_t count) const {
  nfs3::ReadRes res;
  res.file_attributes = attr(key, st);
  res.count = static_cast<std::uint32_t>(count);
  res.eof = args.offset >= st.size || count >= st.size - args.offset;
  res.data.len = res.count;
  return res;
}

nfs3::ReadlinkRes Backend::readlink(const nfs3::FhArgs& args, MutBytes into) {
  nfs3::ReadlinkRes res;
  Outcome<Node> node = tree_.resolve(args.object);
  if (!node) {
    res.status = to_nfsstat3(node.error());
    return res;
  }
  res.symlink_attributes = attr(node.value());
  if (!node->stat.is_symlink()) {
    res.status = Nfsstat3::kInval;
    return res;
  }
  ssize_t n = ::readlinkat(node->path_fd(), "", reinterpret_cast<char*>(into.data()), into.size());
  if (n < 0) {
    res.status = to_nfsstat3(last_errno());
  } else {
    res.data.len = static_cast<std::uint32_t>(n);
  }
  return res;
}

nfs3::WriteRes Backend::write(const nfs3::WriteArgs& args, ConstBytes data) {
  nfs3::WriteRes res;
  Outcome<Locked> object = resolve_locked(args.file);
  if (!object) {
    res.status = to_nfsstat3(object.error());
    return res;
  }
  const Node& node = object->node;
  auto fail = [&](Nfsstat3 status) {
    res.status = status;
    res.file_wcc = wcc(node);
    return res;
  };
  if (!config_.read_write) return fail(Nfsstat3::kRofs);
  if (int error = check_regular(node); error != 0) return fail(to_nfsstat3(Errno{error}));
  // RFC 1813 section 3.3.7: count decides, but octets that are not there cannot be written.
  if (args.count != data.size()) return fail(Nfsstat3::kInval);
  data = data.first(std::min<std::size_t>(data.size(), config_.wtmax));
  if (!is_writable_part(args.offset, data.size())) return fail(Nfsstat3::kFbig);
  Outcome<std::shared_ptr<OpenFile>> file = files_.for_write(node);
  if (!file) return fail(to_nfsstat3(file.error()));
  if (int error = drop_set_ids(node); error != 0) return fail(to_nfsstat3(Errno{error}));
  // The promise from before the write: if it breaks during the write, the client must learn of it.
  const nfs3::Verf verf = promise_.verf();
  (*file)->mark_dirty();
  Outcome<std::size_t> count = pwrite_all(calls_, (*file)->fd(), data, args.offset);
  (*file)->mark_dirty();  // a sync that ran meanwhile need not have all of it
  if (!count) return fail(to_nfsstat3(count.error()));
  res = write_result(wcc(node), args, count.value(), verf);
  object->held.unlock();
  if (args.stable == StableHow::kUnstable) return res;
  int error = (*file)->sync(calls_, args.stable == StableHow::kDataSync, promise_, res.verf);
  if (error != 0) res.status = to_nfsstat3(Errno{error});
  return res;
}

std::optional<nfs3::WriteRes> Backend::write_now(const nfs3::WriteArgs& args, ConstBytes data) {
  if (args.stable != StableHow::kUnstable || args.count != data.size()) return std::nullopt;
  data = data.first(std::min<std::size_t>(data.size(), config_.wtmax));
  if (!is_writable_part(args.offset, data.size())) return std::nullopt;
  Outcome<FileKey> key = tree_.key_of(args.file);
  if (!key) return std::nullopt;
  const Held held = locks_.try_lock(key.value());
  // No file is open for writing in a read-only export.
  std::shared_ptr<OpenFile> file = held ? files_.writer_now(key.value()) : nullptr;
  const std::optional<FileStat> before = file ? stat_now(key.value(), *file) : std::nullopt;
  // Set-ID bits are left to write, which clears them first.
  if (!before || (before->mode & (S_ISUID | S_ISGID)) != 0) return std::nullopt;
  // The promise comes first, as in write.
  const nfs3::Verf verf = promise_.verf();
  file->mark_dirty();
  ssize_t count = file->pwrite_now(calls_, data, static_cast<off_t>(args.offset));
  file->mark_dirty();  // as in write
  if (count < 0 || static_cast<std::size_t>(count) < data.size()) return std::nullopt;
  const Outcome<FileStat> after = stat_fd(file->fd());
  nfs3::WccData wcc{.before = to_wcc_attr(*before), .after = std::nullopt};
  if (after) wcc.after = attr(key.value(), after.value());
  return write_result(wcc, args, data.size(), verf);
}

nfs3::WriteRes Backend::write_result(const nfs3::WccData& wcc, const nfs3::WriteArgs& args, std::size_t count,
                                     const nfs3::Verf& verf) const {
  nfs3::WriteRes res;
  res.verf = verf;
  res.count = static_cast<std::uint32_t>(count);
  res.committed = args.stable;
  res.file_wcc = wcc;
  return res;
}

nfs3::CommitRes Backend::commit(const nfs3::CommitArgs& args) {
  nfs3::CommitRes res;
  Outcome<Node> node = tree_.resolve(args.file);
  if (!node) {
    res.status = to_nfsstat3(node.error());
    return res;
  }
  // COMMIT changes nothing, and other clients write while it syncs. With attributes from before the sync their changes
  // would look like the client's own, and the client would not look for them. RFC 1813 section 2.6 lets a server leave
  // these attributes out.
  auto fail = [&](int error) {
    res.status = to_nfsstat3(Errno{error});
    res.file_wcc.after = post_attr(node.value());
    return res;
  };
  if (!config_.read_write) return fail(EROFS);
  if (int error = check_regular(node.value()); error != 0) return fail(error);
  // Any open descriptor will do for fsync(2). A file that was written here is still open for writing, or was synced
  // when it was closed.
  std::shared_ptr<OpenFile> file = files_.any_open(node->key);
  if (!file) {
    Outcome<std::shared_ptr<OpenFile>> opened = files_.for_read(node.value());
    if (!opened) opened = files_.for_write(node.value());
    if (!opened) return fail(opened.error().value);
    file = std::move(opened.value());
  }
  if (int error = file->sync(calls_, false, promise_, res.verf); error != 0) return fail(error);
  res.file_wcc.after = post_attr(node.value());
  return res;
}

}  // namespace weft::serve
