// Calls and Replies of version 2 in every form, among them those in several messages, and one spoiled message among
// them: each Call ends once, nothing stays reachable and nothing stays taken. tests/wire_v2/witness.cc holds every
// answer of the engines, and both readings of the spoiled messages, against the drafts.
#include <iostream>
#include <map>

#include "tests/rpc/faults.h"
#include "tests/rpc/good_messages.h"

namespace weft::rpcrdma::testing {
namespace {

constexpr std::size_t kRounds = 1000;
constexpr std::size_t kEachGood = 50;  // one round in so many has no spoiled message

TEST_F(FaultsTest, OneMessageIsSpoiled) {
  std::cout << "WEFT_SEED=" << seed() << "\n";
  Mutator mutator(seed());
  std::size_t num_messages = 0, at = SIZE_MAX;
  std::vector<Octets> seen;  // of the first round
  bool is_first = true;
  spoil = [&](const Octets& octets) {
    if (is_first) seen.push_back(octets);
    if (num_messages++ != at) return octets;
    return mutator.spoil(octets, seen[mutator.below(seen.size())], kThreshold);
  };
  std::map<CallStatus, std::size_t> statuses;
  std::size_t num_closed = 0;
  for (std::size_t round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(::testing::Message() << "round " << round << " of seed " << seed());
    const bool is_good = round % kEachGood == 0;
    ASSERT_NO_FATAL_FAILURE(open());
    num_messages = 0;
    at = is_good ? SIZE_MAX : mutator.below(seen.size());
    ask();
    run();
    is_first = false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      ++statuses[endings[i].status];
      if (is_good) {
        EXPECT_EQ(endings[i].status, all[i].status) << "Call " << i;
        EXPECT_EQ(endings[i].is_right, all[i].status == CallStatus::kSuccess) << "Call " << i;
      }
    }
    num_closed += closed ? 1 : 0;
    if (!closed) close();
    check_ends();
    if (HasFailure()) return;
  }
  for (const auto& [status, num] : statuses) std::cout << call_status_str(status) << ": " << num << "\n";
  std::cout << "connections ended: " << num_closed << "\n";
  EXPECT_GT(statuses[CallStatus::kTransportError], kRounds / 20);
  EXPECT_GT(statuses[CallStatus::kTimeout] + statuses[CallStatus::kDisconnected], kRounds / 20);
  EXPECT_GT(num_closed, 0u);
  EXPECT_LT(num_closed, kRounds - kRounds / 20);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
