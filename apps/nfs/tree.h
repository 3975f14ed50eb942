#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/nfs/session.h"

// Names and directories of a mounted export. Errors name the remote name that they are about.
namespace weft::nfs {

struct Node {
  nfs3::NfsFh3 fh;
  nfs3::Fattr3 attributes;

  bool is_dir() const { return attributes.type == nfs3::Ftype3::kDir; }
  bool is_symlink() const { return attributes.type == nfs3::Ftype3::kLnk; }
  bool is_regular() const { return attributes.type == nfs3::Ftype3::kReg; }
};

struct DirEntry {
  std::string name;
  Node node;
};

// Parent is where a new name goes: an existing directory and the name in it.
struct Parent {
  Node dir;
  std::string name;
};

enum class FollowLast : bool { kNo, kYes };

// resolve walks from the export's root to url.path. Symbolic links on the way are followed here, at most 40 of them,
// and never out of the export; the last name's only with kYes (or where a trailing slash demands a directory).
absl::StatusOr<Node> resolve(Session& session, const Url& url, FollowLast follow);

// resolve_parent walks to the directory of url's last name. Errors: kInvalidArgument where url is the root.
absl::StatusOr<Parent> resolve_parent(Session& session, const Url& url);

// lookup finds one name in a directory.
absl::StatusOr<Node> lookup(Session& session, const nfs3::NfsFh3& dir, const std::string& name, const Url& url);

// link_text: what a symbolic link points to.
absl::StatusOr<std::string> link_text(Session& session, const nfs3::NfsFh3& fh, const Url& url);

// list reads a directory whole, without "." and "..", in the order of names. Every name is safe to use as one: not
// empty, without "/" and NUL.
absl::StatusOr<std::vector<DirEntry>> list(Session& session, const nfs3::NfsFh3& dir, const Url& url);

// below_export: what is left of names below the export; kInvalidArgument where they are not in it.
absl::StatusOr<std::vector<std::string>> below_export(const Session& session, const std::vector<std::string>& names);

}  // namespace weft::nfs
