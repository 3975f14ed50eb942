#pragma once

#include "apps/nfs3/types.h"
#include "apps/serve/export/file_stat.h"
#include "apps/serve/export/outcome.h"

namespace weft::serve {

// to_nfsstat3: the status of RFC 1813 section 2.6 for an errno; kServerfault for an errno without one.
nfs3::Nfsstat3 to_nfsstat3(Errno error);

// to_fattr3, to_wcc_attr: the result of statx in the RFC's form. Seconds outside of 32 bits become the nearest that
// fit.
nfs3::Fattr3 to_fattr3(const FileStat& st, std::uint64_t fsid);
nfs3::WccAttr to_wcc_attr(const FileStat& st);
nfs3::Nfstime3 to_nfstime3(const timespec& t);

}  // namespace weft::serve
