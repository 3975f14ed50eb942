#pragma once

#include <string>

#include "apps/nfs3/types.h"

// The text form of attributes.
namespace weft::nfs {

// type_name: "file", "directory", "symlink", ...
const char* type_name(nfs3::Ftype3 type);
// mode_text: "-rwxr-xr-x", as ls(1) writes it.
std::string mode_text(const nfs3::Fattr3& attributes);
// time_text: RFC 3339, UTC, whole seconds.
std::string time_text(const nfs3::Nfstime3& time);

}  // namespace weft::nfs
