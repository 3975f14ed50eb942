// `weft nfs put`.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <memory>

#include "apps/nfs/local_file.h"
#include "apps/nfs/runner.h"
#include "apps/nfs/tree.h"

namespace weft::nfs {
namespace {

using nfs3::Nfsstat3;
using nfs3::Proc;
using nfs3::StableHow;

constexpr int kMaxDepth = 512;
constexpr int kMaxNameAttempts = 16;
// How often a file is sent anew because the server started anew meanwhile.
constexpr int kMaxSendAttempts = 3;
constexpr std::uint32_t kPermissions = 07777;

nfs3::Nfstime3 to_nfstime(const timespec& time) {
  return {static_cast<std::uint32_t>(time.tv_sec), static_cast<std::uint32_t>(time.tv_nsec)};
}

// RemoteFile is the temporary file on the server that a put fills. Destroyed before rename(), it removes the file.
class RemoteFile {
 public:
  RemoteFile(Session& session, const nfs3::NfsFh3& dir, std::string name, const Url& url)
      : session_(session), dir_(dir), name_(std::move(name)), url_(url) {}
  RemoteFile(const RemoteFile&) = delete;
  RemoteFile& operator=(const RemoteFile&) = delete;
  ~RemoteFile() {
    if (temporary_.empty()) return;
    const Session::Cleanup cleanup(session_);
    nfs3::WccRes res;
    session_.call(Proc::kRemove, nfs3::DiropArgs{{dir_, temporary_}}, res).IgnoreError();
  }

  const nfs3::NfsFh3& fh() const { return fh_; }

  absl::Status create() {
    for (int attempt = 0; attempt < kMaxNameAttempts; ++attempt) {
      std::string temporary = temporary_name(name_);
      nfs3::CreateArgs args{{dir_, temporary}, nfs3::Createmode3::kGuarded, {}, {}};
      args.obj_attributes.mode = 0600;
      nfs3::NewObjectRes res;
      if (absl::Status status = session_.call(Proc::kCreate, args, res); !status.ok()) {
        temporary_ = std::move(temporary);  // the server may have made it
        return explain(status, url_.str());
      }
      if (res.status == Nfsstat3::kExist) continue;
      if (absl::Status status = check(res.status, url_.str()); !status.ok()) return status;
      temporary_ = std::move(temporary);
      if (res.obj) {
        fh_ = *res.obj;
        return absl::OkStatus();
      }
      auto node = lookup(session_, dir_, temporary_, url_);
      if (!node.ok()) return node.status();
      fh_ = node->fh;
      return absl::OkStatus();
    }
    return absl::AlreadyExistsError(url_.str() + ": no free temporary name");
  }

  absl::Status set_attributes(const nfs3::Sattr3& attributes) {
    nfs3::WccRes res;
    absl::Status status = session_.call(Proc::kSetattr, nfs3::SetattrArgs{fh_, attributes, std::nullopt}, res);
    return status.ok() ? check(res.status, url_.str()) : explain(status, url_.str());
  }

  absl::Status rename() {
    nfs3::RenameRes res;
    absl::Status status = session_.call(Proc::kRename, nfs3::RenameArgs{{dir_, temporary_}, {dir_, name_}}, res);
    if (!status.ok()) return explain(status, url_.str());
    if (status = check(res.status, url_.str()); status.ok()) temporary_.clear();
    return status;
  }

 private:
  Session& session_;
  nfs3::NfsFh3 dir_;
  std::string name_;
  const Url& url_;
  std::string temporary_;
  nfs3::NfsFh3 fh_;
};

struct CloseDir {
  void operator()(DIR* stream) const { closedir(stream); }
};

// Put copies one local name, with everything in it, to a remote one.
class Put {
 public:
  explicit Put(Runner& runner) : runner_(runner), options_(runner.options()) {}

