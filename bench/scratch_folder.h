#pragma once

#include <sys/types.h>

#include <filesystem>

#include "base/fd.h"

namespace weft::bench {

// ScratchFolder is an empty folder in memory. It goes with this object, or with this process and all that it has
// forked, however they end.
class ScratchFolder {
 public:
  // name: what its name begins with. If there can be no folder, this process ends.
  explicit ScratchFolder(const char* name);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  Fd held_;  // a pipe to the process that removes the folder when all writers are gone
  pid_t remover_ = -1;
};

}  // namespace weft::bench
