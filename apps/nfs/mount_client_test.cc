#include "apps/nfs/mount_client.h"

#include <gtest/gtest.h>

namespace weft::nfs {
namespace {

using Names = std::vector<std::string>;

TEST(SplitPath, NamesOnly) {
  EXPECT_EQ(split_path("/"), Names{});
  EXPECT_EQ(split_path("//a/./b/"), (Names{"a", "b"}));
  EXPECT_EQ(split_path("rel/x"), (Names{"rel", "x"}));
}

TEST(ChooseCred, TakesAuthSysWhereItMay) {
  const auto flavor = [](std::vector<std::uint32_t> offered) { return choose_cred(offered)->flavor; };
  const auto sys = static_cast<std::uint32_t>(rpcrdma::AuthFlavor::kSys);
  const auto none = static_cast<std::uint32_t>(rpcrdma::AuthFlavor::kNone);
  EXPECT_EQ(flavor({sys}), sys);
  EXPECT_EQ(flavor({none, 6, sys}), sys);
  EXPECT_EQ(flavor({}), sys) << "a server that offers none has no wish";
  EXPECT_EQ(flavor({6, none}), none);
  const auto refused = choose_cred({6, 5});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_NE(refused.status().message().find("flavor 6"), std::string::npos) << refused.status();
}

TEST(CandidatePaths, RootExportIsTheCommonCase) {
  const auto candidates = candidate_paths({"a", "b"}, {{"/", {}}});
  ASSERT_FALSE(candidates.empty());
  EXPECT_EQ(candidates.front(), Names{});
}

TEST(CandidatePaths, LongestExportFirstAndOnWholeNames) {
  const auto candidates =
      candidate_paths({"srv", "data", "x"}, {{"/", {}}, {"/srv", {}}, {"/srv/da", {}}, {"/srv/data", {}}});
  EXPECT_EQ(candidates, (std::vector<Names>{{"srv", "data"}, {"srv"}, {}, {"srv", "data", "x"}}));
}

TEST(CandidatePaths, WithoutAListThePathAndItsParents) {
  EXPECT_EQ(candidate_paths({"a", "b"}, {}), (std::vector<Names>{{"a", "b"}, {"a"}, {}}));
}

TEST(CandidatePaths, AreBounded) {
  const Names deep(5000, "x");
  const auto candidates = candidate_paths(deep, {});
  EXPECT_LE(candidates.size(), 64u);
  for (const Names& names : candidates) EXPECT_LE(absolute_path(names).size(), nfs3::kMntPathLen);
}

}  // namespace
}  // namespace weft::nfs
