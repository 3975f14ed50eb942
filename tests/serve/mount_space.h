#pragma once

#include <string>
#include <vector>

#include "tests/serve/fixture.h"

namespace weft::serve::testing {

// MountTest is an ExportTest that mounts things. The process gets mounts of its own (unshare(2)), so that nobody else
// sees them. Where that is not allowed the test is skipped and says why. What was mounted goes before the files do.
class MountTest : public ExportTest {
 protected:
  ~MountTest() override;
  void SetUp() override;

  // Each mounts at `at`, which is made; false, with a failure of the test, where the kernel refuses.
  bool mount_tmpfs(const std::string& at);
  bool bind(const std::string& from, const std::string& at);
  // The lower layer is read-only from then on; `upper` is made, and beside it the work directory.
  bool mount_overlay(const std::string& lower, const std::string& upper, const std::string& at);
  void unmount(const std::string& at);
  // Ends the server, so that nothing of it is held.
  void stop();

 private:
  bool mount(const char* source, const std::string& at, const char* type, unsigned long flags,
             const std::string& options);
  std::vector<std::string> mounted_;
};

}  // namespace weft::serve::testing
