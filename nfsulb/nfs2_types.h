#pragma once

#include "nfsulb/schema.h"

// Types of NFS version 2 (RFC 1094 section 2.3) that MOUNT and NFSACL use too.
namespace weft::nfsulb {

inline constexpr Type fhandle = xdr::opaque_fixed<32>;
// type, mode, nlink, uid, gid, size, blocksize, rdev, blocks, fsid, fileid; atime, mtime, ctime
inline constexpr Type fattr = xdr::opaque_fixed<11 * 4 + 3 * 8>;
inline constexpr Type attrstat = xdr::result<fattr>;

}  // namespace weft::nfsulb
