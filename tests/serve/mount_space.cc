#include "tests/serve/mount_space.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weft::serve::testing {
namespace {

// Empty, or why this process may not have mounts of its own.
std::string enter_mount_space() {
  if (::unshare(CLONE_NEWNS) != 0) return std::string("unshare(2): ") + std::strerror(errno);
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return std::string("making mounts private: ") + std::strerror(errno);
  return {};
}

}  // namespace

MountSpace::MountSpace() {
  static const std::string why_not = enter_mount_space();
  why_not_ = &why_not;
}

void MountTest::SetUp() {
  if (!why_not().empty()) GTEST_SKIP() << "needs mounts of its own, as root has: " << why_not();
}

MountTest::~MountTest() {
  stop();
  while (!mounted_.empty()) unmount(std::string(mounted_.back()));
}

void MountTest::stop() {
  backend.reset();
  tree.reset();
}

bool MountTest::mount(const char* source, const std::string& at, const char* type, unsigned long flags,
                      const std::string& options) {
  ::mkdir(at.c_str(), 0755);
  if (::mount(source, at.c_str(), type, flags, options.c_str()) != 0) {
    ADD_FAILURE() << "mount " << (type != nullptr ? type : "bind") << " at " << at << ": " << std::strerror(errno);
    return false;
  }
  mounted_.push_back(at);
  return true;
}

bool MountTest::mount_tmpfs(const std::string& at) {
  return mount("tmpfs", at, "tmpfs", 0, "mode=0755");
}

bool MountTest::bind(const std::string& from, const std::string& at) {
  return mount(from.c_str(), at, nullptr, MS_BIND, "");
}

bool MountTest::mount_overlay(const std::string& lower, const std::string& upper, const std::string& at) {
  const std::string work = upper + ".work";
  ::mkdir(upper.c_str(), 0755);
  ::mkdir(work.c_str(), 0755);
  return mount("overlay", at, "overlay", 0, "lowerdir=" + lower + ",upperdir=" + upper + ",workdir=" + work);
}

void MountTest::unmount(const std::string& at) {
  EXPECT_EQ(::umount2(at.c_str(), MNT_DETACH), 0) << at << ": " << std::strerror(errno);
  std::erase(mounted_, at);
}

}  // namespace weft::serve::testing