  absl::Status run(const std::string& local, const Url& url) {
    auto session = runner_.session(url);
    if (!session.ok()) return session.status();
    session_ = *session;
    const bool is_stdin = local == "-";
    UniqueFd source(is_stdin ? dup(STDIN_FILENO) : open(local.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!source) return errno_status(errno, local);
    auto target = target_of(url, is_stdin ? "" : base_of(local));
    if (!target.ok()) return target.status();

    struct stat attributes {};
    if (fstat(source.get(), &attributes) != 0) return errno_status(errno, local);
    if (!S_ISDIR(attributes.st_mode)) return file_contents(source.get(), attributes, local, *target);
    if (!options_.recursive) return absl::FailedPreconditionError(local + ": is a directory (use -r)");
    if (target->url.path.size() <= session_->export_path().size()) {
      return directory_contents(std::move(source), target->dir.fh, local, target->url, 0);
    }
    return directory(std::move(source), attributes, target->dir.fh, local, target->url, 0);
  }

 private:
  struct Target {
    Node dir;
    Url url;  // its last name is in dir
  };

  static std::string base_of(std::string path) {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    if (const std::size_t slash = path.rfind('/'); slash != std::string::npos) path = path.substr(slash + 1);
    if (path != "." && path != "..") return path;
    // The name of what is meant, not of how it was written.
    const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
    return real ? base_of(real.get()) : std::string();
  }

  // target_of: what the copy will be called; in url where that is a directory, as cp(1) does.
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

  absl::Status directory(UniqueFd fd, const struct stat& attributes, const nfs3::NfsFh3& parent,
                         const std::string& local, const Url& url, int depth) {
    constexpr std::uint32_t kOwnerMayWrite = 0300;
    const std::uint32_t mode = attributes.st_mode & 0777;
    nfs3::MkdirArgs args{{parent, url.basename()}, {}};
    args.attributes.mode = mode | kOwnerMayWrite;
    nfs3::NewObjectRes res;
    absl::Status status = session_->call(Proc::kMkdir, args, res);
    if (!status.ok()) return explain(status, url.str());
    nfs3::NfsFh3 fh;
    if (res.status == Nfsstat3::kOk && res.obj) {
      fh = *res.obj;
    } else if (res.status == Nfsstat3::kOk || res.status == Nfsstat3::kExist) {
      auto node = lookup(*session_, parent, url.basename(), url);
      if (!node.ok()) return node.status();
      if (!node->is_dir()) return absl::FailedPreconditionError(url.str() + ": not a directory");
      fh = node->fh;
    } else {
      return check(res.status, url.str());
    }
    if (status = directory_contents(std::move(fd), fh, local, url, depth); !status.ok()) return status;
    if ((mode & kOwnerMayWrite) == kOwnerMayWrite) return absl::OkStatus();
    nfs3::SetattrArgs last{fh, {}, std::nullopt};
    last.new_attributes.mode = mode;
    nfs3::WccRes set;
    status = session_->call(Proc::kSetattr, last, set);
    return status.ok() ? check(set.status, url.str()) : explain(status, url.str());
  }

  absl::Status directory_contents(UniqueFd fd, const nfs3::NfsFh3& dir, const std::string& local, const Url& url,
                                  int depth) {
    if (depth == kMaxDepth) return absl::FailedPreconditionError(local + ": directories nested too deeply");
    const int dir_fd = fd.release();
    const std::unique_ptr<DIR, CloseDir> stream(fdopendir(dir_fd));
    if (!stream) {
      close(dir_fd);
      return errno_status(errno, local);
    }
    std::vector<std::string> names;
    while (const dirent* entry = readdir(stream.get())) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      absl::Status status = one_entry(dir_fd, name, dir, local + "/" + name, url.child(name), depth);
      if (!status.ok() && !runner_.report(status)) return absl::CancelledError("not everything was copied");
    }
    return absl::OkStatus();
  }

  absl::Status one_entry(int dir_fd, const std::string& name, const nfs3::NfsFh3& dir, const std::string& local,
                         const Url& url, int depth) {
    struct stat attributes {};
    if (fstatat(dir_fd, name.c_str(), &attributes, AT_SYMLINK_NOFOLLOW) != 0) return errno_status(errno, local);
    if (S_ISLNK(attributes.st_mode)) return symbolic_link(dir_fd, name, dir, local, url);
    if (!S_ISREG(attributes.st_mode) && !S_ISDIR(attributes.st_mode)) {
      return absl::FailedPreconditionError(local + ": not copied, it is no regular file");
    }
    UniqueFd fd(openat(dir_fd, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY));
    if (!fd || fstat(fd.get(), &attributes) != 0) return errno_status(errno, local);
    if (S_ISDIR(attributes.st_mode)) return directory(std::move(fd), attributes, dir, local, url, depth + 1);
    return file_contents(fd.get(), attributes, local, Target{Node{dir, {}}, url});
  }

