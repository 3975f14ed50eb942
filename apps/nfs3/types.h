#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"

// The types of NFS version 3 (RFC 1813 section 2.6) and the arguments and results of its 22 procedures (section 3), as
// values. Unions over a status are flat: `status` says which fields count.
namespace weft::nfs3 {

inline constexpr std::uint32_t kProgram = 100003;
inline constexpr std::uint32_t kVersion = 3;

inline constexpr std::size_t kMaxFh = 64;   // NFS3_FHSIZE
inline constexpr std::size_t kVerfLen = 8;  // NFS3_COOKIEVERFSIZE, NFS3_CREATEVERFSIZE, NFS3_WRITEVERFSIZE
// filename3 has no bound of its own. In results a longer name is garbage here. In arguments it is taken as far as the
// message goes, and the server answers NFS3ERR_NAMETOOLONG.
inline constexpr std::size_t kMaxName = 1024;
inline constexpr std::size_t kMaxPath = 4096;        // nfspath3 likewise; Linux peers carry up to PATH_MAX
inline constexpr std::uint32_t kMaxData = 1 << 26;   // octets in one READ or WRITE; a message with more is garbage
inline constexpr std::size_t kMaxEntries = 1 << 17;  // directory entries in one READDIR result, likewise

enum class Proc : std::uint32_t {
  kNull,
  kGetattr,
  kSetattr,
  kLookup,
  kAccess,
  kReadlink,
  kRead,
  kWrite,
  kCreate,
  kMkdir,
  kSymlink,
  kMknod,
  kRemove,
  kRmdir,
  kRename,
  kLink,
  kReaddir,
  kReaddirplus,
  kFsstat,
  kFsinfo,
  kPathconf,
  kCommit,
};
inline constexpr std::uint32_t kNumProcs = 22;

enum class Nfsstat3 : std::uint32_t {
  kOk = 0,
  kPerm = 1,
  kNoent = 2,
  kIo = 5,
  kNxio = 6,
  kAcces = 13,
  kExist = 17,
  kXdev = 18,
  kNodev = 19,
  kNotdir = 20,
  kIsdir = 21,
  kInval = 22,
  kFbig = 27,
  kNospc = 28,
  kRofs = 30,
  kMlink = 31,
  kNametoolong = 63,
  kNotempty = 66,
  kDquot = 69,
  kStale = 70,
  kRemote = 71,
  kBadhandle = 10001,
  kNotSync = 10002,
  kBadCookie = 10003,
  kNotsupp = 10004,
  kToosmall = 10005,
  kServerfault = 10006,
  kBadtype = 10007,
  kJukebox = 10008,
};

// nfsstat3_name returns the RFC's name, for example "NFS3ERR_NOENT", or "NFS3ERR_?" for a number that the RFC lacks.
const char* nfsstat3_name(Nfsstat3 status);
// nfsstat3_text gives the meaning of a status in a few words, for example "no such file or directory".
const char* nfsstat3_text(Nfsstat3 status);

enum class Ftype3 : std::uint32_t { kReg = 1, kDir = 2, kBlk = 3, kChr = 4, kLnk = 5, kSock = 6, kFifo = 7 };

// NfsFh3 is nfs_fh3: up to 64 octets that only the server understands.
struct NfsFh3 {
  std::array<std::uint8_t, kMaxFh> data{};
  std::uint32_t len = 0;

