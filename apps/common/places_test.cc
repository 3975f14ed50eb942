#include "apps/common/places.h"

#include <gtest/gtest.h>

namespace weft::apps {
namespace {

using std::chrono::milliseconds;
using Indices = std::vector<std::size_t>;

constexpr PlaceLimits kLimits{.all = 8, .per_group = 6, .memory = 800, .memory_per_group = 600};

Occupant busy(const std::string& group, std::uint64_t memory = 0) {
  return {group, memory, milliseconds(1)};
}
Occupant idle(const std::string& group, int ms, std::uint64_t memory = 0) {
  return {group, memory, milliseconds(ms)};
}

TEST(Places, WhereThereAreFreeOnesNobodyLeaves) {
  const std::vector<Occupant> occupants(5, idle("a", 5000, 100));
  for (const char* group : {"a", "b"}) {
    const Admission admission = admit(busy(group, 100), occupants, kLimits);
    EXPECT_EQ(admission.refusal, "");
    EXPECT_TRUE(admission.leaving.empty());
  }
}

TEST(Places, AnAddressThatHasItsShareLosesThePlaceThatWasSilentLongest) {
  std::vector<Occupant> occupants(6, busy("a"));
  occupants.push_back(idle("b", 9000));
  EXPECT_EQ(admit(busy("a"), occupants, kLimits).refusal, "too many clients of one address");
  EXPECT_TRUE(admit(busy("b"), occupants, kLimits).leaving.empty());
  occupants[2] = idle("a", 1001);
  occupants[4] = idle("a", 2000);
  EXPECT_EQ(admit(busy("a"), occupants, kLimits).leaving, Indices{4});
  occupants[2] = occupants[4] = idle("a", 1000);
  EXPECT_EQ(admit(busy("a"), occupants, kLimits).refusal, "too many clients of one address");
}

TEST(Places, TwoAddressesTogetherDoNotKeepAThirdOut) {
  std::vector<Occupant> occupants(6, busy("a"));
  occupants.resize(8, busy("b"));
  occupants[3].silent_for = milliseconds(2);
  EXPECT_EQ(admit(busy("c"), occupants, kLimits).leaving, Indices{3}) << "of the address that has most";
  EXPECT_EQ(admit(busy("b"), occupants, kLimits).leaving, Indices{3});
  EXPECT_EQ(admit(busy("a"), occupants, kLimits).refusal, "too many clients of one address");
  occupants[7] = idle("b", 1500);
  EXPECT_EQ(admit(busy("c"), occupants, kLimits).leaving, Indices{7}) << "before any that is busy";
}

TEST(Places, WhereAllHaveAsMuchTheBusyOnesStay) {
  std::vector<Occupant> occupants;
  for (const char* group : {"a", "b", "c", "d", "e", "f", "g", "h"}) occupants.push_back(busy(group));
  EXPECT_EQ(admit(busy("i"), occupants, kLimits).refusal, "too many clients");
  EXPECT_EQ(admit(busy("a"), occupants, kLimits).refusal, "too many clients");
  occupants[5].group = "a";
  EXPECT_EQ(admit(busy("i"), occupants, kLimits).leaving, Indices{0});
  EXPECT_EQ(admit(busy("b"), occupants, kLimits).refusal, "too many clients") << "it would have as many";
}

TEST(Places, MemoryIsGivenUpLikePlaces) {
  const std::vector<Occupant> occupants = {busy("a", 300), busy("a", 300), busy("b"), idle("b", 2000), busy("b", 200)};
  EXPECT_EQ(admit(busy("a", 1), occupants, kLimits).refusal, "too much memory asked for by one address");
  EXPECT_EQ(admit(busy("c", 100), occupants, kLimits).leaving, Indices{0});
  EXPECT_EQ(admit(busy("c", 400), occupants, kLimits).refusal, "too much memory asked for");
  EXPECT_EQ(admit(busy("c", 601), occupants, kLimits).refusal, "too much memory asked for by one address");
  std::vector<Occupant> silent = {idle("a", 3000, 300), idle("a", 2000, 300), idle("b", 9000, 200)};
  EXPECT_EQ(admit(busy("c", 600), silent, kLimits).leaving, (Indices{0, 1}));
  EXPECT_EQ(admit(busy("a", 300), silent, kLimits).leaving, Indices{0});
}

TEST(Places, AnAddressThatHasLessAfterwardsKeepsItsBusyOccupant) {
  // With a little more than is free, b would take all that a has.
  const std::vector<Occupant> few = {busy("a", 400), busy("b", 390)};
  EXPECT_EQ(admit(busy("b", 20), few, kLimits).refusal, "too much memory asked for");
  EXPECT_EQ(admit(busy("c", 20), few, kLimits).refusal, "too much memory asked for");
  // Of many small occupants as many leave as are needed, while their address keeps more.
  const std::vector<Occupant> many(6, busy("a", 100));
  EXPECT_EQ(admit(busy("c", 290), many, kLimits).leaving, (Indices{0}));
  EXPECT_EQ(admit(busy("c", 350), many, kLimits).leaving, (Indices{0, 1}));
}

}  // namespace
}  // namespace weft::apps
