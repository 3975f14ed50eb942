#pragma once

#include <string>
#include <vector>

#include "tests/serve/fixture.h"

namespace weft::serve::testing {

// MountSpace gives the process mounts of its own (unshare(2)), once for all tests of a program. A descriptor that was
// opened earlier does not see them, so this comes before anything that opens the export.
class MountSpace {
 protected:
  MountSpace();
  // Empty, or why the process may not have mounts of its own.
  const std::string& why_not() const { return *why_not_; }

 private:
  const std::string* why_not_;
};

// MountTest is an ExportTest that mounts things, which no other process sees. Where that is not allowed the test is
// skipped and says why. Its mounts go before its files do.
class MountTest : private MountSpace, public ExportTest {
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
