// `weft nfs mkdir`, `rm`, `mv` and `ln`.
#include <sys/stat.h>

#include <memory>
#include <utility>

#include "apps/nfs/runner.h"
#include "apps/nfs/tree.h"
#include "apps/nfs/tree_work.h"

namespace weft::nfs {
namespace {

using nfs3::Nfsstat3;
using nfs3::Proc;

void for_each_url(Runner& runner, absl::Status (*run)(Runner&, const Url&)) {
  auto urls = remote_names(runner.options().names);
  if (!urls.ok()) return void(runner.report(urls.status()));
  for (const Url& url : *urls) {
    if (!runner.report(run(runner, url))) return;
  }
}

void print_done(Runner& runner, const char* op, const Url& url) {
  if (runner.options().json) runner.print(JsonLine().add("op", op).add("url", url.str()).str());
}

std::uint32_t new_directory_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0777 & ~mask;
}

absl::Status make_directory(Runner& runner, Session& session, const Url& url, bool may_exist) {
  auto parent = resolve_parent(session, url);
  if (!parent.ok()) return parent.status();
  nfs3::MkdirArgs args{{parent->dir.fh, parent->name}, {}};
  args.attributes.mode = new_directory_mode();
  nfs3::NewObjectRes res;
  absl::Status status = session.call(Proc::kMkdir, args, res);
  if (!status.ok()) return explain(status, url.str());
  if (res.status == Nfsstat3::kExist && may_exist) {
    auto node = resolve(session, url, FollowLast::kYes);
    if (node.ok() && node->is_dir()) return absl::OkStatus();
  }
  if (status = check(res.status, url.str()); status.ok()) print_done(runner, "mkdir", url);
  return status;
}

absl::Status mkdir_one(Runner& runner, const Url& url) {
  auto session = runner.session(url);
  if (!session.ok()) return session.status();
  if (!runner.options().parents) return make_directory(runner, **session, url, false);
  Url partial = url;
  partial.path.resize((*session)->export_path().size());
  for (std::size_t i = partial.path.size(); i < url.path.size(); ++i) {
    partial.path.push_back(url.path[i]);
    if (absl::Status status = make_directory(runner, **session, partial, true); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// DoomedDir is a directory that is being emptied and will be removed.
struct DoomedDir {
  std::shared_ptr<DoomedDir> parent;  // null for the topmost directory
  nfs3::NfsFh3 parent_fh;
  nfs3::NfsFh3 fh;
  Url url;
  int depth = 0;
  bool has_failed = false;        // an entry could not be removed, and that was reported
  std::uint64_t num_removed = 0;  // by the last walk through it
};

// Rm removes one name; with -r also everything in it, without following symbolic links.
class Rm {
 public:
  Rm(Runner& runner, Session& session) : runner_(runner), flow_(session), work_(runner, flow_, runner.tree_limits()) {}

  absl::Status remove(const nfs3::NfsFh3& dir, const Url& url, const Node& node) {
    if (!node.is_dir()) return work_.run(remove_file(dir, url));
    if (!runner_.options().recursive) return absl::FailedPreconditionError(url.str() + ": is a directory (use -r)");
    auto doomed = std::make_unique<DoomedDir>();
    doomed->parent_fh = dir;
    doomed->fh = node.fh;
    doomed->url = url;
    if (runner_.progress().is_terminal()) flow_.spawn(work_.count_remote(node.fh, url));
    return work_.run(walk(share(std::move(doomed))));
  }

 private:
  std::shared_ptr<DoomedDir> share(std::unique_ptr<DoomedDir> dir) {
    return work_.share<DoomedDir>(std::move(dir),
                                  [this](std::unique_ptr<DoomedDir> last) { return end(std::move(last)); });
  }

  Task<void> walk(std::shared_ptr<DoomedDir> dir) {
    dir->num_removed = 0;
    Listing listing(flow_, dir->fh, dir->url);
    std::vector<DirEntry> page;
    while (!listing.at_end() && !flow_.is_stopped()) {
      page.clear();
      absl::Status status = co_await listing.next(page);
      TreeWork::Listed listed(work_);
      if (status.ok() && !listed.set(octets_held(page))) {
        status = absl::FailedPreconditionError(dir->url.str() + ": too many names in nested directories");
      }
      if (!work_.report(status)) {
        dir->has_failed = true;
        break;
      }
      for (DirEntry& entry : page) {
        if (flow_.is_stopped()) break;
        if (!work_.report(entry.status)) {
          dir->has_failed = true;
          continue;
        }
        if (entry.node.is_dir()) {
          co_await walk_child(dir, entry);
          continue;
        }
        work_.found(0);
        TreeWork::Places places = co_await work_.begin(0);
        flow_.spawn(one_file(dir, std::move(entry.name), std::move(places)));
      }
    }
  }

  Task<void> walk_child(std::shared_ptr<DoomedDir> parent, const DirEntry& entry) {
    auto dir = std::make_unique<DoomedDir>();
    dir->parent_fh = parent->fh;
    dir->fh = entry.node.fh;
    dir->url = parent->url.child(entry.name);
    dir->depth = parent->depth + 1;
    if (dir->depth == kMaxDepth) {
      parent->has_failed = true;
      work_.report(absl::FailedPreconditionError(dir->url.str() + ": directories nested too deeply"));
      co_return;
    }
    dir->parent = std::move(parent);
    co_await walk(share(std::move(dir)));
  }

  Task<void> one_file(std::shared_ptr<DoomedDir> dir, std::string name, [[maybe_unused]] TreeWork::Places places) {
    const absl::Status status = co_await remove_name(Proc::kRemove, dir->fh, dir->url.child(name));
    if (!work_.report(status)) dir->has_failed = true;
    ++dir->num_removed;
    ++work_.counts().files;
  }

  Task<void> remove_file(nfs3::NfsFh3 dir, Url url) { work_.report(co_await remove_name(Proc::kRemove, dir, url)); }

  // end removes a directory that was emptied. If it still has names, they came meanwhile, or the server passed them
  // over because others were removed. As long as a walk removes an entry, another walk follows.
  Task<void> end(std::unique_ptr<DoomedDir> dir) {
    if (flow_.is_stopped()) co_return;
    if (dir->has_failed) {
      if (dir->parent) dir->parent->has_failed = true;
      co_return;
    }
    [[maybe_unused]] const TreeWork::Places places = co_await work_.begin(0);
    nfs3::Nfsstat3 answer = Nfsstat3::kOk;
    const absl::Status status = co_await remove_name(Proc::kRmdir, dir->parent_fh, dir->url, &answer);
    if (answer == Nfsstat3::kNotempty && dir->num_removed > 0) {
      flow_.spawn(walk(share(std::move(dir))));
      co_return;
    }
    if (dir->parent) ++dir->parent->num_removed;
    if (!work_.report(status) && dir->parent) dir->parent->has_failed = true;
  }

  // remove_name removes the name of `url` from `dir`. answer, unless null, gets the server's status.
  Task<absl::Status> remove_name(Proc proc, nfs3::NfsFh3 dir, Url url, Nfsstat3* answer = nullptr) {
    nfs3::DiropArgs args{{dir, url.basename()}};
    nfs3::WccRes res;
    absl::Status status = co_await flow_.call(proc, std::move(args), res);
    if (!status.ok()) co_return explain(status, url.str());
    if (answer != nullptr) *answer = res.status;
    if (res.status == Nfsstat3::kNoent && runner_.options().force) co_return absl::OkStatus();
    if (status = check(res.status, url.str()); status.ok()) print_done(runner_, "rm", url);
    co_return status;
  }

  Runner& runner_;
  Flow flow_;
  TreeWork work_;
};

absl::Status rm_one(Runner& runner, const Url& url) {
  auto session = runner.session(url);
  if (!session.ok()) return session.status();
  auto parent = resolve_parent(**session, url);
  absl::StatusOr<Node> node = parent.ok() ? lookup(**session, parent->dir.fh, parent->name, url) : parent.status();
  if (absl::IsNotFound(node.status()) && runner.options().force) return absl::OkStatus();
  if (!node.ok()) return node.status();
  return Rm(runner, **session).remove(parent->dir.fh, url, *node);
}

// destination: the place where mv and ln put `name`: in url if url is a directory.
absl::StatusOr<Parent> destination(Session& session, const Url& url, const std::string& name) {
  auto there = resolve(session, url, FollowLast::kYes);
  if (there.ok() && there->is_dir()) return Parent{std::move(*there), name};
  if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
  if (url.trailing_slash) return there.status();
  return resolve_parent(session, url);
}

// session_of_both: renaming and linking happen within one server and export.
absl::StatusOr<Session*> session_of_both(Runner& runner, const Url& from, const Url& to) {
  if (!from.same_server(to)) return absl::InvalidArgumentError("both names must be of one server");
  auto session = runner.session(from);
  if (!session.ok()) return session.status();
  if (auto below = below_export(**session, to.path); !below.ok()) return below.status();
  return *session;
}

absl::Status mv_one(Runner& runner, const Url& from, const Url& to) {
  auto session = session_of_both(runner, from, to);
  if (!session.ok()) return session.status();
  auto source = resolve_parent(**session, from);
  if (!source.ok()) return source.status();
  auto target = destination(**session, to, source->name);
  if (!target.ok()) return target.status();
  nfs3::RenameRes res;
  const nfs3::RenameArgs args{{source->dir.fh, source->name}, {target->dir.fh, target->name}};
  absl::Status status = (*session)->call(Proc::kRename, args, res);
  if (!status.ok()) return explain(status, from.str());
  if (status = check(res.status, from.str() + " to " + to.str()); status.ok()) print_done(runner, "mv", to);
  return status;
}

absl::Status symlink_one(Runner& runner, const std::string& text, const Url& to) {
  if (text.empty() || text.size() > nfs3::kMaxPath) {
    return absl::InvalidArgumentError("a symbolic link's text has 1 to " + std::to_string(nfs3::kMaxPath) + " bytes");
  }
  auto session = runner.session(to);
  if (!session.ok()) return session.status();
  const std::vector<std::string> names = split_path(text);
  auto target = destination(**session, to, names.empty() ? std::string() : names.back());
  if (!target.ok()) return target.status();
  const std::vector<std::uint8_t> octets(text.begin(), text.end());
  nfs3::NewObjectRes res;
  absl::Status status = (*session)->symlink(
      {{target->dir.fh, target->name}, {}, {static_cast<std::uint32_t>(octets.size()), octets}}, res);
  if (!status.ok()) return explain(status, to.str());
  if (status = check(res.status, to.str()); status.ok()) print_done(runner, "ln", to);
  return status;
}

absl::Status link_one(Runner& runner, const Url& from, const Url& to) {
  auto session = session_of_both(runner, from, to);
  if (!session.ok()) return session.status();
  auto source = resolve(**session, from, FollowLast::kNo);
  if (!source.ok()) return source.status();
  if (source->is_dir())
    return absl::FailedPreconditionError(from.str() + ": hard links to directories are not allowed");
  auto target = destination(**session, to, from.basename());
  if (!target.ok()) return target.status();
  nfs3::LinkRes res;
  absl::Status status = (*session)->call(Proc::kLink, nfs3::LinkArgs{source->fh, {target->dir.fh, target->name}}, res);
  if (!status.ok()) return explain(status, to.str());
  if (status = check(res.status, to.str()); status.ok()) print_done(runner, "ln", to);
  return status;
}

}  // namespace

void run_mkdir(Runner& runner) {
  for_each_url(runner, mkdir_one);
}

void run_rm(Runner& runner) {
  for_each_url(runner, rm_one);
}

void run_mv(Runner& runner) {
  auto urls = remote_names(runner.options().names);
  if (!urls.ok()) return void(runner.report(urls.status()));
  Url to = urls->back();
  urls->pop_back();
  if (urls->size() > 1) to.trailing_slash = true;
  for (const Url& from : *urls) {
    if (!runner.report(mv_one(runner, from, to))) return;
  }
}

void run_ln(Runner& runner) {
  const std::vector<std::string>& names = runner.options().names;
  auto to = parse_url(names[1]);
  if (!to.ok()) return void(runner.report(to.status()));
  if (runner.options().symbolic) return void(runner.report(symlink_one(runner, names[0], *to)));
  auto from = parse_url(names[0]);
  if (!from.ok()) return void(runner.report(from.status()));
  runner.report(link_one(runner, *from, *to));
}

}  // namespace weft::nfs
