#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/serve/export/file_stat.h"
#include "apps/serve/export/path_index.h"

namespace weft::serve {

// Found is the outcome of a search. kGone: the whole tree was read and the file is not there. kUnfinished: the search
// reached its limit, or the tree kept changing, so nothing is known.
enum class Found : std::uint8_t { kFound, kGone, kUnfinished };

// SearchResult: with kFound, the steps that lead from the root down to the file. Each has the key of the file that it
// reaches.
struct SearchResult {
  Found found = Found::kUnfinished;
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

// search_tree reads the tree beneath the root until it meets the file. It compares inode numbers first, so that it
// opens only directories and likely files. It passes over directories that this user may not read, over mounts unless
// they are to be crossed, and over everything deeper than PathIndex::kMaxDepth. Blocks on the disk.
SearchResult search_tree(const SearchScope& scope, const FileKey& wanted);

}  // namespace weft::serve
