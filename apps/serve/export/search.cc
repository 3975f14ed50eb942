#include "apps/serve/export/search.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <ctime>
#include <deque>
#include <unordered_map>

#include "apps/serve/export/beneath.h"
#include "apps/serve/export/dir_reader.h"

namespace weft::serve {
namespace {

// How often a tree that changes under the search is read again.
constexpr int kMaxPasses = 3;

bool is_wanted(const SearchScope& scope, int dir_fd, const std::string& name, const FileKey& wanted) {
  Outcome<Fd> fd = open_path_beneath(dir_fd, name, {.cross_mounts = scope.cross_mounts});
  if (!fd) return false;
  Outcome<FileStat> st = stat_fd(fd->get());
  return st && st->key(scope.root_dev) == wanted;
}

bool newer(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

using OnFound = std::function<void(const FileKey& file, const SearchResult& result)>;
// The files that a search looks for, by their inode numbers.
using Wanted = std::unordered_multimap<std::uint64_t, FileKey>;

// TreeScan is one pass over the tree. It takes the files that it meets out of `wanted`.
class TreeScan {
 public:
  TreeScan(const SearchScope& scope, Wanted& wanted, std::size_t& budget, const OnFound& on_found)
      : scope_(scope), wanted_(wanted), budget_(budget), on_found_(on_found) {
    dirs_.push_back(Dir{.key = scope.root, .parent = 0, .depth = 0, .name = {}});
    // The clock of timestamps; two seconds are the coarsest that filesystems keep.
    clock_gettime(CLOCK_REALTIME_COARSE, &start_);
    start_.tv_sec -= 2;
  }

  void run() {
    for (std::size_t i = 0; i < dirs_.size() && budget_ > 0 && !wanted_.empty(); ++i) scan(i);
  }
  // Whether a directory changed so lately that a file may have moved from a part of the tree not yet read to a part
  // already read.
  bool disturbed() const { return disturbed_; }

 private:
  struct Dir {
    FileKey key;
    std::size_t parent = 0;
    std::size_t depth = 0;
    std::string name;
  };

  std::string path_of(std::size_t index) const {
    std::vector<const std::string*> parts;
    for (std::size_t i = index; i != 0; i = dirs_[i].parent) parts.push_back(&dirs_[i].name);
    std::string path;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) path += (path.empty() ? "" : "/") + **part;
    return path;
  }

  // Reads one directory, which may be a wanted file and may hold others.
  void scan(std::size_t index) {
    Outcome<Fd> dir = open_beneath(scope_.root_fd, path_of(index), O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0,
                                   {.cross_mounts = scope_.cross_mounts});
    if (!dir) {
      const int error = dir.error().value;
      disturbed_ = disturbed_ || (error != EACCES && error != EPERM && error != EXDEV);
      return;
    }
    Outcome<FileStat> st = stat_fd(dir->get());
    if (!st) return;
    if (index != 0) dirs_[index].key = st->key(scope_.root_dev);
    disturbed_ = disturbed_ || newer(st->mtime, start_);
    if (index != 0) take(dirs_[index].key, dirs_[index].parent, dirs_[index].name);
    DirReader reader(dir->get());
    DirEntry entry;
    while (budget_ > 0 && !wanted_.empty()) {
      Outcome<bool> more = reader.next(entry);
      if (!more || !more.value()) break;
      --budget_;
      if (is_dot(entry.name) || is_dot_dot(entry.name)) continue;
      // On a mount point d_ino is the inode of the directory beneath the mount, so directories are compared when they
      // are read.
      for (const FileKey& key : wanted_with(entry.ino)) {
        if (is_wanted(scope_, dir->get(), entry.name, key)) take(key, index, entry.name);
      }
      const std::size_t depth = dirs_[index].depth + 1;
      if ((entry.type == DT_DIR || entry.type == DT_UNKNOWN) && depth < PathIndex::kMaxDepth)
        dirs_.push_back(Dir{.key = {}, .parent = index, .depth = depth, .name = entry.name});
    }
  }

  // A copy: what is found leaves the wanted ones.
  std::vector<FileKey> wanted_with(std::uint64_t ino) const {
    std::vector<FileKey> out;
    const auto [begin, end] = wanted_.equal_range(ino);
    for (auto it = begin; it != end; ++it) out.push_back(it->second);
    return out;
  }

  // A file was met. If it is wanted, it is told of and wanted no more.
  void take(const FileKey& key, std::size_t dir, const std::string& name) {
    const auto [begin, end] = wanted_.equal_range(key.ino);
    const auto at = std::find_if(begin, end, [&](const auto& entry) { return entry.second == key; });
    if (at == end) return;
    wanted_.erase(at);
    on_found_(key, describe(key, dir, name));
  }

  SearchResult describe(const FileKey& key, std::size_t dir, const std::string& name) const {
    SearchResult result;
    const std::string dir_path = path_of(dir);
    result.path = dir_path.empty() ? name : dir_path + "/" + name;
    result.steps.push_back({key, {dirs_[dir].key, name}});
    for (std::size_t i = dir; i != 0; i = dirs_[i].parent)
      result.steps.push_back({dirs_[i].key, {dirs_[dirs_[i].parent].key, dirs_[i].name}});
    std::reverse(result.steps.begin(), result.steps.end());
    return result;
  }

  const SearchScope& scope_;
  Wanted& wanted_;
  std::size_t& budget_;
  const OnFound& on_found_;
  std::deque<Dir> dirs_;
  timespec start_{};
  bool disturbed_ = false;
};

}  // namespace

std::string search_dir(const SearchScope& scope, int dir_fd, const FileKey& wanted) {
  Outcome<Fd> dir = open_beneath(dir_fd, {}, O_RDONLY | O_DIRECTORY);
  if (!dir) return {};
  DirReader reader(dir->get());
  DirEntry entry;
  for (;;) {
    Outcome<bool> more = reader.next(entry);
    if (!more || !more.value()) return {};
    if (entry.ino == wanted.ino && !is_dot(entry.name) && !is_dot_dot(entry.name) &&
        is_wanted(scope, dir->get(), entry.name, wanted))
      return entry.name;
  }
}

std::vector<Found> search_tree(const SearchScope& scope, std::span<const FileKey> wanted, const OnFound& on_found) {
  Wanted left;
  for (const FileKey& key : wanted) {
    const auto [begin, end] = left.equal_range(key.ino);
    if (std::none_of(begin, end, [&](const auto& entry) { return entry.second == key; })) left.emplace(key.ino, key);
  }
  std::size_t budget = scope.max_entries;
  Found of_the_rest = Found::kUnfinished;
  for (int pass = 0; pass < kMaxPasses && !left.empty() && budget > 0; ++pass) {
    TreeScan scan(scope, left, budget, on_found);
    scan.run();
    if (budget == 0) break;
    // To be missed in every pass, a file would have had to move ahead of each pass.
    if (!scan.disturbed() || pass + 1 == kMaxPasses) of_the_rest = Found::kGone;
    if (!scan.disturbed()) break;
  }
  std::vector<Found> out;
  for (const FileKey& key : wanted) {
    const auto [begin, end] = left.equal_range(key.ino);
    const bool is_left = std::any_of(begin, end, [&](const auto& entry) { return entry.second == key; });
    out.push_back(is_left ? of_the_rest : Found::kFound);
  }
  return out;
}

}  // namespace weft::serve
