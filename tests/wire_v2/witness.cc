// Linked into a test program whose connections the recorder cannot judge, because peers are hostile or try several
// versions. This file hears the posts of all tapped ends and what arrives there from a peer that the test plays, and
// enters the drafts that were spoken into the test's results (tests/conformance/ran.h). Each Send of a tapped end has
// to be one that a sender may send (LoneSends), and in each message the codec of the engines has to find the fields
// that the decoder finds. There is no judgement of conversations.

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/ran.h"
#include "tests/wire_v2/agreement.h"
#include "tests/wire_v2/glance.h"
#include "tests/wire_v2/lone_sends.h"
#include "tests/wire_v2/tables.h"
#include "verbs-shim/api/testing/post_tap.h"

namespace weft::wire_v2 {
namespace {

constexpr std::size_t kMostFaults = 8;  // of one test

class Witness final : public verbs::testing::PostObserver, public ::testing::EmptyTestEventListener {
 public:
  Witness() {
    verbs::testing::observe_posts(*this);
    ::testing::UnitTest::GetInstance()->listeners().Append(this);
  }

  void on_post(std::size_t end, const verbs::SendWr& wr) override {
    if (wr.opcode != verbs::WrOpcode::kSend && wr.opcode != verbs::WrOpcode::kSendWithInv) return;
    Bytes octets;
    for (const verbs::Sge& sge : wr.sg_list) {
      const auto* at = reinterpret_cast<const std::uint8_t*>(sge.addr);
      octets.insert(octets.end(), at, at + sge.length);
    }
    const std::scoped_lock lock(mutex_);
    hear(octets);
    if (auto fault = sends_.judge(end, octets)) add_fault("on the wire: " + std::move(*fault));
  }
  void on_connect(std::size_t /*end*/, std::span<const std::uint8_t> /*private_data*/) override {}
  void on_arrival(std::size_t /*end*/, std::span<const std::uint8_t> octets) override {
    const std::scoped_lock lock(mutex_);
    hear({octets.begin(), octets.end()});
  }

  void OnTestEnd(const ::testing::TestInfo& /*test*/) override {
    const std::scoped_lock lock(mutex_);
    for (const Profile profile : std::exchange(heard_, {})) conformance::ran(std::string("2-") + name_of(profile));
    for (const std::string& fault : std::exchange(faults_, {})) ADD_FAILURE() << fault;
    num_sends_ += std::exchange(sends_, {}).num_judged();
  }

  // A tap that hears nothing would prove nothing. A failure behind this event does not count.
  void OnTestIterationEnd(const ::testing::UnitTest& program, int /*iteration*/) override {
    const bool is_whole = program.test_to_run_count() == program.total_test_count();
    EXPECT_TRUE(!is_whole || num_sends_ != 0) << "no message of version 2 was posted";
  }

 private:
  void hear(const Bytes& octets) {
    if (const auto draft = draft_of(octets)) heard_.insert(*draft);
    for (const Profile profile : {Profile::kCel05, Profile::kWg07}) {
      if (auto text = disagreement(octets, profile); !text.empty()) add_fault("two readings: " + std::move(text));
    }
  }
  void add_fault(std::string text) {
    if (faults_.size() < kMostFaults) faults_.push_back(std::move(text));
  }

  std::mutex mutex_;
  std::set<Profile> heard_;
  LoneSends sends_;
  std::vector<std::string> faults_;
  std::size_t num_sends_ = 0;
};

// gtest deletes its listeners.
[[maybe_unused]] const Witness* const kWitness = new Witness;

}  // namespace
}  // namespace weft::wire_v2
