#include "tests/wire_v2/tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "tests/vectors/vector_file.h"
#include "tests/wire_v2/decoder.h"
#include "tests/wire_v2/tables.h"

namespace weft::wire_v2 {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::SizeIs;

Tally tally_of_vectors(Profile profile) {
  Tally tally;
  std::ifstream in("tests/vectors/rpcrdma2-vectors.txt");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("hex: ")) continue;
    const auto got = decode(vectors::from_hex(line.substr(5)), profile);
    if (const auto* message = std::get_if<Message>(&got)) tally.add(*message);
  }
  return tally;
}

TEST(WireV2Tally, TheVectorsHaveEverything) {
  for (const Profile profile : {Profile::kCel05, Profile::kWg07}) {
    EXPECT_THAT(tally_of_vectors(profile).missing(profile), IsEmpty());
  }
}

TEST(WireV2Tally, NamesWhatIsMissing) {
  const Tally none;
  EXPECT_THAT(none.missing(Profile::kCel05), SizeIs(8 + 10 + 2));
  EXPECT_THAT(none.missing(Profile::kWg07), SizeIs(10 + 12 + 6));
  EXPECT_THAT(none.missing(Profile::kWg07), Contains("RDMA2_ERR_VERS_MISMATCH"));
  // Each draft counts for itself.
  EXPECT_THAT(tally_of_vectors(Profile::kCel05).missing(Profile::kWg07), SizeIs(10 + 12 + 6));
}

// For tests/conformance/wire_tally.py, which asks for each of them in the messages of all tests.
TEST(WireV2Tally, TellsTheNames) {
  for (const Profile profile : {Profile::kCel05, Profile::kWg07}) {
    std::string names;
    for (const std::string& name : Tally().missing(profile)) names += (names.empty() ? "" : " ") + name;
    RecordProperty(std::string("names_v2_") + name_of(profile), names);
    EXPECT_EQ(std::ranges::count(names, ' ') + 1, profile == Profile::kCel05 ? 20 : 28);
  }
}

TEST(WireV2Tally, Adds) {
  const Tally once = tally_of_vectors(Profile::kWg07);
  Tally twice = once;
  twice.add(once);
  EXPECT_EQ(once.count(Profile::kWg07, "RDMA2_GRANT"), 1u);
  EXPECT_EQ(twice.count(Profile::kWg07, "RDMA2_GRANT"), 2u);
  EXPECT_EQ(twice.count(Profile::kCel05, "RDMA2_GRANT"), 0u);
}

}  // namespace
}  // namespace weft::wire_v2
