#include "apps/nfs/tree.h"

#include <algorithm>

namespace weft::nfs {
namespace {

using nfs3::Nfsstat3;
using nfs3::Proc;

constexpr int kMaxSymlinks = 40;
constexpr std::uint32_t kDirMaxcount = 64 << 10;  // octets of one READDIRPLUS result
constexpr std::uint32_t kDirDircount = 16 << 10;
constexpr std::size_t kMaxDirEntries = 16 << 20;  // beyond which a directory is taken for a server that never ends

bool is_safe_name(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

bool is_dot(const std::string& name) {
  return name == "." || name == "..";
}

absl::Status not_a_directory(const Url& url) {
  return absl::FailedPreconditionError(url.str() + ": not a directory");
}

// Walker is one resolution: the directories above the current place, and the names still to go.
class Walker {
 public:
  Walker(Session& session, const Url& url) : session_(session), url_(url) {}

  absl::StatusOr<Node> walk(FollowLast follow) {
    auto names = below_export(session_, url_.path);
    if (!names.ok()) return names.status();
    todo_.assign(names->begin(), names->end());
    if (absl::Status status = start_at_root(); !status.ok()) return status;
    const bool follow_last = follow == FollowLast::kYes || url_.trailing_slash;
    while (!todo_.empty()) {
      if (absl::Status status = step(follow_last); !status.ok()) return status;
    }
    if (url_.trailing_slash && !path_.back().is_dir()) return not_a_directory(url_);
    return path_.back();
  }

 private:
  absl::Status start_at_root() {
    if (root_.fh.len == 0) {
      nfs3::GetattrRes res;
      absl::Status status = session_.call(Proc::kGetattr, nfs3::FhArgs{session_.root()}, res);
      if (status.ok()) status = check(res.status, "the export's root");
      if (!status.ok()) return explain(status, url_.str());
      root_ = Node{session_.root(), res.obj_attributes};
    }
    path_ = {root_};
    return absl::OkStatus();
  }

  absl::Status step(bool follow_last) {
    const std::string name = std::move(todo_.front());
    todo_.pop_front();
    if (name == ".") return absl::OkStatus();
    if (name == "..") {
      if (path_.size() > 1) path_.pop_back();
      return absl::OkStatus();
    }
    if (!path_.back().is_dir()) return not_a_directory(url_);
    auto node = lookup(session_, path_.back().fh, name, url_);
    if (!node.ok()) return node.status();
    if (node->is_symlink() && (follow_last || !todo_.empty())) return follow(*node);
    path_.push_back(std::move(*node));
    return absl::OkStatus();
  }

  absl::Status follow(const Node& link) {
    if (++num_symlinks_ > kMaxSymlinks) {
      return absl::FailedPreconditionError(url_.str() + ": too many levels of symbolic links");
    }
    auto text = link_text(session_, link.fh, url_);
    if (!text.ok()) return text.status();
    std::vector<std::string> names = split_path(*text);
    if (text->starts_with('/')) {
      auto below = below_export(session_, names);
      if (!below.ok()) {
        return absl::FailedPreconditionError(url_.str() + ": symbolic link to " + *text +
                                             ", which is outside of the export");
      }
      names = std::move(*below);
      if (absl::Status status = start_at_root(); !status.ok()) return status;
    }
    todo_.insert(todo_.begin(), names.begin(), names.end());
    return absl::OkStatus();
  }

  Session& session_;
  const Url& url_;
  Node root_;
  std::vector<Node> path_;
  std::deque<std::string> todo_;
  int num_symlinks_ = 0;
};

// Lister reads one directory, by READDIRPLUS or, where the server does not know it, by READDIR.
class Lister {
 public:
  Lister(Session& session, const nfs3::NfsFh3& dir, const Url& url) : session_(session), dir_(dir), url_(url) {}

  absl::StatusOr<std::vector<DirEntry>> list() {
    while (!eof_) {
      const std::uint64_t cookie_before = cookie_;
      absl::Status status = plain_ ? read_plain() : read_plus();
      if (!status.ok()) return status;
      if (!eof_ && cookie_ == cookie_before && !retry_) {
        return absl::UnavailableError(url_.str() + ": the server does not get on with the directory");
      }
      retry_ = false;
    }
    std::sort(entries_.begin(), entries_.end(), [](const DirEntry& a, const DirEntry& b) { return a.name < b.name; });
    return std::move(entries_);
  }

 private:
  absl::Status read_plus() {
    nfs3::ReaddirplusRes res;
    const nfs3::ReaddirplusArgs args{dir_, cookie_, cookieverf_, kDirDircount, kDirMaxcount};
    const absl::Status status = session_.call(Proc::kReaddirplus, args, res);
    const bool unknown = absl::IsUnimplemented(status) || (status.ok() && res.status == Nfsstat3::kNotsupp);
    if (unknown && cookie_ == 0) {
      plain_ = retry_ = true;
      return absl::OkStatus();
    }
    if (!status.ok()) return explain(status, url_.str());
    if (absl::Status failed = check(res.status, url_.str()); !failed.ok()) return failed;
    for (nfs3::Entryplus3& entry : res.entries) {
      cookie_ = entry.cookie;
      if (absl::Status added = add(entry.name, entry.name_handle, entry.name_attributes); !added.ok()) return added;
    }
    eof_ = res.eof;
    cookieverf_ = res.cookieverf;
    return absl::OkStatus();
  }

  absl::Status read_plain() {
    nfs3::ReaddirRes res;
    const nfs3::ReaddirArgs args{dir_, cookie_, cookieverf_, kDirMaxcount};
    absl::Status status = session_.call(Proc::kReaddir, args, res);
    if (!status.ok()) return explain(status, url_.str());
    if (status = check(res.status, url_.str()); !status.ok()) return status;
    for (nfs3::Entry3& entry : res.entries) {
      cookie_ = entry.cookie;
      if (status = add(entry.name, std::nullopt, std::nullopt); !status.ok()) return status;
    }
    eof_ = res.eof;
    cookieverf_ = res.cookieverf;
    return absl::OkStatus();
  }

  absl::Status add(std::string& name, const nfs3::PostOpFh3& fh, const nfs3::PostOpAttr& attributes) {
    if (is_dot(name)) return absl::OkStatus();
    if (!is_safe_name(name)) return absl::UnavailableError(url_.str() + ": the server lists a name that can be none");
    if (entries_.size() == kMaxDirEntries) return absl::UnavailableError(url_.str() + ": the directory does not end");
    if (fh && attributes) {
      entries_.push_back({std::move(name), Node{*fh, *attributes}});
      return absl::OkStatus();
    }
    auto node = lookup(session_, dir_, name, url_.child(name));
    if (absl::IsNotFound(node.status())) return absl::OkStatus();  // removed since
    if (!node.ok()) return node.status();
    entries_.push_back({std::move(name), std::move(*node)});
    return absl::OkStatus();
  }

  Session& session_;
  const nfs3::NfsFh3& dir_;
  const Url& url_;
  std::uint64_t cookie_ = 0;
  nfs3::Verf cookieverf_{};
  bool eof_ = false;
  bool plain_ = false;
  bool retry_ = false;
  std::vector<DirEntry> entries_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> below_export(const Session& session, const std::vector<std::string>& names) {
  const std::vector<std::string>& prefix = session.export_path();
  if (names.size() < prefix.size() || !std::equal(prefix.begin(), prefix.end(), names.begin())) {
    return absl::InvalidArgumentError(absolute_path(names) + " is not in the export " + absolute_path(prefix) + " of " +
                                      session.url().host);
  }
  return std::vector<std::string>(names.begin() + static_cast<std::ptrdiff_t>(prefix.size()), names.end());
}

absl::StatusOr<Node> lookup(Session& session, const nfs3::NfsFh3& dir, const std::string& name, const Url& url) {
  nfs3::LookupRes res;
  absl::Status status = session.call(Proc::kLookup, nfs3::DiropArgs{{dir, name}}, res);
  if (!status.ok()) return explain(status, url.str());
  if (status = check(res.status, url.str()); !status.ok()) return status;
  if (res.obj_attributes) return Node{res.object, *res.obj_attributes};
  nfs3::GetattrRes attributes;
  status = session.call(Proc::kGetattr, nfs3::FhArgs{res.object}, attributes);
  if (!status.ok()) return explain(status, url.str());
  if (status = check(attributes.status, url.str()); !status.ok()) return status;
  return Node{res.object, attributes.obj_attributes};
}

absl::StatusOr<std::string> link_text(Session& session, const nfs3::NfsFh3& fh, const Url& url) {
  nfs3::ReadlinkRes res;
  std::vector<std::uint8_t> text;
  absl::Status status = session.readlink(fh, res, text);
  if (!status.ok()) return explain(status, url.str());
  if (status = check(res.status, url.str()); !status.ok()) return status;
  return std::string(text.begin(), text.end());
}

absl::StatusOr<Node> resolve(Session& session, const Url& url, FollowLast follow) {
  return Walker(session, url).walk(follow);
}

absl::StatusOr<Parent> resolve_parent(Session& session, const Url& url) {
  if (url.path.size() <= session.export_path().size()) {
    return absl::InvalidArgumentError(url.str() + ": this is the export itself, a name in it is wanted");
  }
  Url dir_url = url;
  dir_url.path.pop_back();
  dir_url.trailing_slash = true;
  auto dir = resolve(session, dir_url, FollowLast::kYes);
  if (!dir.ok()) return dir.status();
  return Parent{std::move(*dir), url.basename()};
}

absl::StatusOr<std::vector<DirEntry>> list(Session& session, const nfs3::NfsFh3& dir, const Url& url) {
  return Lister(session, dir, url).list();
}

}  // namespace weft::nfs
