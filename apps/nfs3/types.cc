#include "apps/nfs3/types.h"

#include <algorithm>

namespace weft::nfs3 {

bool NfsFh3::assign(ConstBytes octets) {
  if (octets.size() > kMaxFh) return false;
  std::copy(octets.begin(), octets.end(), data.begin());
  len = static_cast<std::uint32_t>(octets.size());
  return true;
}

bool operator==(const NfsFh3& a, const NfsFh3& b) {
  return std::equal(a.octets().begin(), a.octets().end(), b.octets().begin(), b.octets().end());
}

namespace {

struct StatusRow {
  Nfsstat3 status;
  const char* name;
  const char* text;
};

constexpr StatusRow kStatuses[] = {
    {Nfsstat3::kOk, "NFS3_OK", "success"},
    {Nfsstat3::kPerm, "NFS3ERR_PERM", "operation not permitted"},
    {Nfsstat3::kNoent, "NFS3ERR_NOENT", "no such file or directory"},
    {Nfsstat3::kIo, "NFS3ERR_IO", "I/O error on the server"},
    {Nfsstat3::kNxio, "NFS3ERR_NXIO", "no such device or address"},
    {Nfsstat3::kAcces, "NFS3ERR_ACCES", "permission denied"},
    {Nfsstat3::kExist, "NFS3ERR_EXIST", "file exists"},
    {Nfsstat3::kXdev, "NFS3ERR_XDEV", "link across file systems"},
    {Nfsstat3::kNodev, "NFS3ERR_NODEV", "no such device"},
    {Nfsstat3::kNotdir, "NFS3ERR_NOTDIR", "not a directory"},
    {Nfsstat3::kIsdir, "NFS3ERR_ISDIR", "is a directory"},
    {Nfsstat3::kInval, "NFS3ERR_INVAL", "invalid argument"},
    {Nfsstat3::kFbig, "NFS3ERR_FBIG", "file too large"},
    {Nfsstat3::kNospc, "NFS3ERR_NOSPC", "no space left on the server"},
    {Nfsstat3::kRofs, "NFS3ERR_ROFS", "read-only file system"},
    {Nfsstat3::kMlink, "NFS3ERR_MLINK", "too many hard links"},
    {Nfsstat3::kNametoolong, "NFS3ERR_NAMETOOLONG", "name too long"},
    {Nfsstat3::kNotempty, "NFS3ERR_NOTEMPTY", "directory not empty"},
    {Nfsstat3::kDquot, "NFS3ERR_DQUOT", "disk quota exceeded on the server"},
    {Nfsstat3::kStale, "NFS3ERR_STALE", "stale file handle: the file was removed on the server"},
    {Nfsstat3::kRemote, "NFS3ERR_REMOTE", "too many levels of remote in path"},
    {Nfsstat3::kBadhandle, "NFS3ERR_BADHANDLE", "file handle refused by the server"},
    {Nfsstat3::kNotSync, "NFS3ERR_NOT_SYNC", "the file changed meanwhile"},
    {Nfsstat3::kBadCookie, "NFS3ERR_BAD_COOKIE", "the directory changed while it was read"},
    {Nfsstat3::kNotsupp, "NFS3ERR_NOTSUPP", "operation not supported by the server"},
    {Nfsstat3::kToosmall, "NFS3ERR_TOOSMALL", "buffer or request too small"},
    {Nfsstat3::kServerfault, "NFS3ERR_SERVERFAULT", "failure on the server"},
    {Nfsstat3::kBadtype, "NFS3ERR_BADTYPE", "type of file not supported by the server"},
    {Nfsstat3::kJukebox, "NFS3ERR_JUKEBOX", "the server is not ready to serve this yet, try again"},
};

const StatusRow* find_status(Nfsstat3 status) {
  const auto* row = std::find_if(std::begin(kStatuses), std::end(kStatuses),
                                 [status](const StatusRow& candidate) { return candidate.status == status; });
  return row == std::end(kStatuses) ? nullptr : row;
}

//                                        argument result changes
constexpr ProcInfo kProcs[kNumProcs] = {
    {"NULL", false, false, false},   {"GETATTR", false, false, false}, {"SETATTR", false, false, true},
    {"LOOKUP", false, false, false}, {"ACCESS", false, false, false},  {"READLINK", false, true, false},
    {"READ", false, true, false},    {"WRITE", true, false, true},     {"CREATE", false, false, true},
    {"MKDIR", false, false, true},   {"SYMLINK", true, false, true},   {"MKNOD", false, false, true},
    {"REMOVE", false, false, true},  {"RMDIR", false, false, true},    {"RENAME", false, false, true},
    {"LINK", false, false, true},    {"READDIR", false, false, false}, {"READDIRPLUS", false, false, false},
    {"FSSTAT", false, false, false}, {"FSINFO", false, false, false},  {"PATHCONF", false, false, false},
    {"COMMIT", false, false, false}};

}  // namespace

const char* nfsstat3_name(Nfsstat3 status) {
  const StatusRow* row = find_status(status);
  return row ? row->name : "NFS3ERR_?";
}

const char* nfsstat3_text(Nfsstat3 status) {
  const StatusRow* row = find_status(status);
  return row ? row->text : "unknown NFS status";
}

const ProcInfo* proc_info(std::uint32_t procedure) {
  return procedure < kNumProcs ? &kProcs[procedure] : nullptr;
}

}  // namespace weft::nfs3