  absl::Status symbolic_link(int dir_fd, const std::string& name, const nfs3::NfsFh3& dir, const std::string& local,
                             const Url& url) {
    std::vector<std::uint8_t> text(PATH_MAX);
    const ssize_t len = readlinkat(dir_fd, name.c_str(), reinterpret_cast<char*>(text.data()), text.size());
    if (len < 0) return errno_status(errno, local);
    text.resize(static_cast<std::size_t>(len));
    nfs3::SymlinkArgs args{{dir, url.basename()}, {}, {static_cast<std::uint32_t>(len), text}};
    nfs3::NewObjectRes res;
    absl::Status status = session_->symlink(args, res);
    return status.ok() ? check(res.status, url.str()) : explain(status, url.str());
  }

  absl::Status file_contents(int fd, const struct stat& attributes, const std::string& local, const Target& target) {
    const auto started = std::chrono::steady_clock::now();
    RemoteFile file(*session_, target.dir.fh, target.url.basename(), target.url);
    if (absl::Status status = file.create(); !status.ok()) return status;
    auto octets = send_until_safe(fd, attributes, local, file, target.url);
    runner_.progress().clear();
    if (!octets.ok()) return octets.status();

    nfs3::Sattr3 last;
    last.mode = S_ISREG(attributes.st_mode) ? attributes.st_mode & kPermissions & ~std::uint32_t{07000} : 0644u;
    if (options_.preserve) last.mtime = {nfs3::TimeHow::kSetToClientTime, to_nfstime(attributes.st_mtim)};
    if (absl::Status status = file.set_attributes(last); !status.ok()) return status;
    if (absl::Status status = file.rename(); !status.ok()) return status;

    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    if (options_.json) {
      runner_.print(JsonLine()
                        .add("op", "put")
                        .add("local", local)
                        .add("url", target.url.str())
                        .add("octets", *octets)
                        .add("seconds", seconds)
                        .add("octets_per_s", double(*octets) / seconds)
                        .str());
    }
    return absl::OkStatus();
  }

  // send_until_safe writes the file and commits it, anew where the server lost what it had not committed (RFC 1813
  // section 3.3.21). What cannot be read twice is written FILE_SYNC instead.
  absl::StatusOr<std::uint64_t> send_until_safe(int fd, const struct stat& attributes, const std::string& local,
                                                const RemoteFile& file, const Url& url) {
    const bool rereadable = S_ISREG(attributes.st_mode);
    Transfer& transfer = runner_.transfer(*session_);
    runner_.progress().begin(url.basename(), rereadable ? static_cast<std::uint64_t>(attributes.st_size) : 0);
    for (int attempt = 0; attempt < kMaxSendAttempts; ++attempt) {
      if (rereadable && lseek(fd, 0, SEEK_SET) != 0) return errno_status(errno, local);
      bool ended = false;  // a terminal would wait for more behind its end
      const auto read_more = [fd, &io = transfer.io(), &ended](std::span<std::uint8_t> out) -> std::int64_t {
        if (ended) return 0;
        const std::int64_t len = read_fully(fd, out, io);
        ended = len < static_cast<std::int64_t>(out.size());
        return len;
      };
      auto sent = transfer.upload(file.fh(), rereadable ? StableHow::kUnstable : StableHow::kFileSync, read_more,
                                  [this](std::uint64_t done) { runner_.progress().update(done); });
      if (absl::IsDataLoss(sent.status())) {
        return absl::UnknownError("cannot read " + local + ": " + std::string(sent.status().message()));
      }
      if (!sent.ok()) return explain(sent.status(), url.str());
      auto safe = commit(*sent, file, url);
      if (!safe.ok()) return safe.status();
      if (*safe) return sent->octets;
    }
    return absl::UnavailableError(url.str() + ": the server keeps starting anew, the data never became safe");
  }

  absl::StatusOr<bool> commit(const Transfer::Uploaded& sent, const RemoteFile& file, const Url& url) {
    if (!sent.unstable) return true;
    nfs3::CommitRes res;
    absl::Status status = session_->call(Proc::kCommit, nfs3::CommitArgs{file.fh(), 0, 0}, res);
    if (!status.ok()) return explain(status, url.str());
    if (status = check(res.status, url.str()); !status.ok()) return status;
    return !sent.verf_changed && res.verf == sent.verf;
  }

  Runner& runner_;
  const NfsOptions& options_;
  Session* session_ = nullptr;
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
    if (!runner.report(put.run(local, *url))) return;
  }
}

}  // namespace weft::nfs
