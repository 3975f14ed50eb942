// RFC 5042 section 6.1.1 and RFC 5040 section 8.1.1: earlier STags do not tell the next one.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <set>
#include <unordered_map>

#include "tests/conformance/network.h"

namespace weft::conformance {
namespace {

// So many rkeys of regions that all live at once, from a device of its own.
std::vector<std::uint32_t> stags(std::size_t num) {
  Station station({});
  Octets memory(8);
  std::vector<std::unique_ptr<verbs::Mr>> held;
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; i < num; ++i) {
    held.push_back(std::move(station.pd->reg_mr(memory.data(), memory.size(), kAll).value()));
    out.push_back(held.back()->rkey());
  }
  return out;
}

// Pearson's statistic of 16 equal bins against even shares.
double chi_square(const std::array<std::size_t, 16>& bins, std::size_t total) {
  const double share = static_cast<double>(total) / 16;
  double sum = 0;
  for (const std::size_t n : bins) sum += (static_cast<double>(n) - share) * (static_cast<double>(n) - share) / share;
  return sum;
}

TEST(SecurityStag, ValuesAreSpreadAndShowNoPattern) {
  RecordProperty("proves", "SEC-6.1.1-05 SEC-5.1.1-02");
  constexpr std::size_t kNum = 10000;
  const auto values = stags(kNum);
  EXPECT_EQ(std::set<std::uint32_t>(values.begin(), values.end()).size(), kNum);
  // 15 degrees of freedom: chance exceeds 80 once in 10^10. Every group of four bits, of values and of differences.
  for (int shift = 0; shift < 32; shift += 4) {
    std::array<std::size_t, 16> of_values{}, of_differences{};
    for (std::size_t i = 0; i < kNum; ++i) {
      ++of_values[values[i] >> shift & 15];
      ++of_differences[(values[i] - values[i == 0 ? kNum - 1 : i - 1]) >> shift & 15];
    }
    EXPECT_LT(chi_square(of_values, kNum), 80) << shift;
    EXPECT_LT(chi_square(of_differences, kNum), 80) << shift;
  }
  std::set<std::uint32_t> differences;
  for (std::size_t i = 1; i < kNum; ++i) differences.insert(values[i] - values[i - 1]);
  EXPECT_GT(differences.size(), kNum - 10);
  EXPECT_NE(stags(8), stags(8));
}

TEST(SecurityStag, AFreedValueStaysAwayForLong) {
  RecordProperty("proves", "SEC-6.1.1-06");
  Station station({});
  Octets memory(8);
  std::unordered_map<std::uint32_t, std::size_t> last_use;
  for (std::size_t i = 1; i <= 100'000; ++i) {
    const auto mr = std::move(station.pd->reg_mr(memory.data(), memory.size(), kAll).value());
    std::size_t& used = last_use[mr->rkey()];
    ASSERT_TRUE(used == 0 || i - used > 65'000) << "back after " << i - used;
    used = i;
  }
}

TEST(SecurityStag, ProcessesDoNotBeginAlike) {
  RecordProperty("proves", "SEC-6.1.1-07");
  std::set<std::uint32_t> firsts;
  for (int i = 0; i < 4; ++i) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const std::uint32_t first = stags(1).front();
      ::_exit(::write(ends[1], &first, sizeof(first)) == sizeof(first) ? 0 : 1);
    }
    std::uint32_t first = 0;
    EXPECT_EQ(::read(ends[0], &first, sizeof(first)), static_cast<ssize_t>(sizeof(first)));
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    ::close(ends[0]);
    ::close(ends[1]);
    EXPECT_TRUE(firsts.insert(first).second);
  }
  const auto values = stags(100);
  for (std::size_t i = 1; i < values.size(); ++i) {
    EXPECT_NE(values[i] - values[i - 1], 1u);
    EXPECT_NE(values[i] - values[i - 1], 256u);
  }
}

}  // namespace
}  // namespace weft::conformance
