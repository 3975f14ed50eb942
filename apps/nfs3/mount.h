#pragma once

#include <string>
#include <vector>

#include "apps/nfs3/types.h"
#include "rpcrdma/xdr/xdr.h"

// MOUNT version 3 (RFC 1813 section 5): values and XDR of its six procedures. NULL, the results of UMNT and UMNTALL,
// and the arguments of DUMP, UMNTALL and EXPORT are void. parse and emit work as in codec.h.
namespace weft::nfs3 {

inline constexpr std::uint32_t kMountProgram = 100005;
inline constexpr std::uint32_t kMountVersion = 3;

inline constexpr std::size_t kMntPathLen = 1024;    // MNTPATHLEN
inline constexpr std::size_t kMntNameLen = 255;     // MNTNAMLEN
inline constexpr std::size_t kMaxFlavors = 64;      // auth_flavors<> has no bound of its own
inline constexpr std::size_t kMaxMounts = 1 << 16;  // elements of one mountlist or exports list, likewise
inline constexpr std::size_t kMaxGroups = 1 << 12;  // groups of one export, likewise

enum class MountProc : std::uint32_t { kNull, kMnt, kDump, kUmnt, kUmntall, kExport };
inline constexpr std::uint32_t kNumMountProcs = 6;

enum class Mountstat3 : std::uint32_t {
  kOk = 0,
  kPerm = 1,
  kNoent = 2,
  kIo = 5,
  kAcces = 13,
  kNotdir = 20,
  kInval = 22,
  kNametoolong = 63,
  kNotsupp = 10004,
  kServerfault = 10006,
};

// mountstat3_text: a few words for people, for example "permission denied".
const char* mountstat3_text(Mountstat3 status);

// DirpathArgs: the arguments of MNT and UMNT.
struct DirpathArgs {
  std::string dirpath;
  friend bool operator==(const DirpathArgs&, const DirpathArgs&) = default;
};

struct MntRes {
  Mountstat3 fhs_status = Mountstat3::kOk;
  NfsFh3 fhandle;                           // kOk
  std::vector<std::uint32_t> auth_flavors;  // kOk
  friend bool operator==(const MntRes&, const MntRes&) = default;
};

struct Mountbody {
  std::string ml_hostname;
  std::string ml_directory;
  friend bool operator==(const Mountbody&, const Mountbody&) = default;
};

struct DumpRes {
  std::vector<Mountbody> mounts;
  friend bool operator==(const DumpRes&, const DumpRes&) = default;
};

struct Exportnode {
  std::string ex_dir;
  std::vector<std::string> ex_groups;  // empty: all clients
  friend bool operator==(const Exportnode&, const Exportnode&) = default;
};

struct ExportRes {
  std::vector<Exportnode> exports;
  friend bool operator==(const ExportRes&, const ExportRes&) = default;
};

[[nodiscard]] bool parse(rpcrdma::xdr::XdrReader& reader, DirpathArgs& value);
void emit(rpcrdma::xdr::XdrWriter& writer, const DirpathArgs& value);
[[nodiscard]] bool parse(rpcrdma::xdr::XdrReader& reader, MntRes& value);
void emit(rpcrdma::xdr::XdrWriter& writer, const MntRes& value);
[[nodiscard]] bool parse(rpcrdma::xdr::XdrReader& reader, DumpRes& value);
void emit(rpcrdma::xdr::XdrWriter& writer, const DumpRes& value);
[[nodiscard]] bool parse(rpcrdma::xdr::XdrReader& reader, ExportRes& value);
void emit(rpcrdma::xdr::XdrWriter& writer, const ExportRes& value);

}  // namespace weft::nfs3
