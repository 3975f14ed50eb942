#pragma once

#include "nfsulb/schema.h"

// Types of NFS version 3 (RFC 1813 section 2.6) that other programs use too.
namespace weft::nfsulb {

inline constexpr Type nfs_fh3 = xdr::opaque<64>;
inline constexpr Type nfstime3 = xdr::structure<xdr::uint32, xdr::uint32>;
// type, mode, nlink, uid, gid; size, used; rdev; fsid, fileid; atime, mtime, ctime
inline constexpr Type fattr3 = xdr::opaque_fixed<5 * 4 + 2 * 8 + 8 + 2 * 8 + 3 * 8>;
inline constexpr Type post_op_attr = xdr::optional<fattr3>;

}  // namespace weft::nfsulb
