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

bool is_wanted(int dir_fd, const std::string& name, const FileKey& wanted, std::uint64_t root_dev) {
  Outcome<Fd> fd = open_path_beneath(dir_fd, name);
  if (!fd) return false;
  Outcome<FileStat> st = stat_fd(fd->get());
  return st && st->key(root_dev) == wanted;
}

bool newer(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

// TreeScan is one pass over the tree.
class TreeScan {
 public:
  TreeScan(int root_fd, const FileKey& root, std::uint64_t root_dev, const FileKey& wanted, std::size_t& budget)
      : root_fd_(root_fd), root_dev_(root_dev), wanted_(wanted), budget_(budget) {
    dirs_.push_back(Dir{.key = root, .parent = 0, .name = {}});
    // The clock of timestamps; two seconds are the coarsest that filesystems keep.
    clock_gettime(CLOCK_REALTIME_COARSE, &start_);
    start_.tv_sec -= 2;
  }

  // True where the file was found.
  bool run(SearchResult& result) {
    for (std::size_t i = 0; i < dirs_.size() && budget_ > 0; ++i) {
      if (scan(i)) {
        describe(result);
        return true;
      }
    }
    return false;
  }
  // A directory changed so lately that the file may have moved from where we had not been to where we had.
  bool disturbed() const { return disturbed_; }

 private:
  struct Dir {
    FileKey key;
    std::size_t parent = 0;
    std::string name;
  };

  std::string path_of(std::size_t index) const {
    std::vector<const std::string*> parts;
    for (std::size_t i = index; i != 0; i = dirs_[i].parent) parts.push_back(&dirs_[i].name);
    std::string path;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) path += (path.empty() ? "" : "/") + **part;
    return path;
  }

  // Reads one directory; true where it is or holds the file: found_name_ in dirs_[found_in_].
  bool scan(std::size_t index) {
    Outcome<Fd> dir = open_beneath(root_fd_, path_of(index), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!dir) {
      disturbed_ = disturbed_ || (dir.error().value != EACCES && dir.error().value != EPERM);
      return false;
    }
    Outcome<FileStat> st = stat_fd(dir->get());
    if (!st) return false;
    dirs_[index].key = st->key(root_dev_);
    disturbed_ = disturbed_ || newer(st->mtime, start_);
    if (index != 0 && dirs_[index].key == wanted_) return found(dirs_[index].parent, dirs_[index].name);
    DirReader reader(dir->get());
    DirEntry entry;
    while (budget_ > 0) {
      Outcome<bool> more = reader.next(entry);
      if (!more || !more.value()) break;
      --budget_;
      if (is_dot(entry.name) || is_dot_dot(entry.name)) continue;
      // Where something is mounted d_ino is that of what lies beneath, so directories are compared when they are read.
      if (entry.ino == wanted_.ino && is_wanted(dir->get(), entry.name, wanted_, root_dev_))
        return found(index, entry.name);
      if (entry.type == DT_DIR || entry.type == DT_UNKNOWN)
        dirs_.push_back(Dir{.key = {}, .parent = index, .name = entry.name});
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

  int root_fd_;
  std::uint64_t root_dev_;
  FileKey wanted_;
  std::size_t& budget_;
  std::deque<Dir> dirs_;
  std::size_t found_in_ = 0;
  std::string found_name_;
  timespec start_{};
  bool disturbed_ = false;
};

}  // namespace

std::string search_dir(int dir_fd, const FileKey& wanted, std::uint64_t root_dev) {
  Outcome<Fd> dir = open_beneath(dir_fd, {}, O_RDONLY | O_DIRECTORY);
  if (!dir) return {};
  DirReader reader(dir->get());
  DirEntry entry;
  for (;;) {
    Outcome<bool> more = reader.next(entry);
    if (!more || !more.value()) return {};
    if (entry.ino == wanted.ino && !is_dot(entry.name) && !is_dot_dot(entry.name) &&
        is_wanted(dir->get(), entry.name, wanted, root_dev))
      return entry.name;
  }
}

SearchResult search_tree(int root_fd, const FileKey& root, std::uint64_t root_dev, const FileKey& wanted,
                         std::size_t max_entries) {
  SearchResult result;
  std::size_t budget = max_entries;
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    TreeScan scan(root_fd, root, root_dev, wanted, budget);
    if (scan.run(result)) return result;
    if (budget == 0) return result;
    // What was missed in every pass would have had to move ahead of each of them.
    if (!scan.disturbed() || pass + 1 == kMaxPasses) result.found = Found::kGone;
    if (!scan.disturbed()) return result;
  }
  return result;
}

}  // namespace weft::serve
