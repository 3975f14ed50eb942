#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <limits>
#include <thread>

#include "apps/serve/backend/backend.h"
#include "apps/serve/backend/nfs_status.h"
#include "fmt/format.h"
#include "verbs-shim/api/log_line.h"

// GETATTR, SETATTR, ACCESS, FSSTAT, FSINFO, PATHCONF, and the functions that all procedures share.
namespace weft::serve {

using nfs3::Nfsstat3;

namespace {

// How many times lock_found and lock_names look for a file that moves while its lock is taken.
constexpr int kLockAttempts = 4;

constexpr mode_t kSetIds = S_ISUID | S_ISGID;

// A file that cannot be opened for want of descriptors or memory may have changes to sync.
bool is_shortage(Errno error) {
  return error.value == EMFILE || error.value == ENFILE || error.value == ENOMEM;
}

}  // namespace

Backend::Backend(Tree& tree, const BackendConfig& config, DiskCalls calls)
    : tree_(tree), config_(config), calls_(std::move(calls)), files_(config.max_open_files, calls_, promise_) {}

nfs3::Fattr3 Backend::attr(const FileKey& key, const FileStat& st) const {
  return to_fattr3(st, tree_.fsid_of(key));
}

nfs3::PostOpAttr Backend::post_attr(const Node& node) const {
  Outcome<FileStat> st = stat_fd(node.path_fd());
  if (!st) return std::nullopt;
  return attr(node.key, st.value());
}

nfs3::WccData Backend::wcc(const Node& before) const {
  return {.before = to_wcc_attr(before.stat), .after = post_attr(before)};
}

Backend::Found Backend::lock_found(std::span<const FileKey> files, std::span<const FileKey> others) {
  std::vector<FileKey> keys(files.begin(), files.end());
  keys.insert(keys.end(), others.begin(), others.end());
  Found out;
  for (int i = 0; i < kLockAttempts; ++i) {
    out.nodes.clear();
    out.held = locks_.lock(keys);
    bool is_lost = false;
    for (const FileKey& key : files) {
      out.nodes.push_back(tree_.find(key));
      is_lost = is_lost || (!out.nodes.back() && out.nodes.back().error() == Errno{ENOENT});
    }
    const bool all = std::all_of(out.nodes.begin(), out.nodes.end(), [](const auto& node) { return node.ok(); });
    if (all) return out;
    out.held.unlock();
    if (!is_lost) return out;
    // A search remembers the file that it finds, so the next attempt finds it at once.
    is_lost = false;
    for (std::size_t at = 0; at < files.size(); ++at) {
      if (!out.nodes[at] && out.nodes[at].error() == Errno{ENOENT}) out.nodes[at] = tree_.resolve(files[at]);
      is_lost = is_lost || !out.nodes[at];
    }
    if (is_lost) return out;
  }
  out.nodes.assign(files.size(), Errno{EAGAIN});
  return out;
}

Outcome<Backend::Locked> Backend::resolve_locked(const nfs3::NfsFh3& handle) {
  Outcome<FileKey> key = tree_.key_of(handle);
  if (!key) return key.error();
  Found found = lock_found(std::span(&key.value(), 1));
  if (!found.nodes[0]) return found.nodes[0].error();
  return Locked{std::move(found.held), std::move(found.nodes[0].value())};
}

Backend::Found Backend::lock_names(std::span<const FileKey> dirs, std::span<const std::string* const> names) {
  std::vector<FileKey> files;  // the files that the names led to last time
  for (int i = 0; i < kLockAttempts; ++i) {
    Found out = lock_found(dirs, files);
    if (!out.held) return out;
    files.clear();
    bool all = true;
    for (std::size_t at = 0; at < dirs.size(); ++at) {
      Outcome<Node> file = tree_.peek(out.nodes[at].value(), *names[at]);
      if (file) {
        files.push_back(file->key);
        all = all && out.held.covers(file->key);
      }
      out.nodes.push_back(std::move(file));
    }
    if (all) return out;
  }
  Found none;
  none.nodes.assign(dirs.size(), Errno{EAGAIN});
  return none;
}

int Backend::sync_metadata_of(const Node& node) {
  if (!config_.sync_metadata) return 0;
  return syncs_.sync(node.key, [&] { return sync_now(node); });
}

int Backend::sync_new(const Node& made, const Node& dir) {
  if (!config_.sync_metadata) return 0;
  int error = 0;
  const int dir_error = syncs_.sync(
      dir.key, [&] { return sync_now(dir); }, [&] { error = sync_metadata_of(made); });
  return error == 0 ? dir_error : error;
}

int Backend::sync_now(const Node& node) {
  nfs3::Verf ignored{};
  if (auto file = files_.any_open(node.key)) return file->sync(calls_, false, promise_, ignored);
  // A file that may not be opened for reading or writing cannot be synced, and opening a device or FIFO has effects.
  if (!node.stat.is_dir() && !node.stat.is_regular()) return 0;
  Outcome<Fd> fd = reopen(node.path_fd(), O_RDONLY);
  if (!fd && node.stat.is_regular()) fd = reopen(node.path_fd(), O_WRONLY);
  if (!fd) return is_shortage(fd.error()) ? fd.error().value : 0;
  if (calls_.fsync(fd->get()) == 0) return 0;
  // Some filesystems cannot sync a directory (9p, vboxsf). Nothing more can be done then.
  return node.stat.is_dir() && errno == EINVAL ? 0 : errno;
}

nfs3::GetattrRes Backend::getattr(const nfs3::FhArgs& args) {
  Outcome<Node> node = tree_.resolve(args.object);
  if (!node) return {.status = to_nfsstat3(node.error()), .obj_attributes = {}};
  return {.status = Nfsstat3::kOk, .obj_attributes = attr(node.value())};
}

Outcome<int> Backend::set_size(const Node& node, std::uint64_t size) {
  if (node.stat.is_dir()) return Errno{EISDIR};
  if (!node.stat.is_regular()) return Errno{EINVAL};
  if (size > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) return Errno{EFBIG};
  Outcome<std::shared_ptr<OpenFile>> file = files_.for_write(node);
  if (!file) return file.error();
  if (int error = drop_set_ids(node); error != 0) return Errno{error};
  if (::ftruncate((*file)->fd(), static_cast<off_t>(size)) != 0) return last_errno();
  return 0;
}

namespace {

bool to_timespec(const nfs3::SetTime& from, timespec& to) {
  switch (from.how) {
    case nfs3::TimeHow::kDontChange: to.tv_nsec = UTIME_OMIT; return true;
    case nfs3::TimeHow::kSetToServerTime: to.tv_nsec = UTIME_NOW; return true;
    case nfs3::TimeHow::kSetToClientTime: break;
  }
  to.tv_sec = static_cast<time_t>(from.time.seconds);
  to.tv_nsec = static_cast<long>(from.time.nseconds);
  return from.time.nseconds < 1'000'000'000;
}

}  // namespace

mode_t Backend::allowed_mode(mode_t wanted, mode_t type, mode_t now) const {
  wanted &= 07777;
  // A directory's set-group-ID bit passes its group on to new files. It grants no rights.
  if (config_.set_id_files || S_ISDIR(type)) return wanted;
  return wanted & ~(kSetIds & ~now);
}

void Backend::log_mode(const Node& node, mode_t wanted, mode_t given) {
  wanted &= 07777;
  if ((wanted & kSetIds & ~given) == 0 || !config_.log.wants(verbs::LogLevel::kWarn)) return;
  std::uint64_t num_withheld = 0;
  {
    std::lock_guard lock(log_mutex_);
    if (!log_budget_.take(calls_.now())) return;
    num_withheld = log_budget_.take_suppressed();
  }
  char path[PATH_MAX];
  const ssize_t len = ::readlink(ProcFdPath(node.path_fd()).text, path, sizeof path);
  verbs::log_line(
      config_.log, verbs::LogLevel::kWarn,
      "a client asked for mode {:04o} of {}; the mode is {:04o}, because clients may set no set-user-ID and "
      "set-group-ID bits of files (BackendConfig::set_id_files lets them){}",
      wanted, len > 0 ? std::string_view(path, static_cast<std::size_t>(len)) : "a file", given,
      num_withheld == 0 ? "" : fmt::format(" ({} lines before this one were withheld)", num_withheld));
}

int Backend::drop_set_ids(const Node& node) const {
  if (!node.stat.is_regular() || (node.stat.mode & kSetIds) == 0) return 0;
  if (::chmod(ProcFdPath(node.path_fd()).text, node.stat.mode & 07777 & ~kSetIds) == 0) return 0;
  // The file belongs to another user. The kernel clears the bits then, because a write by a user other than root does.
  return errno == EPERM ? 0 : errno;
}

Outcome<int> Backend::give(const Node& node, const nfs3::Sattr3& wanted, Giving owner) {
  constexpr std::uint32_t kNobody = 0xffffffff;  // chown(2): "leave it"
  const auto chown = [&](std::uint32_t uid, std::uint32_t gid) {
    return ::fchownat(node.path_fd(), "", uid, gid, AT_EMPTY_PATH) == 0 ? 0 : errno;
  };
  const std::uint32_t uid = wanted.uid.value_or(kNobody), gid = wanted.gid.value_or(kNobody);
  if (owner == Giving::kAsAsked) {
    if (wanted.uid == kNobody || wanted.gid == kNobody) return Errno{EINVAL};
    if (!wanted.uid && !wanted.gid) return 0;
    if (int error = chown(uid, gid); error != 0) return Errno{error};
    if (int error = drop_set_ids(node); error != 0) return Errno{error};
    return 0;
  }
  // Two calls, because the user may give the file to one of its groups although it may not give it to another owner.
  // EINVAL: the user namespace has no mapping for the number.
  for (int error : {uid == kNobody ? 0 : chown(uid, kNobody), gid == kNobody ? 0 : chown(kNobody, gid)}) {
    if (error != 0 && error != EPERM && error != EINVAL) return Errno{error};
  }
  return 0;
}

// The owner comes first: it is refused most often, and then nothing has changed yet. The mode comes after the owner and
// the size, because both clear the set-user-ID bit. The times come last.
Outcome<int> Backend::apply(const Node& node, const nfs3::Sattr3& wanted, Giving owner) {
  timespec times[2] = {};
  if (!to_timespec(wanted.atime, times[0]) || !to_timespec(wanted.mtime, times[1])) return Errno{EINVAL};
  if (Outcome<int> given = give(node, wanted, owner); !given) return given;
  if (wanted.size) {
    if (Outcome<int> set = set_size(node, *wanted.size); !set) return set;
  }
  if (wanted.mode) {
    // A symbolic link's mode means nothing, and chmod refuses it through its descriptor in /proc.
    if (node.stat.is_symlink()) return Errno{EOPNOTSUPP};
    // A file with another owner or another content does not keep set-ID bits from before.
    const bool is_same = !wanted.uid && !wanted.gid && !wanted.size;
    const mode_t mode = allowed_mode(*wanted.mode, node.stat.mode, is_same ? node.stat.mode : 0);
    if (::chmod(ProcFdPath(node.path_fd()).text, mode) != 0) return last_errno();
    log_mode(node, *wanted.mode, mode);
  }
  if (times[0].tv_nsec != UTIME_OMIT || times[1].tv_nsec != UTIME_OMIT) {
    if (::utimensat(node.path_fd(), "", times, AT_EMPTY_PATH) != 0) return last_errno();
  }
  return 0;
}

nfs3::WccRes Backend::setattr(const nfs3::SetattrArgs& args) {
  nfs3::WccRes res;
  Outcome<Locked> object = resolve_locked(args.object);
  if (!object) return {.status = to_nfsstat3(object.error()), .wcc = {}};
  const Node& node = object->node;
  if (!config_.read_write) {
    res.status = Nfsstat3::kRofs;
  } else if (args.guard && !(*args.guard == to_nfstime3(node.stat.ctime))) {
    res.status = Nfsstat3::kNotSync;
  } else if (Outcome<int> applied = apply(node, args.new_attributes); !applied) {
    res.status = to_nfsstat3(applied.error());
  }
  res.wcc = wcc(node);
  object->held.unlock();
  if (res.status == Nfsstat3::kOk)
    if (int error = sync_metadata_of(node); error != 0) res.status = to_nfsstat3(Errno{error});
  return res;
}

nfs3::AccessRes Backend::access(const nfs3::AccessArgs& args) {
  Outcome<Node> node = tree_.resolve(args.object);
  if (!node) return {.status = to_nfsstat3(node.error()), .obj_attributes = {}, .access = 0};
  auto may = [&](int mode) { return ::faccessat(node->path_fd(), "", mode, AT_EACCESS | AT_EMPTY_PATH) == 0; };
  std::uint32_t granted = 0;
  if (may(R_OK)) granted |= nfs3::kAccessRead;
  bool may_execute = may(X_OK);
  if (may_execute) granted |= node->stat.is_dir() ? nfs3::kAccessLookup : nfs3::kAccessExecute;
  if (config_.read_write && may(W_OK)) {
    granted |= nfs3::kAccessModify | nfs3::kAccessExtend;
    if (node->stat.is_dir() && may_execute) granted |= nfs3::kAccessDelete;
  }
  return {.status = Nfsstat3::kOk, .obj_attributes = attr(node.value()), .access = granted & args.access};
}

nfs3::FsstatRes Backend::fsstat(const nfs3::FhArgs& args) {
  nfs3::FsstatRes res;
  Outcome<Node> node = tree_.resolve(args.object);
  struct statvfs fs {};
  if (!node) {
    res.status = to_nfsstat3(node.error());
    return res;
  }
  res.obj_attributes = attr(node.value());
  if (::fstatvfs(node->path_fd(), &fs) != 0) {
    res.status = to_nfsstat3(last_errno());
    return res;
  }
  res.tbytes = std::uint64_t{fs.f_blocks} * fs.f_frsize;
  res.fbytes = std::uint64_t{fs.f_bfree} * fs.f_frsize;
  res.abytes = std::uint64_t{fs.f_bavail} * fs.f_frsize;
  res.tfiles = fs.f_files;
  res.ffiles = fs.f_ffree;
  res.afiles = fs.f_favail;
  return res;
}

nfs3::FsinfoRes Backend::fsinfo(const nfs3::FhArgs& args) {
  nfs3::FsinfoRes res;
  Outcome<Node> node = tree_.resolve(args.object);
  if (!node) {
    res.status = to_nfsstat3(node.error());
    return res;
  }
  res.obj_attributes = attr(node.value());
  res.rtmax = res.rtpref = config_.rtmax;
  res.wtmax = res.wtpref = config_.wtmax;
  res.rtmult = res.wtmult = 4096;
  res.dtpref = 65536;
  res.maxfilesize = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  res.time_delta = {.seconds = 0, .nseconds = 1};
  res.properties = nfs3::kFsfLink | nfs3::kFsfSymlink | nfs3::kFsfHomogeneous | nfs3::kFsfCansettime;
  return res;
}

nfs3::PathconfRes Backend::pathconf(const nfs3::FhArgs& args) {
  nfs3::PathconfRes res;
  Outcome<Node> node = tree_.resolve(args.object);
  if (!node) {
    res.status = to_nfsstat3(node.error());
    return res;
  }
  res.obj_attributes = attr(node.value());
  long links = ::pathconf(ProcFdPath(node->path_fd()).text, _PC_LINK_MAX);
  res.linkmax = links > 0 ? static_cast<std::uint32_t>(std::min<long>(links, 0x7fffffff)) : 32000;
  res.name_max = NAME_MAX;
  res.no_trunc = true;
  res.chown_restricted = true;
  res.case_insensitive = false;
  res.case_preserving = true;
  return res;
}

void outlive_tick(const FileStat& st) {
  // Bounded: a birth time in the future is not worth a longer wait.
  for (int i = 0; i < 20; ++i) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (now.tv_sec > st.btime.tv_sec || (now.tv_sec == st.btime.tv_sec && now.tv_nsec > st.btime.tv_nsec)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace weft::serve
