#include "apps/nfs/tree.h"

#include <algorithm>

namespace weft::nfs {
namespace {

using nfs3::Nfsstat3;
using nfs3::Proc;

constexpr int kMaxSymlinks = 40;
constexpr std::uint32_t kDirMaxcount = 64 << 10;  // octets of one READDIRPLUS result
constexpr std::uint32_t kDirDircount = 16 << 10;

bool is_safe_name(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

bool is_dot(const std::string& name) {
  return name == "." || name == "..";
}

absl::Status not_a_directory(const Url& url) {
  return absl::FailedPreconditionError(url.str() + ": not a directory");
}

// Walker is one resolution: the directories above the current place, and the remaining names.
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
    return absl::InvalidArgumentError(url.str() + ": this is the export itself; name a file or directory in it");
  }
  Url dir_url = url;
  dir_url.path.pop_back();
  dir_url.trailing_slash = true;
  auto dir = resolve(session, dir_url, FollowLast::kYes);
  if (!dir.ok()) return dir.status();
  return Parent{std::move(*dir), url.basename()};
}

Task<absl::StatusOr<Node>> lookup(Flow& flow, nfs3::NfsFh3 dir, std::string name, Url url) {
  nfs3::LookupRes res;
  nfs3::DiropArgs args{{dir, std::move(name)}};
  absl::Status status = co_await flow.call(Proc::kLookup, std::move(args), res);
  if (!status.ok()) co_return explain(status, url.str());
  if (status = check(res.status, url.str()); !status.ok()) co_return status;
  if (res.obj_attributes) co_return Node{res.object, *res.obj_attributes};
  nfs3::GetattrRes attributes;
  nfs3::FhArgs object{res.object};
  status = co_await flow.call(Proc::kGetattr, object, attributes);
  if (!status.ok()) co_return explain(status, url.str());
  if (status = check(attributes.status, url.str()); !status.ok()) co_return status;
  co_return Node{res.object, attributes.obj_attributes};
}

Task<absl::StatusOr<std::string>> link_text(Flow& flow, nfs3::NfsFh3 fh, Url url) {
  std::vector<std::uint8_t> text(nfs3::kMaxPath, 0);
  for (Patience patience(flow.session());;) {
    PreparedCall call{.proc = Proc::kReadlink, .result_item = text};
    nfs3::XdrWriter writer(call.args);
    emit(writer, nfs3::FhArgs{fh});
    std::vector<std::uint8_t> results;
    std::optional<std::size_t> item_len;
    absl::Status status = co_await flow.call_raw(call, results, &item_len);
    nfs3::ReadlinkRes res;
    if (status.ok()) status = Session::take_readlink(results, item_len.value_or(0), res, text);
    if (!status.ok()) co_return explain(status, url.str());
    if (res.status == Nfsstat3::kJukebox && patience.again()) {
      co_await flow.until(patience.next());
      continue;
    }
    if (status = check(res.status, url.str()); !status.ok()) co_return status;
    co_return std::string(text.begin(), text.end());
  }
}

Task<absl::Status> make_symlink(Flow& flow, nfs3::SymlinkArgs args, nfs3::NewObjectRes& res) {
  PreparedCall call{.proc = Proc::kSymlink};
  nfs3::XdrWriter writer(call.args);
  emit(writer, args, nfs3::ItemForm::kReduced);
  call.item = rpcrdma::ArgumentItem{call.args.size(), args.symlink_data.data};
  for (Patience patience(flow.session());;) {
    std::vector<std::uint8_t> results;
    const absl::Status status = co_await flow.call_raw(call, results, nullptr);
    if (!status.ok()) co_return status;
    nfs3::XdrReader reader(results);
    if (!parse(reader, res)) co_return Session::undecodable(call.proc);
    if (res.status != Nfsstat3::kJukebox || !patience.again()) co_return absl::OkStatus();
    co_await flow.until(patience.next());
  }
}

std::size_t octets_held(const std::vector<DirEntry>& entries) {
  std::size_t octets = 0;
  for (const DirEntry& entry : entries) octets += octets_held(entry);
  return octets;
}

Task<absl::Status> Listing::next(std::vector<DirEntry>& entries) {
  const std::uint64_t cookie_before = cookie_;
  if (!plain_) {
    absl::Status status = co_await read_plus(entries);
    if (!status.ok()) co_return status;
  }
  // read_plus may have found just now that the server does not know READDIRPLUS.
  if (plain_) {
    absl::Status status = co_await read_plain(entries);
    if (!status.ok()) co_return status;
  }
  co_return eof_ ? absl::OkStatus() : check_progress(cookie_before);
}

void Listing::restart() {
  cookie_ = 0;
  cookieverf_ = {};
  eof_ = false;
  earlier_ = num_since_ = 0;
  next_move_ = 1;
}

absl::Status Listing::check_progress(std::uint64_t cookie_before) {
  if (cookie_ == cookie_before) {
    return absl::UnavailableError(url_.str() + ": the server does not get on with the directory");
  }
  if (cookie_ == earlier_) return absl::UnavailableError(url_.str() + ": the server lists the directory in a circle");
  if (++num_since_ == next_move_) {
    earlier_ = cookie_;
    num_since_ = 0;
    next_move_ *= 2;
  }
  return absl::OkStatus();
}

Task<absl::Status> Listing::read_plus(std::vector<DirEntry>& entries) {
  nfs3::ReaddirplusRes res;
  const nfs3::ReaddirplusArgs args{dir_, cookie_, cookieverf_, kDirDircount, kDirMaxcount};
  absl::Status status = co_await flow_.call(Proc::kReaddirplus, args, res);
  plain_ = cookie_ == 0 && (absl::IsUnimplemented(status) || (status.ok() && res.status == Nfsstat3::kNotsupp));
  if (plain_) co_return absl::OkStatus();
  if (!status.ok()) co_return explain(status, url_.str());
  if (status = check(res.status, url_.str()); !status.ok()) co_return status;
  for (nfs3::Entryplus3& entry : res.entries) {
    cookie_ = entry.cookie;
    status = co_await add(std::move(entry.name), entry.name_handle, entry.name_attributes, entries);
    if (!status.ok()) co_return status;
  }
  eof_ = res.eof;
  cookieverf_ = res.cookieverf;
  co_return absl::OkStatus();
}

Task<absl::Status> Listing::read_plain(std::vector<DirEntry>& entries) {
  nfs3::ReaddirRes res;
  const nfs3::ReaddirArgs args{dir_, cookie_, cookieverf_, kDirMaxcount};
  absl::Status status = co_await flow_.call(Proc::kReaddir, args, res);
  if (!status.ok()) co_return explain(status, url_.str());
  if (status = check(res.status, url_.str()); !status.ok()) co_return status;
  for (nfs3::Entry3& entry : res.entries) {
    cookie_ = entry.cookie;
    status = co_await add(std::move(entry.name), std::nullopt, std::nullopt, entries);
    if (!status.ok()) co_return status;
  }
  eof_ = res.eof;
  cookieverf_ = res.cookieverf;
  co_return absl::OkStatus();
}

Task<absl::Status> Listing::add(std::string name, nfs3::PostOpFh3 fh, nfs3::PostOpAttr attributes,
                                std::vector<DirEntry>& entries) {
  if (is_dot(name)) co_return absl::OkStatus();
  if (!is_safe_name(name)) {
    co_return absl::UnavailableError(url_.str() + ": the server lists a name that can be none");
  }
  if (fh && attributes) {
    entries.push_back({std::move(name), Node{*fh, *attributes}});
    co_return absl::OkStatus();
  }
  absl::StatusOr<Node> node = co_await lookup(flow_, dir_, name, url_.child(name));
  if (absl::IsNotFound(node.status())) co_return absl::OkStatus();  // removed since
  if (absl::IsPermissionDenied(node.status())) {
    entries.push_back({std::move(name), Node{}, node.status()});
    co_return absl::OkStatus();
  }
  if (!node.ok()) co_return node.status();
  entries.push_back({std::move(name), std::move(*node)});
  co_return absl::OkStatus();
}

}  // namespace weft::nfs
