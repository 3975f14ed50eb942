#include "apps/top/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <utility>

#include "base/fd.h"

namespace weft::apps::top {
namespace {

// page_of_stdout where stdout is `fd`.
std::pair<std::size_t, std::size_t> size_of_page(const Fd& fd) {
  const Fd kept(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  ::dup2(fd.get(), STDOUT_FILENO);
  const Page page = page_of_stdout();
  ::dup2(kept.get(), STDOUT_FILENO);
  return {page.width, page.height};
}

TEST(PageOfStdout, HasTheSizeOfTheTerminalOrTheUsualOne) {
  const Fd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(terminal);
  ASSERT_EQ(::grantpt(terminal.get()), 0);
  ASSERT_EQ(::unlockpt(terminal.get()), 0);
  const Fd other(::open(::ptsname(terminal.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(other);
  EXPECT_EQ(size_of_page(other), std::pair(std::size_t{80}, std::size_t{24})) << "a new terminal has no size";
  winsize size{};
  size.ws_col = 100;
  size.ws_row = 40;
  ASSERT_EQ(::ioctl(other.get(), TIOCSWINSZ, &size), 0);
  EXPECT_EQ(size_of_page(other), std::pair(std::size_t{100}, std::size_t{40}));
}

TEST(PageOfStdout, IsWithoutAnEndWithoutATerminal) {
  const Fd file(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(size_of_page(file), std::pair(std::size_t{120}, std::size_t{0}));
}

}  // namespace
}  // namespace weft::apps::top
