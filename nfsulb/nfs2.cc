#include "nfsulb/nfs2_types.h"
#include "nfsulb/schemas.h"

// NFS version 2 (RFC 1094 section 2). Eligible as in version 3 (RFC 8267 section 4).
namespace weft::nfsulb {
namespace {

using namespace xdr;

constexpr std::uint32_t kMaxData = 8192;
constexpr std::uint32_t kMaxPath = 1024;

constexpr Type filename = string<255>;
constexpr Type cookie = opaque_fixed<4>;
// mode, uid, gid, size; atime, mtime
constexpr Type sattr = opaque_fixed<4 * 4 + 2 * 8>;
constexpr Type diropargs = structure<fhandle, filename>;

constexpr Type sattrargs = structure<fhandle, sattr>;
constexpr Type readargs = structure<fhandle, uint32, reply_count, uint32>;
constexpr Type writeargs = structure<fhandle, uint32, uint32, uint32, eligible<Bound::kOwn, kMaxData>>;
constexpr Type createargs = structure<diropargs, sattr>;
constexpr Type renameargs = structure<diropargs, diropargs>;
constexpr Type linkargs = structure<fhandle, diropargs>;
constexpr Type symlinkargs = structure<diropargs, eligible<Bound::kOwn, kMaxPath>, sattr>;
constexpr Type readdirargs = structure<fhandle, cookie, reply_count>;

constexpr Type diropres = result<structure<fhandle, fattr>>;
constexpr Type readlinkres = result<eligible<Bound::kOwn, kMaxPath>>;
constexpr Type readres = result<structure<fattr, eligible<Bound::kCount, kMaxData>>>;
constexpr Type entry = structure<uint32, filename, cookie>;
// count covers the entries, not the list's end and eof.
constexpr Type readdirres = result<structure<within_count<list<entry>, 4>, boolean>>;
constexpr Type statfsres = result<opaque_fixed<5 * 4>>;
constexpr Type nfsstat = uint32;

using enum Runs;
constexpr Operation kNfs2Procedures[] = {
    operation(0, "NULL", kAgain, void_type, void_type),        operation(1, "GETATTR", kAgain, fhandle, attrstat),
    operation(2, "SETATTR", kOnce, sattrargs, attrstat),       operation(3, "ROOT", kAgain, void_type, void_type),
    operation(4, "LOOKUP", kAgain, diropargs, diropres),       operation(5, "READLINK", kAgain, fhandle, readlinkres),
    operation(6, "READ", kAgain, readargs, readres),           operation(7, "WRITECACHE", kAgain, void_type, void_type),
    operation(8, "WRITE", kOnce, writeargs, attrstat),         operation(9, "CREATE", kOnce, createargs, diropres),
    operation(10, "REMOVE", kOnce, diropargs, nfsstat),        operation(11, "RENAME", kOnce, renameargs, nfsstat),
    operation(12, "LINK", kOnce, linkargs, nfsstat),           operation(13, "SYMLINK", kOnce, symlinkargs, nfsstat),
    operation(14, "MKDIR", kOnce, createargs, diropres),       operation(15, "RMDIR", kOnce, diropargs, nfsstat),
    operation(16, "READDIR", kAgain, readdirargs, readdirres), operation(17, "STATFS", kAgain, fhandle, statfsres),
};

}  // namespace

constexpr Program kNfs2 = {kNfs2Procedures};

}  // namespace weft::nfsulb
