#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "verbs-shim/api/result.h"

namespace weft::verbs::soft {

// claim empties a regular file that is open, and locks it against other traces (flock). 0 or an errno value:
// EWOULDBLOCK if another trace has the lock. Other kinds of files are nobody's.
int claim(int fd);

// ring_paths returns the names of a ring's files in their order: x_01.pcapng to x_12.pcapng for x.pcapng. num_files 0:
// the path itself.
std::vector<std::string> ring_paths(const std::string& path, std::size_t num_files);

// TraceRing opens the files of a trace one after the other: the only one, or those of a ring. A value; opening is its
// I/O.
class TraceRing {
 public:
  // num_files: as in TraceConfig.
  TraceRing(const std::string& path, std::size_t num_files) : paths_(ring_paths(path, num_files)) {}

  // open_first opens and empties the file to begin with. Of a ring it is the first that is not there; if all are
  // there, the one that was written longest ago. An error where another trace writes to any of them.
  Result<Fd> open_first();
  // open_next goes on in the next file of a ring. An error where the trace has one file (ENOSPC).
  Result<Fd> open_next();

  // The file that was opened last.
  const std::string& path() const { return paths_[at_]; }
  std::size_t num_files() const { return paths_.size(); }
  // How many files were opened.
  std::uint64_t num_opened() const { return num_opened_; }

 private:
  Result<Fd> open();

  std::vector<std::string> paths_;
  std::size_t at_ = 0;
  std::uint64_t num_opened_ = 0;
};

}  // namespace weft::verbs::soft
