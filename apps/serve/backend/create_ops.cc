#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "apps/serve/backend/backend.h"
#include "apps/serve/backend/nfs_status.h"
#include "mpa/wire/cursor.h"

// CREATE, MKDIR, SYMLINK, MKNOD.
namespace weft::serve {

using nfs3::Createmode3;
using nfs3::Nfsstat3;

namespace {

// The mode of an object when the client leaves it open.
constexpr mode_t kDefaultFileMode = 0644, kDefaultDirMode = 0755;

// An exclusive CREATE keeps its verifier in the times of the new file, so that a retransmission is known even after a
// restart. The client sets their seconds afterwards anyway (RFC 1813 section 3.3.8). The uppermost bit does not fit
// every filesystem.
struct VerfTimes {
  explicit VerfTimes(const nfs3::Verf& verf) {
    Reader reader{ConstBytes(verf)};
    static_cast<void>(reader.u32(atime) && reader.u32(mtime));
    atime &= 0x7fffffff;
    mtime &= 0x7fffffff;
  }
  bool match(const FileStat& st) const {
    return st.atime.tv_sec == static_cast<time_t>(atime) && st.mtime.tv_sec == static_cast<time_t>(mtime);
  }
  nfs3::Sattr3 sattr() const {
    nfs3::Sattr3 out;
    out.atime = {.how = nfs3::TimeHow::kSetToClientTime, .time = {.seconds = atime, .nseconds = 0}};
    out.mtime = {.how = nfs3::TimeHow::kSetToClientTime, .time = {.seconds = mtime, .nseconds = 0}};
    return out;
  }

