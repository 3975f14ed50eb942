#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "apps/serve/backend/backend.h"
#include "apps/serve/backend/nfs_status.h"

// LOOKUP, REMOVE, RMDIR, RENAME, LINK. create_ops.cc has the procedures that make new objects.
namespace weft::serve {

using nfs3::Nfsstat3;

nfs3::LookupRes Backend::lookup(const nfs3::DiropArgs& args) {
  nfs3::LookupRes res;
  Outcome<Node> dir = tree_.resolve(args.what.dir);
  if (!dir) {
    res.status = to_nfsstat3(dir.error());
    return res;
  }
  res.dir_attributes = attr(dir.value());
  Outcome<Node> node = tree_.lookup(dir.value(), args.what.name);
  if (!node) {
    res.status = to_nfsstat3(node.error());
    return res;
  }
  res.object = tree_.handle_of(node->key);
  res.obj_attributes = attr(node.value());
  return res;
}

void Backend::on_name_lost(const Node& file, const FileKey& dir, const std::string& name) {
  Outcome<FileStat> st = stat_fd(file.path_fd());
  // A directory has one name; some filesystems count its links differently.
  if (st && (st->nlink == 0 || st->is_dir())) {
    files_.erase(file.key);
    tree_.on_gone(file.key);
  } else {
    tree_.on_name_gone(file.key, dir, name);
  }
}

nfs3::WccRes Backend::remove(const nfs3::DiropArgs& args) {
  return remove_name(args.what, false);
}
nfs3::WccRes Backend::rmdir(const nfs3::DiropArgs& args) {
  return remove_name(args.what, true);
}

nfs3::WccRes Backend::remove_name(const nfs3::Diropargs3& what, bool is_rmdir) {
  nfs3::WccRes res;
  Outcome<FileKey> dir_key = tree_.key_of(what.dir);
  if (!dir_key) {
    res.status = to_nfsstat3(dir_key.error());
    return res;
  }
  const std::array names = {&what.name};
  Found found = lock_names(std::span(&dir_key.value(), 1), names);
  if (!found.held) {
    res.status = to_nfsstat3(found.nodes[0].error());
    return res;
  }
  const Node& parent = found.nodes[0].value();
  auto work = [&]() -> Outcome<int> {
    if (!config_.read_write) return Errno{EROFS};
    // RFC 1813 section 3.3.13: RMDIR of ".." cannot empty the directory above.
    if (is_rmdir && is_dot_dot(what.name)) return Errno{EEXIST};
    const Outcome<Node>& file = found.nodes[1];
    if (!file) return file.error();
    if (file->stat.is_dir() != is_rmdir) return Errno{is_rmdir ? ENOTDIR : EISDIR};
    if (is_rmdir || file->stat.nlink == 1) outlive_tick(file->stat);
    if (::unlinkat(parent.path_fd(), what.name.c_str(), is_rmdir ? AT_REMOVEDIR : 0) != 0) return last_errno();
    on_name_lost(file.value(), parent.key, what.name);
    return 0;
  };
  Outcome<int> done = work();
  if (!done) res.status = to_nfsstat3(done.error());
  res.wcc = wcc(parent);
  found.held.unlock();
  if (done)
    if (int error = sync_metadata_of(parent); error != 0) res.status = to_nfsstat3(Errno{error});
  return res;
}

nfs3::RenameRes Backend::rename(const nfs3::RenameArgs& args) {
  nfs3::RenameRes res;
  Outcome<FileKey> from_key = tree_.key_of(args.from.dir), to_key = tree_.key_of(args.to.dir);
  if (!from_key || !to_key) {
    res.status = to_nfsstat3(!from_key ? from_key.error() : to_key.error());
    return res;
  }
  const std::array dirs = {from_key.value(), to_key.value()};
  const std::array names = {&args.from.name, &args.to.name};
  Found found = lock_names(dirs, names);
  const Outcome<Node>&from = found.nodes[0], &to = found.nodes[1];
  if (!found.held) {
    res.status = to_nfsstat3(!from ? from.error() : to.error());
    if (from) res.fromdir_wcc.after = post_attr(from.value());
    if (to) res.todir_wcc.after = post_attr(to.value());
    return res;
  }
  auto work = [&]() -> Outcome<int> {
    if (!config_.read_write) return Errno{EROFS};
    const Outcome<Node>&file = found.nodes[2], &target = found.nodes[3];
    if (!file) return file.error();
    if (!target && target.error() != Errno{ENOENT}) return target.error();
    // RFC 1813 section 3.3.14: two names of one file, nothing to do.
    if (target && target->key == file->key) return 0;
    if (target && (target->stat.is_dir() || target->stat.nlink == 1)) outlive_tick(target->stat);
    if (::renameat(from->path_fd(), args.from.name.c_str(), to->path_fd(), args.to.name.c_str()) != 0) {
      // The same section: a target that this source cannot replace is in the way.
      return errno == EISDIR || errno == ENOTDIR ? Errno{EEXIST} : last_errno();
    }
    tree_.on_seen(file->key, to->key, args.to.name);
    tree_.on_name_gone(file->key, from->key, args.from.name);
    if (target) on_name_lost(target.value(), to->key, args.to.name);
    return 0;
  };
  Outcome<int> done = work();
  if (!done) res.status = to_nfsstat3(done.error());
  res.fromdir_wcc = wcc(from.value());
  res.todir_wcc = wcc(to.value());
  found.held.unlock();
  if (!done) return res;
  int error = sync_metadata_of(to.value());
  if (error == 0 && from->key != to->key) error = sync_metadata_of(from.value());
  if (error != 0) res.status = to_nfsstat3(Errno{error});
  return res;
}

nfs3::LinkRes Backend::link(const nfs3::LinkArgs& args) {
  nfs3::LinkRes res;
  Outcome<FileKey> file_key = tree_.key_of(args.file), dir_key = tree_.key_of(args.link.dir);
  if (!file_key || !dir_key) {
    res.status = to_nfsstat3(!file_key ? file_key.error() : dir_key.error());
    return res;
  }
  const std::array keys = {file_key.value(), dir_key.value()};
  Found found = lock_found(keys);
  const Outcome<Node>&file = found.nodes[0], &dir = found.nodes[1];
  if (!found.held) {
    res.status = to_nfsstat3(!file ? file.error() : dir.error());
    if (file) res.file_attributes = post_attr(file.value());
    if (dir) res.linkdir_wcc.after = post_attr(dir.value());
    return res;
  }
  auto work = [&]() -> Outcome<int> {
    if (!config_.read_write) return Errno{EROFS};
    const std::string& name = args.link.name;
    if (is_dot(name) || is_dot_dot(name)) return Errno{EEXIST};
    if (int error = Tree::check_new(dir.value(), name); error != 0) return Errno{error};
    if (file->stat.is_dir()) return Errno{EINVAL};
    // The link goes through /proc: linkat with an empty path wants privileges, and the file's own name may change
    // meanwhile.
    if (::linkat(AT_FDCWD, ProcFdPath(file->path_fd()).text, dir->path_fd(), name.c_str(), AT_SYMLINK_FOLLOW) != 0)
      return last_errno();
    tree_.on_seen(file->key, dir->key, name);
    return 0;
  };
  Outcome<int> done = work();
  if (!done) res.status = to_nfsstat3(done.error());
  res.file_attributes = post_attr(file.value());
  res.linkdir_wcc = wcc(dir.value());
  found.held.unlock();
  if (!done) return res;
  int error = sync_metadata_of(dir.value());
  if (error == 0) error = sync_metadata_of(file.value());
  if (error != 0) res.status = to_nfsstat3(Errno{error});
  return res;
}

}  // namespace weft::serve
