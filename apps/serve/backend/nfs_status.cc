#include "apps/serve/backend/nfs_status.h"

#include <sys/stat.h>

#include <algorithm>
#include <limits>

namespace weft::serve {

using nfs3::Ftype3;
using nfs3::Nfsstat3;

Nfsstat3 to_nfsstat3(Errno error) {
  switch (error.value) {
    case EPERM: return Nfsstat3::kPerm;
    case ENOENT: return Nfsstat3::kNoent;
    case EIO: return Nfsstat3::kIo;
    case ENXIO: return Nfsstat3::kNxio;
    case EACCES:
    case ELOOP:  // openat2: a symbolic link stands in the place of a directory
    case ETXTBSY:
    case EBUSY: return Nfsstat3::kAcces;
    case EEXIST: return Nfsstat3::kExist;
    case EXDEV: return Nfsstat3::kXdev;
    case ENODEV: return Nfsstat3::kNodev;
    case ENOTDIR: return Nfsstat3::kNotdir;
    case EISDIR: return Nfsstat3::kIsdir;
    case EINVAL: return Nfsstat3::kInval;
    case EFBIG:
    case EOVERFLOW: return Nfsstat3::kFbig;
    case ENOSPC: return Nfsstat3::kNospc;
    case EROFS: return Nfsstat3::kRofs;
    case EMLINK: return Nfsstat3::kMlink;
    case ENAMETOOLONG: return Nfsstat3::kNametoolong;
    case ENOTEMPTY: return Nfsstat3::kNotempty;
    case EDQUOT: return Nfsstat3::kDquot;
    case ESTALE: return Nfsstat3::kStale;
    case EBADMSG: return Nfsstat3::kBadhandle;
    case EOPNOTSUPP: return Nfsstat3::kNotsupp;
    case EPROTOTYPE: return Nfsstat3::kBadtype;  // MKNOD of a type that other procedures make
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE: return Nfsstat3::kJukebox;
    default: return Nfsstat3::kServerfault;
  }
}

nfs3::Nfstime3 to_nfstime3(const timespec& t) {
  auto seconds = std::clamp<std::int64_t>(t.tv_sec, 0, std::numeric_limits<std::uint32_t>::max());
  return {.seconds = static_cast<std::uint32_t>(seconds), .nseconds = static_cast<std::uint32_t>(t.tv_nsec)};
}

nfs3::WccAttr to_wcc_attr(const FileStat& st) {
  return {.size = st.size, .mtime = to_nfstime3(st.mtime), .ctime = to_nfstime3(st.ctime)};
}

nfs3::Fattr3 to_fattr3(const FileStat& st, std::uint64_t fsid) {
  nfs3::Fattr3 out;
  switch (st.mode & S_IFMT) {
    case S_IFDIR: out.type = Ftype3::kDir; break;
    case S_IFBLK: out.type = Ftype3::kBlk; break;
    case S_IFCHR: out.type = Ftype3::kChr; break;
    case S_IFLNK: out.type = Ftype3::kLnk; break;
    case S_IFSOCK: out.type = Ftype3::kSock; break;
    case S_IFIFO: out.type = Ftype3::kFifo; break;
    default: out.type = Ftype3::kReg; break;
  }
  out.mode = st.mode & 07777;
  out.nlink = st.nlink;
  out.uid = st.uid;
  out.gid = st.gid;
  out.size = st.size;
  out.used = st.used;
  out.rdev = {.specdata1 = st.rdev_major, .specdata2 = st.rdev_minor};
  out.fsid = fsid;
  out.fileid = st.ino;
  out.atime = to_nfstime3(st.atime);
  out.mtime = to_nfstime3(st.mtime);
  out.ctime = to_nfstime3(st.ctime);
  return out;
}

}  // namespace weft::serve
