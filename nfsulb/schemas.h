#pragma once

#include "nfsulb/schema.h"

// One schema for each program and version.
namespace weft::nfsulb {

extern const Program kNfs2;
extern const Program kNfs3;
extern const Program kNfs4;
extern const Program kNfs4Callback;
extern const Program kMount1;
extern const Program kMount2;
extern const Program kMount3;
extern const Program kNlm1;
extern const Program kNlm3;
extern const Program kNlm4;
extern const Program kNsm1;
extern const Program kNfsAcl2;
extern const Program kNfsAcl3;

}  // namespace weft::nfsulb
