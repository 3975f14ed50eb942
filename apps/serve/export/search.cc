#include "apps/serve/export/search.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <ctime>
#include <deque>

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

// TreeScan is one pass over the tree.
class TreeScan {
 public:
  TreeScan(const SearchScope& scope, const FileKey& wanted, std::size_t& budget)
      : scope_(scope), wanted_(wanted), budget_(budget) {
    dirs_.push_back(Dir{.key = scope.root, .parent = 0, .depth = 0, .name = {}});
    // The clock of timestamps; two seconds are the coarsest that filesystems keep.
    clock_gettime(CLOCK_REALTIME_COARSE, &start_);
    start_.tv_sec -= 2;
  }

  // True if the file was found.
  bool run(SearchResult& result) {
    for (std::size_t i = 0; i < dirs_.size() && budget_ > 0; ++i) {
      if (scan(i)) {
        describe(result);
        return true;
      }
    }
    return false;
  }
  // Whether a directory changed so lately that the file may have moved from a part of the tree not yet read to a part
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

  // Reads one directory. True if the directory is the file or holds it: then it is found_name_ in dirs_[found_in_].
  bool scan(std::size_t index) {
    Outcome<Fd> dir = open_beneath(scope_.root_fd, path_of(index), O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0,
                                   {.cross_mounts = scope_.cross_mounts});
    if (!dir) {
      const int error = dir.error().value;
      disturbed_ = disturbed_ || (error != EACCES && error != EPERM && error != EXDEV);
      return false;
    }
    Outcome<FileStat> st = stat_fd(dir->get());
    if (!st) return false;
    if (index != 0) dirs_[index].key = st->key(scope_.root_dev);
    disturbed_ = disturbed_ || newer(st->mtime, start_);
    if (index != 0 && dirs_[index].key == wanted_) return found(dirs_[index].parent, dirs_[index].name);
    DirReader reader(dir->get());
    DirEntry entry;
    while (budget_ > 0) {
      Outcome<bool> more = reader.next(entry);
      if (!more || !more.value()) break;
      --budget_;
      if (is_dot(entry.name) || is_dot_dot(entry.name)) continue;
      // On a mount point d_ino is the inode of the directory beneath the mount, so directories are compared when they
      // are read.
      if (entry.ino == wanted_.ino && is_wanted(scope_, dir->get(), entry.name, wanted_))
        return found(index, entry.name);
      const std::size_t depth = dirs_[index].depth + 1;
      if ((entry.type == DT_DIR || entry.type == DT_UNKNOWN) && depth < PathIndex::kMaxDepth)
        dirs_.push_back(Dir{.key = {}, .parent = index, .depth = depth, .name = entry.name});
    }
    return false;
  }

  bool found(std::size_t dir, std::string name) {
    found_in_ = dir;
    found_name_ = std::move(name);
    return true;
  }

  void describe(SearchResult& result) const {
    result.found = Found::kFound;
    std::string dir_path = path_of(found_in_);
    result.path = dir_path.empty() ? found_name_ : dir_path + "/" + found_name_;
    result.steps.push_back({wanted_, {dirs_[found_in_].key, found_name_}});
    for (std::size_t i = found_in_; i != 0; i = dirs_[i].parent)
      result.steps.push_back({dirs_[i].key, {dirs_[dirs_[i].parent].key, dirs_[i].name}});
    std::reverse(result.steps.begin(), result.steps.end());
  }

  const SearchScope& scope_;
  FileKey wanted_;
  std::size_t& budget_;
  std::deque<Dir> dirs_;
  std::size_t found_in_ = 0;
  std::string found_name_;
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

SearchResult search_tree(const SearchScope& scope, const FileKey& wanted) {
  SearchResult result;
  std::size_t budget = scope.max_entries;
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    TreeScan scan(scope, wanted, budget);
    if (scan.run(result)) return result;
    if (budget == 0) return result;
    // To be missed in every pass, the file would have had to move ahead of each pass.
    if (!scan.disturbed() || pass + 1 == kMaxPasses) result.found = Found::kGone;
    if (!scan.disturbed()) return result;
  }
  return result;
}

}  // namespace weft::serve
