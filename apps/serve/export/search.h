#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/serve/export/file_stat.h"
#include "apps/serve/export/path_index.h"

namespace weft::serve {

// Found is what a search says. kGone: the whole tree was read and the file is not there. kUnfinished: the limit was
// reached, or the tree would not hold still, so nothing is known.
enum class Found : std::uint8_t { kFound, kGone, kUnfinished };

// SearchResult: with kFound, the steps that lead to the file, from the root down: each with the key of what it reaches.
struct SearchResult {
  Found found = Found::kUnfinished;
  struct Step {
    FileKey file;
    PathIndex::Name name;
  };
  std::vector<Step> steps;
  std::string path;
};

// SearchScope is where a search looks and how it compares.
struct SearchScope {
  int root_fd = -1;  // O_PATH
  FileKey root;
  std::uint64_t root_dev = 0;
  bool cross_mounts = false;
  std::size_t max_entries = 0;  // directory entries that are read at most
};

// search_dir looks for a file in one directory only (`dir_fd` is an O_PATH descriptor); its name, or "".
std::string search_dir(const SearchScope& scope, int dir_fd, const FileKey& wanted);

// search_tree reads the tree beneath the root until it meets the file, by inode number first, so that only directories
// and likely files are opened. It passes over directories that this user may not read, over mounts unless they are to
// be crossed, and over what lies deeper than PathIndex::kMaxDepth. Blocks on the disk.
SearchResult search_tree(const SearchScope& scope, const FileKey& wanted);

}  // namespace weft::serve
