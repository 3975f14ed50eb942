// `weft nfs get` and `weft nfs cat`.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "apps/nfs/local_file.h"
#include "apps/nfs/runner.h"
#include "apps/nfs/tree.h"

namespace weft::nfs {
namespace {

constexpr int kMaxDepth = 512;

timespec to_timespec(const nfs3::Nfstime3& time) {
  return {static_cast<time_t>(time.seconds), static_cast<long>(time.nseconds)};
}

// Get copies one remote name, with everything in it, to a local one. Local directories are worked on through their
// descriptors and never through symbolic links, so that no listing of the server's can lead out of them.
class Get {
 public:
  explicit Get(Runner& runner) : runner_(runner), options_(runner.options()) {}

  absl::Status run(const Url& url, const std::string& local) {
    auto session = runner_.session(url);
    if (!session.ok()) return session.status();
    session_ = *session;
    auto node = resolve(*session_, url, FollowLast::kYes);
    if (!node.ok()) return node.status();

    struct stat there {};
    const bool into = stat(local.c_str(), &there) == 0 && S_ISDIR(there.st_mode) && !url.basename().empty();
    const std::string target = into ? local + "/" + url.basename() : local;
    if (!node->is_dir()) {
      if (!node->is_regular()) return absl::FailedPreconditionError(url.str() + ": not a regular file");
      auto file = LocalFile::open_path(target);
      return file.ok() ? file_contents(url, *node, *file, target) : file.status();
    }
    if (!options_.recursive) return absl::FailedPreconditionError(url.str() + ": is a directory (use -r)");
    if (mkdir(target.c_str(), 0777) != 0 && errno != EEXIST) return errno_status(errno, target);
    const UniqueFd dir(open(target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!dir) return errno_status(errno, target);
    return directory(url, *node, dir.get(), target, 0);
  }

  absl::Status print_summary() {
    if (options_.json && options_.recursive) {
      runner_.print(JsonLine()
                        .add("op", "get_total")
                        .add("files", num_files_)
                        .add("octets", octets_)
                        .add("seconds", seconds_)
                        .str());
    }
    return absl::OkStatus();
  }

 private:
  absl::Status directory(const Url& url, const Node& node, int dir_fd, const std::string& shown, int depth) {
    if (depth == kMaxDepth) return absl::FailedPreconditionError(url.str() + ": directories nested too deeply");
    auto entries = list(*session_, node.fh, url);
    if (!entries.ok()) return entries.status();
    for (const DirEntry& entry : *entries) {
      absl::Status status = one_entry(url.child(entry.name), entry, dir_fd, shown + "/" + entry.name, depth);
      if (!status.ok() && !runner_.report(status)) return absl::CancelledError("not everything was copied");
    }
    return absl::OkStatus();
  }

  absl::Status one_entry(const Url& url, const DirEntry& entry, int dir_fd, const std::string& shown, int depth) {
    if (entry.node.is_dir()) {
      if (mkdirat(dir_fd, entry.name.c_str(), 0777) != 0 && errno != EEXIST) return errno_status(errno, shown);
      const UniqueFd dir(openat(dir_fd, entry.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!dir) return errno_status(errno, shown);
      return directory(url, entry.node, dir.get(), shown, depth + 1);
    }
    if (entry.node.is_symlink()) return symbolic_link(url, entry, dir_fd, shown);
    if (!entry.node.is_regular())
      return absl::FailedPreconditionError(url.str() + ": not copied, it is no regular file");
    auto file = LocalFile::create(dir_fd, entry.name, shown);
    return file.ok() ? file_contents(url, entry.node, *file, shown) : file.status();
  }

  absl::Status symbolic_link(const Url& url, const DirEntry& entry, int dir_fd, const std::string& shown) {
    auto text = link_text(*session_, entry.node.fh, url);
    if (!text.ok()) return text.status();
    const std::string temporary = temporary_name(entry.name);
    if (symlinkat(text->c_str(), dir_fd, temporary.c_str()) != 0) return errno_status(errno, shown);
    if (renameat(dir_fd, temporary.c_str(), dir_fd, entry.name.c_str()) == 0) return absl::OkStatus();
    const int error = errno;
    unlinkat(dir_fd, temporary.c_str(), 0);
    return errno_status(error, shown);
  }

  absl::Status file_contents(const Url& url, const Node& node, LocalFile& file, const std::string& shown) {
    Transfer& transfer = runner_.transfer(*session_);
    runner_.progress().begin(url.basename(), node.attributes.size);
    const auto started = std::chrono::steady_clock::now();
    auto octets = transfer.download(
        node.fh, node.attributes.size,
        [fd = file.fd(), &io = transfer.io()](auto in) { return write_fully(fd, in, io); },
        [this](std::uint64_t done) { runner_.progress().update(done); });
    runner_.progress().clear();
    if (absl::IsDataLoss(octets.status())) {
      return absl::UnknownError("cannot write " + shown + ": " + std::string(octets.status().message()));
    }
    if (!octets.ok()) return explain(octets.status(), url.str());
    const timespec mtime = to_timespec(node.attributes.mtime);
    if (absl::Status status = file.commit(node.attributes.mode, options_.preserve ? &mtime : nullptr); !status.ok()) {
      return status;
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    ++num_files_;
    octets_ += *octets;
    seconds_ += seconds;
    if (options_.json) {
      runner_.print(JsonLine()
                        .add("op", "get")
                        .add("url", url.str())
                        .add("local", shown)
                        .add("octets", *octets)
                        .add("seconds", seconds)
                        .add("octets_per_s", double(*octets) / seconds)
                        .str());
    }
    return absl::OkStatus();
  }

  Runner& runner_;
  const NfsOptions& options_;
  Session* session_ = nullptr;
  std::uint64_t num_files_ = 0;
  std::uint64_t octets_ = 0;
  double seconds_ = 0;
};

absl::Status cat_one(Runner& runner, const Url& url) {
  auto session = runner.session(url);
  if (!session.ok()) return session.status();
  auto node = resolve(**session, url, FollowLast::kYes);
  if (!node.ok()) return node.status();
  if (node->is_dir()) return absl::FailedPreconditionError(url.str() + ": is a directory");
  if (!node->is_regular()) return absl::FailedPreconditionError(url.str() + ": not a regular file");
  Transfer& transfer = runner.transfer(**session);
  bool reader_left = false;  // written by the I/O thread, which is idle when download returns
  const auto sink = [&io = transfer.io(), &reader_left](auto in) {
    const std::int64_t result = write_fully(STDOUT_FILENO, in, io);
    if (result == -EPIPE) reader_left = true;
    return result;
  };
  auto octets = transfer.download(node->fh, node->attributes.size, sink, nullptr);
  if (reader_left) {
    runner.fail_silently();
    return absl::OkStatus();
  }
  if (absl::IsDataLoss(octets.status())) {
    return absl::CancelledError("cannot write to standard output: " + std::string(octets.status().message()));
  }
  return octets.ok() ? absl::OkStatus() : explain(octets.status(), url.str());
}

}  // namespace

void run_get(Runner& runner) {
  std::vector<std::string> names = runner.options().names;
  // The last name is the local one; a single remote name is copied to here.
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
  struct stat there {};
  const bool is_dir = stat(local.c_str(), &there) == 0 && S_ISDIR(there.st_mode);
  if (urls->size() > 1 && !is_dir) {
    return void(runner.report(
        absl::InvalidArgumentError("several files need an existing directory to go to, '" + local + "' is none")));
  }
  Get get(runner);
  for (const Url& url : *urls) {
    if (!runner.report(get.run(url, local))) return;
  }
  runner.report(get.print_summary());
}

void run_cat(Runner& runner) {
  auto urls = remote_names(runner.options().names);
  if (!urls.ok()) return void(runner.report(urls.status()));
  for (const Url& url : *urls) {
    if (!runner.report(cat_one(runner, url))) return;
  }
}

}  // namespace weft::nfs
