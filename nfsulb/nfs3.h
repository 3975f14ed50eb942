#pragma once

#include "rpcrdma/binding.h"

namespace weft::nfsulb {

// nfs3_binding: the Upper-Layer Binding of NFS version 3 (RFC 8267 sections 3 and 4). Arguments: the data of WRITE and
// the path text of SYMLINK are eligible. Results: the data of READ and the path text of READLINK. The bounds of Replies
// are exact for the largest result that RFC 1813 allows. The bounds of READDIR and READDIRPLUS follow the counts in the
// Call.
const rpcrdma::Binding& nfs3_binding();

}  // namespace weft::nfsulb
