#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "apps/serve/export/file_stat.h"
#include "apps/serve/export/path_index.h"

namespace weft::serve {

// Found is the outcome of a search for one file. kGone: the whole tree was read and the file is not there. kUnfinished:
// the search reached its limit, or the tree kept changing, so nothing is known.
enum class Found : std::uint8_t { kFound, kGone, kUnfinished };

// SearchResult: the steps that lead from the root down to a file that was found. Each has the key of the file that it
// reaches.
struct SearchResult {
  struct Step {
    FileKey file;
    PathIndex::Name name;
  };
  std::vector<Step> steps;
  std::string path;
};

// SearchScope says where a search looks and how it compares.
struct SearchScope {
  int root_fd = -1;  // O_PATH
  FileKey root;
  std::uint64_t root_dev = 0;
  bool cross_mounts = false;
  std::size_t max_entries = 0;  // directory entries that are read at most
};

// search_dir looks for a file in one directory only (`dir_fd` is an O_PATH descriptor); its name, or "".
std::string search_dir(const SearchScope& scope, int dir_fd, const FileKey& wanted);

// search_tree reads the tree beneath the root once for all wanted files, until it has met each of them. It compares
// inode numbers first, so that it opens only directories and likely files. It passes over directories that this user
// may not read, over mounts unless they are to be crossed, and over everything deeper than PathIndex::kMaxDepth.
// on_found gets each file as soon as it is met. Returns what became of each wanted file, in their order. Blocks on the
// disk.
std::vector<Found> search_tree(const SearchScope& scope, std::span<const FileKey> wanted,
                               const std::function<void(const FileKey& file, const SearchResult& result)>& on_found);

}  // namespace weft::serve
