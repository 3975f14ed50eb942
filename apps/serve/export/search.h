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

// search_dir looks for a file in one directory only (`dir_fd` is an O_PATH descriptor); its name, or "".
std::string search_dir(int dir_fd, const FileKey& wanted, std::uint64_t root_dev);

// search_tree reads the tree beneath root_fd (O_PATH) until it meets the file, by inode number first, so that only
// directories and likely files are opened. It reads at most max_entries directory entries. Directories that this user
// may not read are passed over. Blocks on the disk.
SearchResult search_tree(int root_fd, const FileKey& root, std::uint64_t root_dev, const FileKey& wanted,
                         std::size_t max_entries);

}  // namespace weft::serve
