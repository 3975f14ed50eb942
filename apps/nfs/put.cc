// `weft nfs put`.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <memory>
#include <utility>

#include "apps/nfs/local_file.h"
#include "apps/nfs/remote_file.h"
#include "apps/nfs/runner.h"
#include "apps/nfs/settime.h"
#include "apps/nfs/tree.h"
#include "apps/nfs/tree_work.h"

namespace weft::nfs {
namespace {

using nfs3::Nfsstat3;
using nfs3::Proc;
using nfs3::StableHow;

// How many times a file is sent while the server keeps restarting.
constexpr int kMaxSendAttempts = 3;
constexpr std::uint32_t kOwnerMayWrite = 0300;
// The number of local names that the walk takes at a time.
constexpr std::size_t kNamesAtOnce = 256;

// RemoteDir is a directory on the server that receives a tree, and the local directory that it comes from.
struct RemoteDir {
  std::shared_ptr<RemoteDir> parent;  // null for the topmost directory
  std::string local;
  Url url;
  nfs3::NfsFh3 fh;
  struct stat attributes {};
  bool is_new = false;
  bool keeps_attributes = false;  // the export itself
  int depth = 0;
  std::unique_ptr<DIR, CloseDir> stream;  // once the walk has come to it
  std::optional<SlotsHeld> place;

  int fd() const { return dirfd(stream.get()); }
};

struct LocalEntry {
  std::string name;
  struct stat attributes {};
  int error = 0;  // of fstatat
};

// NewDir is a directory that the server makes while the walk goes on.
struct NewDir {
  NewDir(Flow& flow, LocalEntry found) : entry(std::move(found)), made(flow) {}
  LocalEntry entry;
  Event made;
  std::shared_ptr<RemoteDir> dir;  // null if it could not be made
};

// Source is a local file that is sent.
struct Source {
  Fd fd;
  struct stat attributes {};
  std::vector<std::uint8_t> data;
  bool is_whole = false;  // data is all of the file

