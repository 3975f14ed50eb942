#include "apps/nfs/tree_work.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "apps/common/output.h"
#include "apps/nfs/local_file.h"
#include "apps/nfs/runner.h"
#include "apps/nfs/tree.h"

namespace weft::nfs {

std::string progress_text(const TreeCounts& counts, double seconds) {
  const double elapsed = std::max(seconds, 0.001);
  std::string text = fmt::format("{} of {}{} files, {}, {}, {:.0f} files/s", counts.files, counts.found_files,
                                 counts.found_all ? "" : "+", apps::format_octets(double(counts.octets)),
                                 apps::format_rate(double(counts.octets) / elapsed), double(counts.files) / elapsed);
  if (!counts.found_all || counts.files == 0) return text;
  // Small files cost time per file and large files per byte. The slower of both decides the end.
  const auto left = [elapsed](std::uint64_t done, std::uint64_t all) {
    return done == 0 || all <= done ? 0.0 : elapsed * (double(all) / double(done) - 1.0);
  };
  const double seconds_left =
      std::max(left(counts.files, counts.found_files), left(counts.octets, counts.found_octets));
  if (seconds_left < 60) return text + fmt::format(", {:.0f} s left", seconds_left);
  const auto minutes = static_cast<std::uint64_t>(seconds_left / 60);
  if (minutes < 60) return text + fmt::format(", {} min left", minutes);
  return text + fmt::format(", {} h {} min left", minutes / 60, minutes % 60);
}

TreeWork::TreeWork(Runner& runner, Flow& flow, const TreeLimits& limits)
    : runner_(runner),
      flow_(flow),
      limits_(limits),
      files_(flow, limits.files),
      octets_(flow, limits.octets),
      large_file_(flow, 1),
      open_dirs_(flow, limits.open_dirs),
      started_(std::chrono::steady_clock::now()) {}

Task<TreeWork::Places> TreeWork::begin(std::size_t octets) {
  SlotsHeld file = co_await files_.acquire(1);
  SlotsHeld held = co_await octets_.acquire(octets);
  co_return Places{std::move(file), std::move(held)};
}

bool TreeWork::Listed::set(std::size_t octets) {
  work_.listed_octets_ += octets - octets_;
  octets_ = octets;
  return work_.listed_octets_ <= work_.limits_.listed_octets;
}

bool TreeWork::report(const absl::Status& status) {
  if (status.ok()) return true;
  if (flow_.is_stopped()) return false;
  if (!runner_.report(status)) flow_.stop(status);
  return false;
}

void TreeWork::found(std::uint64_t octets) {
  counts_.found_files = std::max(counts_.found_files, ++walked_files_);
  counts_.found_octets = std::max(counts_.found_octets, walked_octets_ += octets);
}

void TreeWork::has_found_all(std::uint64_t files, std::uint64_t octets) {
  counts_.found_files = std::max(counts_.found_files, files);
  counts_.found_octets = std::max(counts_.found_octets, octets);
  counts_.found_all = true;
}

Task<void> TreeWork::count_remote(nfs3::NfsFh3 dir, Url url) {
  TreeCounts sum;
  if (co_await count_below(dir, std::move(url), 0, sum)) has_found_all(sum.found_files, sum.found_octets);
}

Task<bool> TreeWork::count_below(nfs3::NfsFh3 dir, Url url, int depth, TreeCounts& sum) {
  if (depth == kMaxDepth) co_return false;
  Listing listing(flow_, dir, url);
  std::vector<DirEntry> page;
  while (!listing.at_end()) {
    page.clear();
    const absl::Status status = co_await listing.next(page);
    Listed listed(*this);
    if (flow_.is_stopped() || !status.ok() || !listed.set(octets_held(page))) co_return false;
    for (const DirEntry& entry : page) {
      if (!entry.status.ok()) continue;
      if (entry.node.is_dir()) {
        if (!co_await count_below(entry.node.fh, url.child(entry.name), depth + 1, sum)) co_return false;
        continue;
      }
      ++sum.found_files;
      sum.found_octets += entry.node.attributes.size;
    }
  }
  co_return true;
}

namespace {

// LocalCount counts a local tree in steps.
class LocalCount {
 public:
  explicit LocalCount(const std::string& path) { enter(open(path.c_str(), kFlags)); }

  std::uint64_t files = 0;
  std::uint64_t octets = 0;

  // step reads some names. False: the end was reached, or a part cannot be counted.
  bool step() {
    constexpr int kNamesAtOnce = 512;
    for (int i = 0; i < kNamesAtOnce && !open_.empty(); ++i) {
      const dirent* found = readdir(open_.back().get());
      if (found == nullptr) {
        open_.pop_back();
        continue;
      }
      const std::string_view name = found->d_name;
      struct stat attributes {};
      const int dir = dirfd(open_.back().get());
      if (name == "." || name == ".." || fstatat(dir, found->d_name, &attributes, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISDIR(attributes.st_mode)) {
        if (open_.size() == kMaxOpen) return is_complete_ = false;
        enter(openat(dir, found->d_name, kFlags | O_NOFOLLOW));
        continue;
      }
      ++files;
      octets += static_cast<std::uint64_t>(attributes.st_size);
    }
    return !open_.empty();
  }
  bool is_complete() const { return is_complete_; }

 private:
  static constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOCTTY;
  static constexpr std::size_t kMaxOpen = 64;  // the walk needs descriptors, too

  void enter(int fd) {
    if (fd < 0) return;
    open_.emplace_back(fdopendir(fd));
    if (open_.back()) return;
    open_.pop_back();
    close(fd);
  }

  std::vector<std::unique_ptr<DIR, CloseDir>> open_;
  bool is_complete_ = true;
};

}  // namespace

Task<void> TreeWork::count_local(std::string path) {
  LocalCount count(path);
  std::int64_t goes_on = 1;
  while (goes_on != 0 && !flow_.is_stopped()) {
    goes_on = co_await flow_.io([&count]() -> std::int64_t { return count.step() ? 1 : 0; });
  }
  if (!flow_.is_stopped() && count.is_complete()) has_found_all(count.files, count.octets);
}

absl::Status TreeWork::run(Task<void> walk) {
  flow_.on_turn = [this] { show_progress(); };
  flow_.run(std::move(walk));
  flow_.on_turn = nullptr;
  runner_.progress().clear();
  return flow_.stop_status();
}

void TreeWork::show_progress() {
  runner_.progress().show([this] {
    const auto elapsed = std::chrono::steady_clock::now() - started_;
    return progress_text(counts_, std::chrono::duration<double>(elapsed).count());
  });
}

}  // namespace weft::nfs