  std::uint32_t atime = 0, mtime = 0;
};

}  // namespace

nfs3::NewObjectRes Backend::make_object(const nfs3::Diropargs3& where, const Maker& maker) {
  nfs3::NewObjectRes res;
  Outcome<Locked> dir = resolve_locked(where.dir);
  if (!dir) {
    res.status = to_nfsstat3(dir.error());
    return res;
  }
  const Node& parent = dir->node;
  auto work = [&]() -> Outcome<Node> {
    if (!config_.read_write) return Errno{EROFS};
    if (is_dot(where.name) || is_dot_dot(where.name)) return Errno{EEXIST};
    if (int error = Tree::check_new(parent, where.name); error != 0) return Errno{error};
    return maker(parent);
  };
  Outcome<Node> node = work();
  if (node) {
    tree_.on_seen(node->key, parent.key, where.name);
    res.obj = tree_.handle_of(node->key);
    res.obj_attributes = post_attr(node.value());
  } else {
    res.status = to_nfsstat3(node.error());
  }
  res.dir_wcc = wcc(parent);
  dir->held.unlock();
  if (!node) return res;
  if (int error = sync_new(node.value(), parent); error != 0) res.status = to_nfsstat3(Errno{error});
  return res;
}

Outcome<Node> Backend::adopt(const Node& dir, const std::string& name, const nfs3::Sattr3& wanted,
                             mode_t default_mode) {
  Outcome<Node> node = tree_.peek_made(dir, name);
  if (!node) return node;
  nfs3::Sattr3 rest = wanted;
  const mode_t mode = allowed_mode(wanted.mode.value_or(default_mode), node->stat.mode);
  // The process's umask and a directory's default ACL may have taken bits away, and a change of the owner or the size
  // clears the set-ID bits.
  rest.mode = mode;
  const bool has_mode = (node->stat.mode & 07777) == mode && (mode & (S_ISUID | S_ISGID)) == 0;
  if (node->stat.is_symlink() || has_mode) rest.mode.reset();
  if (rest.size == 0u) rest.size.reset();
  if (!node->stat.is_regular()) rest.size.reset();
  Outcome<int> applied = apply(node.value(), rest, Giving::kAsFarAsAllowed);
  if (applied) {
    log_mode(node.value(), wanted.mode.value_or(0), mode);
    return node;
  }
  files_.erase(node->key);
  ::unlinkat(dir.path_fd(), name.c_str(), node->stat.is_dir() ? AT_REMOVEDIR : 0);
  return applied.error();
}

nfs3::NewObjectRes Backend::create(const nfs3::CreateArgs& args) {
  std::optional<Node> existing;
  nfs3::NewObjectRes res = make_object(args.where, [&](const Node& dir) { return create_file(dir, args, existing); });
  const bool cuts = args.mode == Createmode3::kUnchecked && args.obj_attributes.size.has_value();
  if (res.status != Nfsstat3::kOk || !existing || !cuts) return res;
  // The change takes the file's own lock, as any change of a file does. The directory's lock is released by now.
  nfs3::Sattr3 size;
  size.size = args.obj_attributes.size;
  const nfs3::WccRes cut = setattr({*res.obj, size, {}});
  res.status = cut.status;
  res.obj_attributes = cut.wcc.after;
  return res;
}

Outcome<Node> Backend::create_file(const Node& dir, const nfs3::CreateArgs& args, std::optional<Node>& existing) {
  const bool is_exclusive = args.mode == Createmode3::kExclusive;
  const nfs3::Sattr3 wanted = is_exclusive ? VerfTimes(args.verf).sattr() : args.obj_attributes;
  const mode_t mode = allowed_mode(wanted.mode.value_or(kDefaultFileMode), S_IFREG);
  // The descriptor stays open. It may write even if the mode forbids writing, as the creator of a file expects.
  Outcome<Fd> fd = open_beneath(dir.path_fd(), args.where.name, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW, mode);
  // EXDEV: a mount stands there.
  if (!fd && (fd.error() == Errno{EEXIST} || fd.error() == Errno{EXDEV})) {
    Outcome<Node> node = use_existing(dir, args);
    if (node) existing = node.value();
    return node;
  }
  if (!fd) return fd.error();
  Outcome<FileStat> st = stat_fd(fd->get());
  if (!st) return st.error();
  files_.insert(tree_.key_of(st.value()), std::move(fd.value()));
  return adopt(dir, args.where.name, wanted, mode);
}

Outcome<Node> Backend::use_existing(const Node& dir, const nfs3::CreateArgs& args) {
  Outcome<Node> node = tree_.peek(dir, args.where.name);
  if (!node) return node;
  if (!node->stat.is_regular() || args.mode == Createmode3::kGuarded) return Errno{EEXIST};
  if (args.mode == Createmode3::kExclusive) {
    if (node->stat.size != 0 || !VerfTimes(args.verf).match(node->stat)) return Errno{EEXIST};
    return node;
  }
  return node;
}

nfs3::NewObjectRes Backend::mkdir(const nfs3::MkdirArgs& args) {
  return make_object(args.where, [&](const Node& dir) -> Outcome<Node> {
    mode_t mode = args.attributes.mode.value_or(kDefaultDirMode) & 07777;
    if (::mkdirat(dir.path_fd(), args.where.name.c_str(), mode) != 0) return last_errno();
    // The set-group-ID bit from the parent directory stays.
    nfs3::Sattr3 wanted = args.attributes;
    Outcome<Node> made = tree_.peek_made(dir, args.where.name);
    if (made) mode |= made->stat.mode & S_ISGID;
    wanted.mode = mode;
    return adopt(dir, args.where.name, wanted, mode);
  });
}

nfs3::NewObjectRes Backend::symlink(const nfs3::SymlinkArgs& args, ConstBytes path) {
  return make_object(args.where, [&](const Node& dir) -> Outcome<Node> {
    std::string target(path.begin(), path.end());
    if (target.empty() || target.find('\0') != target.npos) return Errno{EINVAL};
    if (::symlinkat(target.c_str(), dir.path_fd(), args.where.name.c_str()) != 0) return last_errno();
    return adopt(dir, args.where.name, args.symlink_attributes, 0);
  });
}

nfs3::NewObjectRes Backend::mknod(const nfs3::MknodArgs& args) {
  return make_object(args.where, [&](const Node& dir) -> Outcome<Node> {
    mode_t type = 0;
    dev_t dev = 0;
    switch (args.type) {
      case nfs3::Ftype3::kFifo: type = S_IFIFO; break;
      case nfs3::Ftype3::kSock: type = S_IFSOCK; break;
      case nfs3::Ftype3::kChr: type = S_IFCHR; break;
      case nfs3::Ftype3::kBlk: type = S_IFBLK; break;
      default: return Errno{EPROTOTYPE};
    }
    if (type == S_IFCHR || type == S_IFBLK) {
      if (!config_.devices) return Errno{EPERM};
      dev = ::makedev(args.spec.specdata1, args.spec.specdata2);
    }
    const mode_t mode = allowed_mode(args.attributes.mode.value_or(kDefaultFileMode), type);
    if (::mknodat(dir.path_fd(), args.where.name.c_str(), type | mode, dev) != 0) return last_errno();
    return adopt(dir, args.where.name, args.attributes, mode);
  });
}

}  // namespace weft::serve
