#include "apps/common/allow_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "apps/common/address.h"
#include "spdlog/spdlog.h"
#include "verbs-shim/api/log_budget.h"

namespace weft::apps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

AllowList list_of(const std::vector<std::string>& rules) {
  absl::StatusOr<AllowList> list = AllowList::parse(rules);
  EXPECT_TRUE(list.ok()) << list.status();
  return list.ok() ? *list : AllowList();
}

// IPv6 in brackets.
bool admits(const AllowList& list, const std::string& host) {
  return list.admits(*resolve_address(host + ":1000"));
}

TEST(AllowList, WithoutRulesAdmitsEverybody) {
  const AllowList list = list_of({});
  EXPECT_TRUE(list.empty());
  EXPECT_FALSE(filter_of(list));
  for (const char* host : {"127.0.0.1", "203.0.113.9", "[2001:db8::1]"}) EXPECT_TRUE(admits(list, host)) << host;
}

TEST(AllowList, AnAddressIsThatAddressAlone) {
  const AllowList list = list_of({"192.0.2.7", "2001:db8::7"});
  EXPECT_TRUE(admits(list, "192.0.2.7"));
  EXPECT_TRUE(admits(list, "[2001:db8::7]"));
  for (const char* host : {"192.0.2.6", "192.0.3.7", "[2001:db8::6]", "[2001:db8::1:7]", "127.0.0.1", "[::1]"}) {
    EXPECT_FALSE(admits(list, host)) << host;
  }
}

TEST(AllowList, PrefixesEndAtEveryBit) {
  EXPECT_TRUE(admits(list_of({"192.0.2.0/24"}), "192.0.2.255"));
  EXPECT_FALSE(admits(list_of({"192.0.2.0/24"}), "192.0.3.0"));
  EXPECT_TRUE(admits(list_of({"192.0.2.64/26"}), "192.0.2.127"));
  EXPECT_FALSE(admits(list_of({"192.0.2.64/26"}), "192.0.2.128"));
  EXPECT_FALSE(admits(list_of({"192.0.2.64/26"}), "192.0.2.63"));
  EXPECT_TRUE(admits(list_of({"192.0.2.6/31"}), "192.0.2.7"));
  EXPECT_TRUE(admits(list_of({"0.0.0.0/0"}), "203.0.113.9"));
  EXPECT_FALSE(admits(list_of({"0.0.0.0/1"}), "203.0.113.9"));
  EXPECT_TRUE(admits(list_of({"2001:db8::/33"}), "[2001:db8:7fff::1]"));
  EXPECT_FALSE(admits(list_of({"2001:db8::/33"}), "[2001:db8:8000::1]"));
  EXPECT_TRUE(admits(list_of({"::1/128"}), "[::1]"));
}

TEST(AllowList, AMappedAddressIsTheIPv4Address) {
  EXPECT_TRUE(admits(list_of({"192.0.2.0/24"}), "[::ffff:192.0.2.7]"));
  EXPECT_FALSE(admits(list_of({"192.0.2.0/24"}), "[::ffff:192.0.3.7]"));
  EXPECT_TRUE(admits(list_of({"::ffff:192.0.2.0/120"}), "192.0.2.7"));
  EXPECT_FALSE(admits(list_of({"::ffff:192.0.2.0/120"}), "192.0.3.7"));
  EXPECT_TRUE(admits(list_of({"::ffff:192.0.2.7"}), "[::ffff:192.0.2.7]"));
  // Rules of one family say nothing about the other.
  EXPECT_FALSE(admits(list_of({"::/0"}), "192.0.2.7"));
  EXPECT_FALSE(admits(list_of({"::/0"}), "[::ffff:192.0.2.7]"));
  EXPECT_FALSE(admits(list_of({"0.0.0.0/0"}), "[2001:db8::1]"));
  // The old "compatible" form is not the mapped one.
  EXPECT_FALSE(admits(list_of({"192.0.2.7"}), "[::192.0.2.7]"));
}

TEST(AllowList, RefusesWhatIsNoRule) {
  for (const char* text : {"",
                           "/",
                           "/8",
                           "host",
                           "192.0.2",
                           "192.0.2.7/",
                           "192.0.2.7/33",
                           "192.0.2.7/-1",
                           "192.0.2.7/x",
                           "192.0.2.0/24x",
                           "192.0.2.0/24/24",
                           "192.0.2.0/ 24",
                           "192.0.2.7/24",
                           "0.0.0.1/0",
                           "[::1]",
                           "::1/129",
                           "2001:db8::1/64",
                           "fe80::1%lo",
                           "::ffff:0:0/95",
                           "::ffff:192.0.2.7/120",
                           "192.0.2.7:80",
                           "0300.0.2.7"}) {
    EXPECT_NE(allow_fault(text), "") << text;
  }
  EXPECT_NE(allow_fault(std::string("192.0.2.7\0x", 11)), "");
  EXPECT_FALSE(AllowList::parse(std::vector<std::string>{"192.0.2.7", "x"}).ok());
}

TEST(AllowList, OtherFamiliesAreNotAdmitted) {
  sockaddr_storage other{};
  other.ss_family = AF_UNIX;
  EXPECT_FALSE(list_of({"0.0.0.0/0", "::/0"}).admits(other));
}

TEST(Filter, NamesThePeersThatItRefusesInFewLines) {
  const auto admits = filter_of(list_of({"192.0.2.0/24"}));
  ::testing::internal::CaptureStdout();  // spdlog writes there by default
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(admits(*resolve_address("192.0.2.7:1")));
    EXPECT_FALSE(admits(*resolve_address("192.0.3.7:1")));
  }
  spdlog::default_logger()->flush();
  const std::string lines = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(lines, HasSubstr("192.0.3.7:1 refused: --allow does not name it"));
  EXPECT_THAT(lines, Not(HasSubstr("192.0.2.7")));
  // The time that the test takes counts.
  EXPECT_LE(std::ranges::count(lines, '\n'), 2 * verbs::LogBudget::kBurst);
}

TEST(Counting, CountsThePeersThatTheFilterRefuses) {
  const auto refused = std::make_shared<RefusedPeers>(0);
  EXPECT_FALSE(counting({}, refused));
  const auto admits = counting(filter_of(list_of({"192.0.2.0/24"})), refused);
  EXPECT_TRUE(admits(*resolve_address("192.0.2.7:1")));
  EXPECT_EQ(*refused, 0u);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(admits(*resolve_address("192.0.3.7:1")));
  EXPECT_EQ(*refused, 2u);
}

TEST(IsLoopback, KnowsWhatOnlyThisHostReaches) {
  for (const char* host : {"127.0.0.1:1", "127.255.0.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"}) {
    EXPECT_TRUE(is_loopback(*resolve_address(host))) << host;
  }
  for (const char* host : {"0.0.0.0:1", "192.0.2.7:1", "[::]:1", "[::ffff:192.0.2.7]:1", "[2001:db8::1]:1"}) {
    EXPECT_FALSE(is_loopback(*resolve_address(host))) << host;
  }
}

}  // namespace
}  // namespace weft::apps
