#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/nfs/flow.h"
#include "apps/nfs/session.h"
#include "apps/nfs/task.h"

// Names and directories of a mounted export. Errors give the remote name that they are about.
namespace weft::nfs {

struct Node {
  nfs3::NfsFh3 fh;
  nfs3::Fattr3 attributes;

  bool is_dir() const { return attributes.type == nfs3::Ftype3::kDir; }
  bool is_symlink() const { return attributes.type == nfs3::Ftype3::kLnk; }
  bool is_regular() const { return attributes.type == nfs3::Ftype3::kReg; }
};

// DirEntry is a name in a directory. status is not OK if the server tells nothing but the name, as for a filesystem
// mounted there that it does not serve; node is empty then.
struct DirEntry {
  std::string name;
  Node node;
  absl::Status status = absl::OkStatus();
};

// Parent is the place of a new name: an existing directory and the name in it.
struct Parent {
  Node dir;
  std::string name;
};

enum class FollowLast : bool { kNo, kYes };

// resolve walks from the export's root to url.path. It follows symbolic links on the way, at most 40 of them, and never
// out of the export. It follows the last name's link only with kYes (or if a trailing slash demands a directory).
absl::StatusOr<Node> resolve(Session& session, const Url& url, FollowLast follow);

// resolve_parent walks to the directory of url's last name. kInvalidArgument: url is the root.
absl::StatusOr<Parent> resolve_parent(Session& session, const Url& url);

// lookup finds one name in a directory.
absl::StatusOr<Node> lookup(Session& session, const nfs3::NfsFh3& dir, const std::string& name, const Url& url);

// link_text: the target of a symbolic link.
absl::StatusOr<std::string> link_text(Session& session, const nfs3::NfsFh3& fh, const Url& url);

// Listing reads a directory page by page, so that a directory which never ends needs no more memory than one page. The
// names come in the server's order, without "." and "..". Every name is safe to use as one: not empty, without "/" and
// NUL. Listing notices a server that lists a directory in a circle after a few rounds. It does not notice a server that
// makes up new names for ever.
class Listing {
 public:
  // url is for error messages.
  Listing(Flow& flow, nfs3::NfsFh3 dir, Url url) : flow_(flow), dir_(dir), url_(std::move(url)) {}

  bool at_end() const { return eof_; }
  // next appends the entries of the next page to `entries`; a page may have none. Precondition: not at_end().
  Task<absl::Status> next(std::vector<DirEntry>& entries);
  // restart goes back to the beginning.
  void restart();

 private:
  Task<absl::Status> read_plus(std::vector<DirEntry>& entries);
  Task<absl::Status> read_plain(std::vector<DirEntry>& entries);
  Task<absl::Status> add(std::string name, nfs3::PostOpFh3 fh, nfs3::PostOpAttr attributes,
                         std::vector<DirEntry>& entries);
  absl::Status check_progress(std::uint64_t cookie_before);

  Flow& flow_;
  nfs3::NfsFh3 dir_;
  Url url_;
  std::uint64_t cookie_ = 0;
  nfs3::Verf cookieverf_{};
  bool eof_ = false;
  bool plain_ = false;
  // Brent's way to find a circle: an earlier place that is compared with each later one. It moves up in steps that
  // double.
  std::uint64_t earlier_ = 0;
  std::uint64_t num_since_ = 0;
  std::uint64_t next_move_ = 1;
};

// octets_held: the approximate memory of an entry.
inline std::size_t octets_held(const DirEntry& entry) {
  return sizeof(DirEntry) + entry.name.size();
}
std::size_t octets_held(const std::vector<DirEntry>& entries);

// lookup, link_text and Session::symlink as Tasks.
Task<absl::StatusOr<Node>> lookup(Flow& flow, nfs3::NfsFh3 dir, std::string name, Url url);
Task<absl::StatusOr<std::string>> link_text(Flow& flow, nfs3::NfsFh3 fh, Url url);
Task<absl::Status> make_symlink(Flow& flow, nfs3::SymlinkArgs args, nfs3::NewObjectRes& res);

// below_export: the rest of `names` below the export; kInvalidArgument if the names are not in the export.
absl::StatusOr<std::vector<std::string>> below_export(const Session& session, const std::vector<std::string>& names);

}  // namespace weft::nfs