  ConstBytes octets() const { return ConstBytes(data).first(len); }
  // False, without a change, if there are more than 64.
  [[nodiscard]] bool assign(ConstBytes octets);
  friend bool operator==(const NfsFh3& a, const NfsFh3& b);
};

using Verf = std::array<std::uint8_t, kVerfLen>;  // cookieverf3, createverf3, writeverf3

struct Specdata3 {
  std::uint32_t specdata1 = 0;
  std::uint32_t specdata2 = 0;
  friend bool operator==(const Specdata3&, const Specdata3&) = default;
};

struct Nfstime3 {
  std::uint32_t seconds = 0;
  std::uint32_t nseconds = 0;
  friend bool operator==(const Nfstime3&, const Nfstime3&) = default;
};

struct Fattr3 {
  Ftype3 type = Ftype3::kReg;
  std::uint32_t mode = 0;
  std::uint32_t nlink = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t size = 0;
  std::uint64_t used = 0;
  Specdata3 rdev;
  std::uint64_t fsid = 0;
  std::uint64_t fileid = 0;
  Nfstime3 atime;
  Nfstime3 mtime;
  Nfstime3 ctime;
  friend bool operator==(const Fattr3&, const Fattr3&) = default;
};

struct WccAttr {
  std::uint64_t size = 0;
  Nfstime3 mtime;
  Nfstime3 ctime;
  friend bool operator==(const WccAttr&, const WccAttr&) = default;
};

using PostOpAttr = std::optional<Fattr3>;
using PreOpAttr = std::optional<WccAttr>;
using PostOpFh3 = std::optional<NfsFh3>;

struct WccData {
  PreOpAttr before;
  PostOpAttr after;
  friend bool operator==(const WccData&, const WccData&) = default;
};

enum class TimeHow : std::uint32_t { kDontChange = 0, kSetToServerTime = 1, kSetToClientTime = 2 };

struct SetTime {
  TimeHow how = TimeHow::kDontChange;
  Nfstime3 time;  // with kSetToClientTime
  friend bool operator==(const SetTime&, const SetTime&) = default;
};

struct Sattr3 {
  std::optional<std::uint32_t> mode;
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  std::optional<std::uint64_t> size;
  SetTime atime;
  SetTime mtime;
  friend bool operator==(const Sattr3&, const Sattr3&) = default;
};

struct Diropargs3 {
  NfsFh3 dir;
  std::string name;  // any octets: the RFC leaves "/", NUL, "." and ".." to the server
  friend bool operator==(const Diropargs3&, const Diropargs3&) = default;
};

// Item is a DDP-eligible item (RFC 8267 section 4), always the last field of its message. `len` is its count word. If
// the item travels in a chunk, `data` stays empty and the XDR ends behind the count word. If it is inline, `data` views
// it, in the parsed message or in the emitter's memory.
struct Item {
  std::uint32_t len = 0;
  ConstBytes data;
};

// ItemForm: whether a message's item stands in its XDR, or was left out together with its padding.
enum class ItemForm : std::uint8_t { kInline, kReduced };

// --- arguments ---

struct VoidArgs {
  friend bool operator==(const VoidArgs&, const VoidArgs&) = default;
};

// FhArgs: the arguments of GETATTR, READLINK, FSSTAT, FSINFO and PATHCONF.
struct FhArgs {
  NfsFh3 object;
  friend bool operator==(const FhArgs&, const FhArgs&) = default;
};

struct SetattrArgs {
  NfsFh3 object;
  Sattr3 new_attributes;
  std::optional<Nfstime3> guard;  // sattrguard3: the ctime the object must have
  friend bool operator==(const SetattrArgs&, const SetattrArgs&) = default;
};

// DiropArgs: the arguments of LOOKUP, REMOVE and RMDIR.
struct DiropArgs {
  Diropargs3 what;
  friend bool operator==(const DiropArgs&, const DiropArgs&) = default;
};

inline constexpr std::uint32_t kAccessRead = 0x01;
inline constexpr std::uint32_t kAccessLookup = 0x02;
inline constexpr std::uint32_t kAccessModify = 0x04;
inline constexpr std::uint32_t kAccessExtend = 0x08;
inline constexpr std::uint32_t kAccessDelete = 0x10;
inline constexpr std::uint32_t kAccessExecute = 0x20;

struct AccessArgs {
  NfsFh3 object;
  std::uint32_t access = 0;
  friend bool operator==(const AccessArgs&, const AccessArgs&) = default;
};

struct ReadArgs {
  NfsFh3 file;
  std::uint64_t offset = 0;
  std::uint32_t count = 0;
  friend bool operator==(const ReadArgs&, const ReadArgs&) = default;
};

enum class StableHow : std::uint32_t { kUnstable = 0, kDataSync = 1, kFileSync = 2 };

struct WriteArgs {
  NfsFh3 file;
  std::uint64_t offset = 0;
  std::uint32_t count = 0;  // the RFC wants it equal to data.len; the server decides about a difference
  StableHow stable = StableHow::kUnstable;
  Item data;
};

enum class Createmode3 : std::uint32_t { kUnchecked = 0, kGuarded = 1, kExclusive = 2 };

struct CreateArgs {
  Diropargs3 where;
  Createmode3 mode = Createmode3::kUnchecked;
  Sattr3 obj_attributes;  // unless kExclusive
  Verf verf{};            // with kExclusive
  friend bool operator==(const CreateArgs&, const CreateArgs&) = default;
};

struct MkdirArgs {
  Diropargs3 where;
  Sattr3 attributes;
  friend bool operator==(const MkdirArgs&, const MkdirArgs&) = default;
};

struct SymlinkArgs {
  Diropargs3 where;
  Sattr3 symlink_attributes;
  Item symlink_data;
};

struct MknodArgs {
  Diropargs3 where;
  Ftype3 type = Ftype3::kFifo;
  Sattr3 attributes;  // kChr, kBlk, kSock, kFifo
  Specdata3 spec;     // kChr, kBlk
  friend bool operator==(const MknodArgs&, const MknodArgs&) = default;
};

struct RenameArgs {
  Diropargs3 from;
  Diropargs3 to;
  friend bool operator==(const RenameArgs&, const RenameArgs&) = default;
};

struct LinkArgs {
  NfsFh3 file;
  Diropargs3 link;
  friend bool operator==(const LinkArgs&, const LinkArgs&) = default;
};

struct ReaddirArgs {
  NfsFh3 dir;
  std::uint64_t cookie = 0;
  Verf cookieverf{};
  std::uint32_t count = 0;  // octets of READDIR3resok, XDR overhead included
  friend bool operator==(const ReaddirArgs&, const ReaddirArgs&) = default;
};

struct ReaddirplusArgs {
  NfsFh3 dir;
  std::uint64_t cookie = 0;
  Verf cookieverf{};
  std::uint32_t dircount = 0;  // octets of fileids, names and cookies
  std::uint32_t maxcount = 0;  // octets of READDIRPLUS3resok
  friend bool operator==(const ReaddirplusArgs&, const ReaddirplusArgs&) = default;
};

struct CommitArgs {
  NfsFh3 file;
  std::uint64_t offset = 0;
  std::uint32_t count = 0;  // 0: to the end
  friend bool operator==(const CommitArgs&, const CommitArgs&) = default;
};

// --- results ---

struct VoidRes {
  friend bool operator==(const VoidRes&, const VoidRes&) = default;
};

struct GetattrRes {
  Nfsstat3 status = Nfsstat3::kOk;
  Fattr3 obj_attributes;  // kOk
  friend bool operator==(const GetattrRes&, const GetattrRes&) = default;
};

// WccRes: the results of SETATTR, REMOVE and RMDIR.
struct WccRes {
  Nfsstat3 status = Nfsstat3::kOk;
  WccData wcc;  // always
  friend bool operator==(const WccRes&, const WccRes&) = default;
};

struct LookupRes {
  Nfsstat3 status = Nfsstat3::kOk;
  NfsFh3 object;              // kOk
  PostOpAttr obj_attributes;  // kOk
  PostOpAttr dir_attributes;  // always
  friend bool operator==(const LookupRes&, const LookupRes&) = default;
};

struct AccessRes {
  Nfsstat3 status = Nfsstat3::kOk;
  PostOpAttr obj_attributes;  // always
  std::uint32_t access = 0;   // kOk
  friend bool operator==(const AccessRes&, const AccessRes&) = default;
};

struct ReadlinkRes {
  Nfsstat3 status = Nfsstat3::kOk;
  PostOpAttr symlink_attributes;  // always
  Item data;                      // kOk
};

struct ReadRes {
  Nfsstat3 status = Nfsstat3::kOk;
  PostOpAttr file_attributes;  // always
  std::uint32_t count = 0;     // kOk
  bool eof = false;            // kOk
  Item data;                   // kOk
};

struct WriteRes {
  Nfsstat3 status = Nfsstat3::kOk;
  WccData file_wcc;                            // always
  std::uint32_t count = 0;                     // kOk
  StableHow committed = StableHow::kUnstable;  // kOk
  Verf verf{};                                 // kOk
  friend bool operator==(const WriteRes&, const WriteRes&) = default;
};

// NewObjectRes: the results of CREATE, MKDIR, SYMLINK and MKNOD.
struct NewObjectRes {
  Nfsstat3 status = Nfsstat3::kOk;
  PostOpFh3 obj;              // kOk
  PostOpAttr obj_attributes;  // kOk
  WccData dir_wcc;            // always
  friend bool operator==(const NewObjectRes&, const NewObjectRes&) = default;
};

struct RenameRes {
  Nfsstat3 status = Nfsstat3::kOk;
  WccData fromdir_wcc;  // always
  WccData todir_wcc;    // always
  friend bool operator==(const RenameRes&, const RenameRes&) = default;
};

struct LinkRes {
  Nfsstat3 status = Nfsstat3::kOk;
  PostOpAttr file_attributes;  // always
  WccData linkdir_wcc;         // always
  friend bool operator==(const LinkRes&, const LinkRes&) = default;
};

struct Entry3 {
  std::uint64_t fileid = 0;
  std::string name;
  std::uint64_t cookie = 0;
  friend bool operator==(const Entry3&, const Entry3&) = default;
};

struct ReaddirRes {
  Nfsstat3 status = Nfsstat3::kOk;
  PostOpAttr dir_attributes;    // always
  Verf cookieverf{};            // kOk
  std::vector<Entry3> entries;  // kOk
  bool eof = false;             // kOk
  friend bool operator==(const ReaddirRes&, const ReaddirRes&) = default;
};

struct Entryplus3 {
  std::uint64_t fileid = 0;
  std::string name;
  std::uint64_t cookie = 0;
  PostOpAttr name_attributes;
  PostOpFh3 name_handle;
  friend bool operator==(const Entryplus3&, const Entryplus3&) = default;
};

struct ReaddirplusRes {
  Nfsstat3 status = Nfsstat3::kOk;
  PostOpAttr dir_attributes;        // always
  Verf cookieverf{};                // kOk
  std::vector<Entryplus3> entries;  // kOk
  bool eof = false;                 // kOk
  friend bool operator==(const ReaddirplusRes&, const ReaddirplusRes&) = default;
};

struct FsstatRes {
  Nfsstat3 status = Nfsstat3::kOk;
  PostOpAttr obj_attributes;  // always; the rest: kOk
  std::uint64_t tbytes = 0, fbytes = 0, abytes = 0;
  std::uint64_t tfiles = 0, ffiles = 0, afiles = 0;
  std::uint32_t invarsec = 0;
  friend bool operator==(const FsstatRes&, const FsstatRes&) = default;
};

inline constexpr std::uint32_t kFsfLink = 0x01;
inline constexpr std::uint32_t kFsfSymlink = 0x02;
inline constexpr std::uint32_t kFsfHomogeneous = 0x08;
inline constexpr std::uint32_t kFsfCansettime = 0x10;

struct FsinfoRes {
  Nfsstat3 status = Nfsstat3::kOk;
  PostOpAttr obj_attributes;  // always; the rest: kOk
  std::uint32_t rtmax = 0, rtpref = 0, rtmult = 0;
  std::uint32_t wtmax = 0, wtpref = 0, wtmult = 0;
  std::uint32_t dtpref = 0;
  std::uint64_t maxfilesize = 0;
  Nfstime3 time_delta;
  std::uint32_t properties = 0;
  friend bool operator==(const FsinfoRes&, const FsinfoRes&) = default;
};

struct PathconfRes {
  Nfsstat3 status = Nfsstat3::kOk;
  PostOpAttr obj_attributes;  // always; the rest: kOk
  std::uint32_t linkmax = 0;
  std::uint32_t name_max = 0;
  bool no_trunc = false;
  bool chown_restricted = false;
  bool case_insensitive = false;
  bool case_preserving = false;
  friend bool operator==(const PathconfRes&, const PathconfRes&) = default;
};

struct CommitRes {
  Nfsstat3 status = Nfsstat3::kOk;
  WccData file_wcc;  // always
  Verf verf{};       // kOk
  friend bool operator==(const CommitRes&, const CommitRes&) = default;
};

// --- sizes, for servers that fill a READDIR result up to the client's limit ---

// xdr_len: octets of a counted opaque of `len` octets in XDR.
constexpr std::size_t xdr_len(std::size_t len) {
  return 4 + (len + 3) / 4 * 4;
}

// Octets of READDIR3resok (and READDIRPLUS3resok) without entries. `count` (`maxcount`) covers them first.
constexpr std::size_t readdir_base_len(bool has_dir_attributes) {
  return 4 + (has_dir_attributes ? 84u : 0u) + kVerfLen + 4 + 4;
}
// Octets that one entry3 adds.
constexpr std::size_t entry_len(std::size_t name_len) {
  return 4 + 8 + xdr_len(name_len) + 8;
}
// Octets that one entryplus3 adds.
constexpr std::size_t entryplus_len(std::size_t name_len, bool has_attributes, std::optional<std::size_t> fh_len) {
  return entry_len(name_len) + 4 + (has_attributes ? 84u : 0u) + 4 + (fh_len ? xdr_len(*fh_len) : 0u);
}

// ProcInfo is one row of the table of procedures.
struct ProcInfo {
  const char* name;        // "GETATTR"
  bool eligible_argument;  // WRITE, SYMLINK (RFC 8267 section 4)
  bool eligible_result;    // READ, READLINK
  bool changes;            // a Call without an answer may have changed something
};

// proc_info: null for a number that NFSv3 does not use.
const ProcInfo* proc_info(std::uint32_t procedure);

}  // namespace weft::nfs3
