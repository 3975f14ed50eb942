// `weft nfs get` and `weft nfs cat`.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <utility>

#include "apps/nfs/local_file.h"
#include "apps/nfs/runner.h"
#include "apps/nfs/tree.h"
#include "apps/nfs/tree_work.h"

namespace weft::nfs {
namespace {

timespec to_timespec(const nfs3::Nfstime3& time) {
  return {static_cast<time_t>(time.seconds), static_cast<long>(time.nseconds)};
}

// LocalDir is a directory that receives a tree. All work on it goes through its descriptor, never through a symbolic
// link below the directory that the user named. So no listing of the server's can lead out of it.
struct LocalDir {
  std::shared_ptr<LocalDir> parent;  // null for the topmost directory
  Url url;
  Node node;
  std::string shown;
  Fd fd;
  bool is_new = false;
  int depth = 0;
  std::optional<SlotsHeld> place;
};

// Get copies one remote name, with everything in it, to a local name.
class Get {
 public:
  explicit Get(Runner& runner) : runner_(runner), options_(runner.options()), umask_(umask(0)) { umask(umask_); }

  absl::Status run(const Url& url, const std::string& local) {
    auto session = runner_.session(url);
    if (!session.ok()) return session.status();
    auto node = resolve(**session, url, FollowLast::kYes);
    if (!node.ok()) return node.status();
    transfer_ = &runner_.transfer(**session);
    if (absl::Status status = transfer_->prepare(); !status.ok()) return explain(status, url.str());

    struct stat there {};
    const bool into = stat(local.c_str(), &there) == 0 && S_ISDIR(there.st_mode) && !url.basename().empty();
    const std::string target = into ? local + "/" + url.basename() : local;
    Flow flow(**session);
    flow_ = &flow;
    TreeWork work(runner_, flow, runner_.tree_limits());
    work_ = &work;
    if (!node->is_dir()) {
      if (!node->is_regular()) return absl::FailedPreconditionError(url.str() + ": not a regular file");
      auto file = LocalFile::open_path(target);
      if (!file.ok()) return file.status();
      absl::Status result;
      flow.run(whole_file(url, *node, *file, target, result));
      return result;
    }
    if (!options_.recursive) return absl::FailedPreconditionError(url.str() + ": is a directory (use -r)");
    auto dir = std::make_unique<LocalDir>();
    dir->is_new = mkdir(target.c_str(), 0700) == 0;
    if (!dir->is_new && errno != EEXIST) return errno_status(errno, target);
    dir->fd = Fd(open(target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!dir->fd) return target_status(errno, target);
    dir->url = url;
    dir->node = *node;
    dir->shown = target;
    if (runner_.progress().is_terminal()) flow.spawn(work.count_remote(node->fh, url));
    return work.run(walk(share(std::move(dir))));
  }

  void print_summary() {
    if (!options_.json || !options_.recursive) return;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started_;
    runner_.print(JsonLine()
                      .add("op", "get_total")
                      .add("files", num_files_)
                      .add("octets", octets_)
                      .add("seconds", seconds.count())
                      .str());
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::shared_ptr<LocalDir> share(std::unique_ptr<LocalDir> dir) {
    return work_->share<LocalDir>(std::move(dir),
                                  [this](std::unique_ptr<LocalDir> last) { return end(std::move(last)); });
  }

  Task<void> walk(std::shared_ptr<LocalDir> dir) {
    Listing listing(*flow_, dir->node.fh, dir->url);
    std::vector<DirEntry> page;
    while (!listing.at_end() && !flow_->is_stopped()) {
      page.clear();
      if (absl::Status status = co_await listing.next(page); !status.ok()) {
        work_->report(status);
        break;
      }
      TreeWork::Listed listed(*work_);
      if (!listed.set(octets_held(page))) {
        work_->report(absl::FailedPreconditionError(dir->url.str() + ": too many names in nested directories"));
        break;
      }
      for (DirEntry& entry : page) {
        if (flow_->is_stopped()) break;
        if (!work_->report(entry.status)) continue;
        if (entry.node.is_dir()) {
          std::shared_ptr<LocalDir> child = co_await open_child(dir, entry);
          if (child) co_await walk(std::move(child));
          continue;
        }
        const std::uint64_t held = std::min<std::uint64_t>(entry.node.attributes.size, work_->limits().small_file);
        work_->found(entry.node.attributes.size);
        TreeWork::Places places = co_await work_->begin(held);
        flow_->spawn(one_entry(dir, std::move(entry), std::move(places)));
      }
    }
  }

  // open_child makes and opens a directory; null, with a report, if that fails.
  Task<std::shared_ptr<LocalDir>> open_child(std::shared_ptr<LocalDir> parent, const DirEntry& entry) {
    auto dir = std::make_unique<LocalDir>();
    dir->url = parent->url.child(entry.name);
    dir->node = entry.node;
    dir->shown = parent->shown + "/" + entry.name;
    dir->depth = parent->depth + 1;
    if (dir->depth == kMaxDepth) {
      work_->report(absl::FailedPreconditionError(dir->url.str() + ": directories nested too deeply"));
      co_return nullptr;
    }
    dir->place.emplace(co_await work_->open_dirs().acquire(1));
    // Other users may not enter before everything in the directory is complete and gets its mode.
    const std::int64_t error = co_await flow_->io([&parent, &entry, &dir]() -> std::int64_t {
      dir->is_new = mkdirat(parent->fd.get(), entry.name.c_str(), 0700) == 0;
      if (!dir->is_new && errno != EEXIST) return -errno;
      dir->fd = Fd(openat(parent->fd.get(), entry.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      return dir->fd ? 0 : -errno;
    });
    if (error != 0) {
      work_->report(errno_status(static_cast<int>(-error), dir->shown));
      co_return nullptr;
    }
    dir->parent = std::move(parent);
    co_return share(std::move(dir));
  }

  // end gives a directory its mode and times once nothing in it will change any more.
  Task<void> end(std::unique_ptr<LocalDir> dir) {
    if (flow_->is_stopped()) co_return;
    const std::int64_t error = co_await flow_->io([this, &dir]() -> std::int64_t {
      const std::uint32_t mode = dir->node.attributes.mode & kPermissions;
      if (options_.preserve || dir->is_new) {
        if (fchmod(dir->fd.get(), options_.preserve ? mode : mode & ~umask_) != 0) return -errno;
      }
      if (options_.preserve) {
        const timespec times[2] = {to_timespec(dir->node.attributes.atime), to_timespec(dir->node.attributes.mtime)};
        if (futimens(dir->fd.get(), times) != 0) return -errno;
      }
      return options_.sync && fsync(dir->fd.get()) != 0 ? -errno : 0;
    });
    if (error != 0) work_->report(errno_status(static_cast<int>(-error), dir->shown));
  }

  Task<void> one_entry(std::shared_ptr<LocalDir> dir, DirEntry entry, [[maybe_unused]] TreeWork::Places places) {
    const Url url = dir->url.child(entry.name);
    const std::string shown = dir->shown + "/" + entry.name;
    absl::Status status;
    if (entry.node.is_symlink()) {
      status = co_await symbolic_link(*dir, entry, url, shown);
    } else if (!entry.node.is_regular()) {
      status = absl::FailedPreconditionError(url.str() + ": skipped: not a regular file");
    } else {
      status = co_await regular_file(*dir, entry, url, shown);
    }
    work_->report(status);
    ++work_->counts().files;
  }

  Task<absl::Status> symbolic_link(const LocalDir& dir, const DirEntry& entry, const Url& url,
                                   const std::string& shown) {
    auto text = co_await link_text(*flow_, entry.node.fh, url);
    if (!text.ok()) co_return text.status();
    const std::int64_t error = co_await flow_->io([&]() -> std::int64_t {
      const std::string temporary = temporary_name(entry.name);
      if (symlinkat(text->c_str(), dir.fd.get(), temporary.c_str()) != 0) return -errno;
      const timespec times[2] = {to_timespec(entry.node.attributes.atime), to_timespec(entry.node.attributes.mtime)};
      // Some filesystems keep no times of links. The link is made all the same.
      if (options_.preserve) utimensat(dir.fd.get(), temporary.c_str(), times, AT_SYMLINK_NOFOLLOW);
      if (renameat(dir.fd.get(), temporary.c_str(), dir.fd.get(), entry.name.c_str()) == 0) return 0;
      const int error = errno;
      unlinkat(dir.fd.get(), temporary.c_str(), 0);
      return -error;
    });
    co_return error == 0 ? absl::OkStatus() : errno_status(static_cast<int>(-error), shown);
  }

  Task<absl::Status> regular_file(const LocalDir& dir, const DirEntry& entry, const Url& url,
                                  const std::string& shown) {
    const Clock::time_point started = Clock::now();
    // The size that one READ brings whole.
    const auto most =
        static_cast<std::uint32_t>(std::min<std::size_t>(work_->limits().small_file, transfer_->read_size()));
    if (entry.node.attributes.size < most) {
      std::vector<std::uint8_t> data;
      auto whole = co_await read_small(*flow_, entry.node.fh, entry.node.attributes.size, most, data);
      if (!whole.ok()) co_return explain(whole.status(), url.str());
      if (*whole) {
        absl::Status status;
        co_await flow_->io([&]() -> std::int64_t {
          auto file = LocalFile::create(dir.fd.get(), entry.name, shown);
          status = file.ok() ? file->write(data) : file.status();
          if (status.ok()) status = file->commit(attributes_of(entry.node));
          return 0;
        });
        if (status.ok()) print_done(url, shown, data.size(), started);
        co_return status;
      }
    }
    auto file = LocalFile::create(dir.fd.get(), entry.name, shown);
    if (!file.ok()) co_return file.status();
    co_return co_await contents(url, entry.node, *file, shown);
  }

  // whole_file is the root Task for the copy of a single file.
  Task<void> whole_file(const Url& url, const Node& node, LocalFile& file, const std::string& shown,
                        absl::Status& result) {
    runner_.progress().begin(url.basename(), node.attributes.size);
    result = co_await contents(url, node, file, shown);
    runner_.progress().clear();
  }

  Task<absl::Status> contents(const Url& url, const Node& node, LocalFile& file, const std::string& shown) {
    const SlotsHeld held = co_await work_->large_file().acquire(1);
    const Clock::time_point started = Clock::now();
    Transfer::Sink sink = [fd = file.fd(), &io = transfer_->io()](auto in) { return write_fully(fd, in, io); };
    std::uint64_t counted = 0;
    ProgressFunction progress = [this, &counted](std::uint64_t done) {
      work_->counts().octets += done - std::exchange(counted, done);
      if (!options_.recursive) runner_.progress().update(done);
    };
    auto octets =
        co_await transfer_->download(*flow_, node.fh, node.attributes.size, std::move(sink), std::move(progress));
    work_->counts().octets -= counted;
    if (absl::IsDataLoss(octets.status())) {
      co_return absl::UnknownError("cannot write " + shown + ": " + std::string(octets.status().message()));
    }
    if (!octets.ok()) co_return explain(octets.status(), url.str());
    if (absl::Status status = file.commit(attributes_of(node)); !status.ok()) co_return status;
    print_done(url, shown, *octets, started);
    co_return absl::OkStatus();
  }

  LocalAttributes attributes_of(const Node& node) const {
    LocalAttributes attributes;
    attributes.mode = node.attributes.mode & kPermissions;
    attributes.sync = options_.sync;
    if (!options_.preserve) {
      attributes.mode &= ~umask_;
      return attributes;
    }
    attributes.times = {{to_timespec(node.attributes.atime), to_timespec(node.attributes.mtime)}};
    return attributes;
  }

  void print_done(const Url& url, const std::string& shown, std::uint64_t octets, Clock::time_point started) {
    ++num_files_;
    octets_ += octets;
    work_->counts().octets += octets;
    if (!options_.json) return;
    const double seconds = std::chrono::duration<double>(Clock::now() - started).count();
    runner_.print(JsonLine()
                      .add("op", "get")
                      .add("url", url.str())
                      .add("local", shown)
                      .add("octets", octets)
                      .add("seconds", seconds)
                      .add("octets_per_s", double(octets) / seconds)
                      .str());
  }

  Runner& runner_;
  const NfsOptions& options_;
  const mode_t umask_;
  const Clock::time_point started_ = Clock::now();
  Transfer* transfer_ = nullptr;
  Flow* flow_ = nullptr;
  TreeWork* work_ = nullptr;
  std::uint64_t num_files_ = 0;
  std::uint64_t octets_ = 0;
};

Task<void> cat(Transfer& transfer, Flow& flow, const Node& node, bool& reader_left,
               absl::StatusOr<std::uint64_t>& octets) {
  Transfer::Sink sink = [&io = transfer.io(), &reader_left](auto in) {
    const std::int64_t result = write_fully(STDOUT_FILENO, in, io);
    if (result == -EPIPE) reader_left = true;
    return result;
  };
  octets = co_await transfer.download(flow, node.fh, node.attributes.size, std::move(sink), nullptr);
}

absl::Status cat_one(Runner& runner, const Url& url) {
  auto session = runner.session(url);
  if (!session.ok()) return session.status();
  auto node = resolve(**session, url, FollowLast::kYes);
  if (!node.ok()) return node.status();
  if (node->is_dir()) return absl::FailedPreconditionError(url.str() + ": is a directory");
  if (!node->is_regular()) return absl::FailedPreconditionError(url.str() + ": not a regular file");
  Transfer& transfer = runner.transfer(**session);
  if (absl::Status status = transfer.prepare(); !status.ok()) return explain(status, url.str());
  bool reader_left = false;  // the I/O thread writes it and is idle when the Flow has ended
  absl::StatusOr<std::uint64_t> octets = 0;
  Flow flow(**session);
  flow.run(cat(transfer, flow, *node, reader_left, octets));
  if (reader_left) {
    runner.end_with_reader();
    return absl::OkStatus();
  }
  if (absl::IsDataLoss(octets.status())) {
    return absl::CancelledError("cannot write to standard output: " + std::string(octets.status().message()));
  }
  return octets.ok() ? absl::OkStatus() : explain(octets.status(), url.str());
}

void cat_all(Runner& runner, const std::vector<Url>& urls) {
  for (const Url& url : urls) {
    if (!runner.report(cat_one(runner, url))) return;
  }
}

}  // namespace

void run_get(Runner& runner) {
  std::vector<std::string> names = runner.options().names;
  // The last name is the local one; a single remote name is copied to ".".
  std::string local = ".";
  if (names.size() > 1) {
    local = names.back();
    names.pop_back();
  }
  if (looks_like_url(local)) {
    return void(runner.report(
        absl::InvalidArgumentError("get copies from a server to here: '" + local + "' is not a local path")));
  }
  auto urls = remote_names(names);
  if (!urls.ok()) return void(runner.report(urls.status()));
  if (local == "-") {
    if (runner.options().json) {
      return void(
          runner.report(absl::InvalidArgumentError("with - standard output has the file: --json is of no use")));
    }
    return cat_all(runner, *urls);
  }
  struct stat there {};
  const bool is_dir = stat(local.c_str(), &there) == 0 && S_ISDIR(there.st_mode);
  if (urls->size() > 1 && !is_dir) {
    return void(
        runner.report(absl::InvalidArgumentError("'" + local + "' is not a directory; several files need one")));
  }
  Get get(runner);
  for (const Url& url : *urls) {
    if (!runner.report(get.run(url, local))) return;
  }
  get.print_summary();
}

void run_cat(Runner& runner) {
  auto urls = remote_names(runner.options().names);
  if (!urls.ok()) return void(runner.report(urls.status()));
  cat_all(runner, *urls);
}

}  // namespace weft::nfs