  bool is_rereadable() const { return S_ISREG(attributes.st_mode); }
};

// Opens a regular file, and reads it if it has fewer octets than `most`. 0 or a negative errno value.
std::int64_t open_source(int dir_fd, const std::string& name, std::size_t most, Source& source) {
  // Without O_NONBLOCK a pipe in the file's place would hold everything up.
  source.fd = Fd(openat(dir_fd, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!source.fd || fstat(source.fd.get(), &source.attributes) != 0) return -errno;
  if (!S_ISREG(source.attributes.st_mode)) return -EINVAL;
  const auto size = static_cast<std::size_t>(source.attributes.st_size);
  if (size >= most) return 0;
  source.data.resize(size + 1);  // one more, to see the end
  std::size_t len = 0;
  while (len < source.data.size()) {
    const ssize_t now = read(source.fd.get(), source.data.data() + len, source.data.size() - len);
    if (now < 0 && errno != EINTR) return -errno;
    if (now == 0) break;
    if (now > 0) len += static_cast<std::size_t>(now);
  }
  source.is_whole = len <= size;
  source.data.resize(source.is_whole ? len : 0);
  if (source.is_whole) source.fd = Fd();
  return 0;
}

// Put copies one local name, with everything in it, to a remote name.
class Put {
 public:
  explicit Put(Runner& runner) : runner_(runner), options_(runner.options()) {}

  // The number of files and directories with a time that was cut (LocalTime::is_cut).
  std::uint64_t num_cut_times() const { return num_cut_times_; }

  absl::Status run(const std::string& local, const Url& url) {
    auto session = runner_.session(url);
    if (!session.ok()) return session.status();
    session_ = *session;
    Source source;
    if (absl::Status status = open_operand(local, source); !status.ok()) return status;
    auto target = target_of(url, local == "-" ? "" : base_of(local));
    if (!target.ok()) return target.status();
    transfer_ = &runner_.transfer(*session_);
    if (absl::Status status = transfer_->prepare(); !status.ok()) return explain(status, url.str());

    Flow flow(*session_);
    flow_ = &flow;
    TreeWork work(runner_, flow, runner_.tree_limits());
    work_ = &work;
    if (!S_ISDIR(source.attributes.st_mode)) {
      absl::Status result;
      flow.run(whole_file(source, local, *target, result));
      return result;
    }
    if (!options_.recursive) return absl::FailedPreconditionError(local + ": is a directory (use -r)");
    if (runner_.progress().is_terminal()) flow.spawn(work.count_local(local));
    return work.run(whole_tree(std::move(source), local, *target));
  }

 private:
  using Clock = std::chrono::steady_clock;

  struct Target {
    Node dir;
    Url url;  // its last name is in dir
  };

  // Opens a local name of the command line. Without -r put sends what it can read from a pipe or a device.
  absl::Status open_operand(const std::string& local, Source& source) const {
    if (local == "-") {
      source.fd = Fd(dup(STDIN_FILENO));
    } else {
      struct stat found {};
      if (stat(local.c_str(), &found) == 0 && is_skipped(found)) return skipped(local);
      // Where a pipe takes the name meanwhile, O_NONBLOCK keeps the open from waiting for a writer.
      const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | (options_.recursive ? O_NONBLOCK : 0);
      source.fd = Fd(open(local.c_str(), flags));
    }
    if (!source.fd || fstat(source.fd.get(), &source.attributes) != 0) return errno_status(errno, local);
    return local != "-" && is_skipped(source.attributes) ? skipped(local) : absl::OkStatus();
  }
  bool is_skipped(const struct stat& local) const {
    return options_.recursive && !S_ISREG(local.st_mode) && !S_ISDIR(local.st_mode);
  }
  static absl::Status skipped(const std::string& local) {
    return absl::FailedPreconditionError(local + ": skipped: not a regular file");
  }

  static std::string base_of(std::string path) {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    if (const std::size_t slash = path.rfind('/'); slash != std::string::npos) path = path.substr(slash + 1);
    if (path != "." && path != "..") return path;
    // The name of the directory that the path means, not the path's own last name.
    const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
    return real ? base_of(real.get()) : std::string();
  }

  // target_of: the name of the copy: in url if url is a directory, as cp(1) does.
  absl::StatusOr<Target> target_of(const Url& url, const std::string& base) {
    auto there = resolve(*session_, url, FollowLast::kYes);
    if (there.ok() && there->is_dir()) {
      if (base.empty() || base == "/") {
        return absl::InvalidArgumentError(url.str() + ": is a directory, a name for the file is wanted");
      }
      return Target{std::move(*there), url.child(base)};
    }
    if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
    if (url.trailing_slash && there.ok()) return absl::FailedPreconditionError(url.str() + ": not a directory");
    auto parent = resolve_parent(*session_, url);
    if (!parent.ok()) return parent.status();
    if (url.trailing_slash && !options_.recursive) return there.status();
    return Target{std::move(parent->dir), url};
  }

  std::shared_ptr<RemoteDir> share(std::unique_ptr<RemoteDir> dir) {
    return work_->share<RemoteDir>(std::move(dir),
                                   [this](std::unique_ptr<RemoteDir> last) { return end(std::move(last)); });
  }

  Task<void> whole_tree(Source source, std::string local, Target target) {
    auto dir = std::make_unique<RemoteDir>();
    dir->local = std::move(local);
    dir->url = target.url;
    dir->attributes = source.attributes;
    dir->keeps_attributes = target.url.path.size() <= session_->export_path().size();
    dir->fh = target.dir.fh;
    if (!dir->keeps_attributes) {
      const absl::Status status = co_await make(*dir, target.dir.fh);
      if (!work_->report(status)) co_return;
    }
    const int fd = source.fd.release();
    dir->stream.reset(fdopendir(fd));
    if (!dir->stream) {
      work_->report(errno_status(errno, dir->local));
      close(fd);
      co_return;
    }
    co_await walk(share(std::move(dir)));
  }

  // make makes dir on the server, in `parent`, and finds its handle.
  Task<absl::Status> make(RemoteDir& dir, nfs3::NfsFh3 parent) {
    nfs3::MkdirArgs args{{parent, dir.url.basename()}, {}};
    args.attributes.mode = (dir.attributes.st_mode & kPermissions) | kOwnerMayWrite;
    nfs3::NewObjectRes res;
    absl::Status status = co_await flow_->call(Proc::kMkdir, std::move(args), res);
    if (!status.ok()) co_return explain(status, dir.url.str());
    dir.is_new = res.status == Nfsstat3::kOk;
    if (dir.is_new && res.obj) {
      dir.fh = *res.obj;
      co_return absl::OkStatus();
    }
    if (!dir.is_new && res.status != Nfsstat3::kExist) co_return check(res.status, dir.url.str());
    absl::StatusOr<Node> node = co_await lookup(*flow_, parent, dir.url.basename(), dir.url);
    if (!node.ok()) co_return node.status();
    if (!node->is_dir()) co_return absl::FailedPreconditionError(dir.url.str() + ": not a directory");
    dir.fh = node->fh;
    co_return absl::OkStatus();
  }

  // end gives a directory its last attributes once nothing in it will change any more.
  Task<void> end(std::unique_ptr<RemoteDir> dir) {
    if (flow_->is_stopped() || dir->keeps_attributes) co_return;
    const std::uint32_t mode = dir->attributes.st_mode & kPermissions;
    const bool wants_mode = dir->is_new && (mode & kOwnerMayWrite) != kOwnerMayWrite;
    if (!wants_mode && !options_.preserve) co_return;
    nfs3::SetattrArgs args{dir->fh, {}, std::nullopt};
    args.new_attributes.mode = mode;
    if (options_.preserve) set_times(dir->attributes, args.new_attributes);
    nfs3::WccRes res;
    const absl::Status status = co_await flow_->call(Proc::kSetattr, args, res);
    work_->report(status.ok() ? check(res.status, dir->url.str()) : explain(status, dir->url.str()));
  }

  void set_times(const struct stat& from, nfs3::Sattr3& to) {
    const LocalTime atime = to_settime(from.st_atim), mtime = to_settime(from.st_mtim);
    to.atime = atime.value;
    to.mtime = mtime.value;
    num_cut_times_ += atime.is_cut || mtime.is_cut ? 1 : 0;
  }

  Task<void> walk(std::shared_ptr<RemoteDir> dir) {
    bool at_end = false;
    while (!at_end && !flow_->is_stopped()) {
      std::vector<LocalEntry> entries;
      const std::int64_t error = co_await flow_->io([&] { return read_names(*dir, entries, at_end); });
      if (error != 0) {
        work_->report(errno_status(static_cast<int>(-error), dir->local));
        break;
      }
      // Directories first, so that the server makes them while files are sent.
      std::vector<std::unique_ptr<NewDir>> dirs;
      for (LocalEntry& entry : entries) {
        if (flow_->is_stopped() || entry.error != 0 || !S_ISDIR(entry.attributes.st_mode)) continue;
        dirs.push_back(std::make_unique<NewDir>(*flow_, std::move(entry)));
        TreeWork::Places places = co_await work_->begin(0);
        flow_->spawn(make_child(dir, *dirs.back(), std::move(places)));
      }
      for (LocalEntry& entry : entries) {
        if (flow_->is_stopped()) break;
        if (entry.error == 0 && S_ISDIR(entry.attributes.st_mode)) continue;
        const auto size = static_cast<std::uint64_t>(entry.attributes.st_size);
        work_->found(size);
        TreeWork::Places places = co_await work_->begin(std::min<std::uint64_t>(size, work_->limits().small_file));
        flow_->spawn(one_entry(dir, std::move(entry), std::move(places)));
      }
      for (std::unique_ptr<NewDir>& child : dirs) {
        co_await child->made.wait();
        if (child->dir && co_await open_child(*dir, *child)) co_await walk(std::move(child->dir));
      }
    }
  }

  static std::int64_t read_names(RemoteDir& dir, std::vector<LocalEntry>& entries, bool& at_end) {
    while (entries.size() < kNamesAtOnce) {
      errno = 0;
      const dirent* found = readdir(dir.stream.get());
      if (found == nullptr) {
        at_end = true;
        return -errno;
      }
      LocalEntry entry;
      entry.name = found->d_name;
      if (entry.name == "." || entry.name == "..") continue;
      if (fstatat(dir.fd(), entry.name.c_str(), &entry.attributes, AT_SYMLINK_NOFOLLOW) != 0) entry.error = errno;
      entries.push_back(std::move(entry));
    }
    return 0;
  }

  Task<void> make_child(std::shared_ptr<RemoteDir> parent, NewDir& child, [[maybe_unused]] TreeWork::Places places) {
    auto dir = std::make_unique<RemoteDir>();
    dir->local = parent->local + "/" + child.entry.name;
    dir->url = parent->url.child(child.entry.name);
    dir->attributes = child.entry.attributes;
    dir->depth = parent->depth + 1;
    absl::Status status = absl::OkStatus();
    if (dir->depth == kMaxDepth) {
      status = absl::FailedPreconditionError(dir->local + ": directories nested too deeply");
    } else {
      status = co_await make(*dir, parent->fh);
    }
    dir->parent = std::move(parent);
    if (work_->report(status)) child.dir = share(std::move(dir));
    child.made.set();
  }

  Task<bool> open_child(const RemoteDir& parent, NewDir& child) {
    RemoteDir& dir = *child.dir;
    dir.place.emplace(co_await work_->open_dirs().acquire(1));
    const std::int64_t error = co_await flow_->io([&]() -> std::int64_t {
      const int fd =
          openat(parent.fd(), child.entry.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
      if (fd < 0) return -errno;
      dir.stream.reset(fdopendir(fd));
      if (dir.stream) return 0;
      const int error = errno;
      close(fd);
      return -error;
    });
    co_return work_->report(error == 0 ? absl::OkStatus() : errno_status(static_cast<int>(-error), dir.local));
  }

  Task<void> one_entry(std::shared_ptr<RemoteDir> dir, LocalEntry entry, [[maybe_unused]] TreeWork::Places places) {
    const std::string local = dir->local + "/" + entry.name;
    const Url url = dir->url.child(entry.name);
    absl::Status status;
    if (entry.error != 0) {
      status = errno_status(entry.error, local);
    } else if (S_ISLNK(entry.attributes.st_mode)) {
      status = co_await symbolic_link(*dir, entry, local, url);
    } else if (!S_ISREG(entry.attributes.st_mode)) {
      status = absl::FailedPreconditionError(local + ": skipped: not a regular file");
    } else {
      const Clock::time_point started = Clock::now();
      // The size that one WRITE takes whole.
      const std::size_t most = std::min<std::size_t>(work_->limits().small_file, transfer_->write_size());
      Source source;
      const std::int64_t error = co_await flow_->io([&] { return open_source(dir->fd(), entry.name, most, source); });
      status = error == 0 ? absl::OkStatus() : errno_status(static_cast<int>(-error), local);
      if (status.ok()) status = co_await file(source, local, dir->fh, url, started);
    }
    work_->report(status);
    ++work_->counts().files;
  }

  Task<absl::Status> symbolic_link(const RemoteDir& dir, const LocalEntry& entry, const std::string& local,
                                   const Url& url) {
    std::vector<std::uint8_t> text(PATH_MAX);
    const std::int64_t len = co_await flow_->io([&]() -> std::int64_t {
      const ssize_t found = readlinkat(dir.fd(), entry.name.c_str(), reinterpret_cast<char*>(text.data()), text.size());
      return found < 0 ? -errno : found;
    });
    if (len < 0) co_return errno_status(static_cast<int>(-len), local);
    text.resize(static_cast<std::size_t>(len));
    nfs3::SymlinkArgs args{{dir.fh, url.basename()}, {}, {static_cast<std::uint32_t>(len), text}};
    if (options_.preserve) set_times(entry.attributes, args.symlink_attributes);
    nfs3::NewObjectRes res;
    const absl::Status status = co_await make_symlink(*flow_, args, res);
    co_return status.ok() ? check(res.status, url.str()) : explain(status, url.str());
  }

  // whole_file is the root Task for the sending of a single file.
  Task<void> whole_file(Source& source, const std::string& local, const Target& target, absl::Status& result) {
    runner_.progress().begin(target.url.basename(),
                             source.is_rereadable() ? static_cast<std::uint64_t>(source.attributes.st_size) : 0);
    result = co_await file(source, local, target.dir.fh, target.url, Clock::now());
    runner_.progress().clear();
  }

  Task<absl::Status> file(Source& source, const std::string& local, nfs3::NfsFh3 dir, const Url& url,
                          Clock::time_point started) {
    RemoteFile file(*flow_, dir, url);
    const std::uint32_t mode = source.is_rereadable() ? source.attributes.st_mode & kPermissions : 0644u;
    absl::Status status = co_await file.create(mode);
    std::uint64_t octets = 0;
    if (status.ok()) status = co_await send_until_safe(source, local, file, url, octets);
    if (status.ok() && (!file.has_mode() || options_.preserve)) {
      nfs3::Sattr3 last;
      last.mode = mode;
      if (options_.preserve) set_times(source.attributes, last);
      status = co_await file.set_attributes(last);
    }
    if (status.ok()) status = co_await file.rename();
    if (!status.ok()) {
      co_await file.remove();
      co_return status;
    }
    work_->counts().octets += octets;
    if (!options_.json) co_return absl::OkStatus();
    const double seconds = std::chrono::duration<double>(Clock::now() - started).count();
    runner_.print(JsonLine()
                      .add("op", "put")
                      .add("local", local)
                      .add("url", url.str())
                      .add("octets", octets)
                      .add("seconds", seconds)
                      .add("octets_per_s", double(octets) / seconds)
                      .str());
    co_return absl::OkStatus();
  }

  // send_until_safe writes the file and commits it. If the server lost uncommitted data, it does so again (RFC 1813
  // section 3.3.21). A file that cannot be read twice is written FILE_SYNC instead.
  Task<absl::Status> send_until_safe(Source& source, const std::string& local, RemoteFile& file, const Url& url,
                                     std::uint64_t& octets) {
    const bool in_pieces = source.is_rereadable() && !options_.sync;
    const StableHow stable = in_pieces ? StableHow::kUnstable : StableHow::kFileSync;
    for (int attempt = 0; attempt < kMaxSendAttempts; ++attempt) {
      absl::StatusOr<Uploaded> sent = Uploaded{};
      if (source.is_whole) {
        sent = co_await write_small(*flow_, file.fh(), stable, source.data);
      } else {
        sent = co_await send_large(source, file, stable);
      }
      if (absl::IsDataLoss(sent.status())) {
        co_return absl::UnknownError("cannot read " + local + ": " + std::string(sent.status().message()));
      }
      if (!sent.ok()) co_return explain(sent.status(), url.str());
      octets = sent->octets;
      absl::StatusOr<bool> safe = co_await file.commit(*sent);
      if (!safe.ok()) co_return safe.status();
      if (*safe) co_return absl::OkStatus();
    }
    co_return absl::UnavailableError(url.str() + ": the server keeps starting anew, the data never became safe");
  }

  Task<absl::StatusOr<Uploaded>> send_large(Source& source, RemoteFile& file, StableHow stable) {
    const SlotsHeld held = co_await work_->large_file().acquire(1);
    const int fd = source.fd.get();
    if (source.is_rereadable() && lseek(fd, 0, SEEK_SET) != 0) co_return absl::DataLossError(std::strerror(errno));
    bool ended = false;  // a terminal would wait for more input after its end
    Transfer::Source read_more = [fd, &io = transfer_->io(), &ended](std::span<std::uint8_t> out) -> std::int64_t {
      if (ended) return 0;
      const std::int64_t len = read_fully(fd, out, io);
      ended = len < static_cast<std::int64_t>(out.size());
      return len;
    };
    std::uint64_t counted = 0;
    ProgressFunction progress = [this, &counted](std::uint64_t done) {
      work_->counts().octets += done - std::exchange(counted, done);
      if (!options_.recursive) runner_.progress().update(done);
    };
    auto sent = co_await transfer_->upload(*flow_, file.fh(), stable, std::move(read_more), std::move(progress));
    work_->counts().octets -= counted;
    co_return sent;
  }

  Runner& runner_;
  const NfsOptions& options_;
  Session* session_ = nullptr;
  Transfer* transfer_ = nullptr;
  Flow* flow_ = nullptr;
  TreeWork* work_ = nullptr;
  std::uint64_t num_cut_times_ = 0;
};

}  // namespace

void run_put(Runner& runner) {
  std::vector<std::string> locals = runner.options().names;
  auto url = parse_url(locals.back());
  if (!url.ok()) return void(runner.report(url.status()));
  locals.pop_back();
  for (const std::string& local : locals) {
    if (!looks_like_url(local)) continue;
    return void(runner.report(
        absl::InvalidArgumentError("put copies from here to a server: '" + local + "' is not a local path")));
  }
  if (locals.size() > 1) url->trailing_slash = true;
  Put put(runner);
  for (const std::string& local : locals) {
    if (!runner.report(put.run(local, *url))) break;
  }
  if (put.num_cut_times() == 0) return;
  runner.warn(
      fmt::format("{} a time that NFS version 3 cannot have; the nearest of 1970 to 2106 is set",
                  put.num_cut_times() == 1 ? "1 entry has" : fmt::format("{} entries have", put.num_cut_times())));
}

}  // namespace weft::nfs
