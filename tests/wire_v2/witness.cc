// Linked into a test program whose connections the recorder cannot judge, because peers are hostile or try several
// versions. This file hears the posts of all tapped ends and what arrives there from a peer that the test plays, and
// enters the drafts that were spoken into the test's results (tests/conformance/ran.h). It judges nothing.

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "tests/conformance/ran.h"
#include "tests/wire_v2/tables.h"
#include "tests/wire_v2/transcript.h"
#include "verbs-shim/api/testing/post_tap.h"

namespace weft::wire_v2 {
namespace {

class Witness final : public verbs::testing::PostObserver, public ::testing::EmptyTestEventListener {
 public:
  Witness() {
    verbs::testing::observe_posts(*this);
    ::testing::UnitTest::GetInstance()->listeners().Append(this);
  }

  void on_post(std::size_t /*end*/, const verbs::SendWr& wr) override {
    if (wr.opcode != verbs::WrOpcode::kSend && wr.opcode != verbs::WrOpcode::kSendWithInv) return;
    Bytes octets;
    for (const verbs::Sge& sge : wr.sg_list) {
      const auto* at = reinterpret_cast<const std::uint8_t*>(sge.addr);
      octets.insert(octets.end(), at, at + sge.length);
    }
    hear(octets);
  }
  void on_connect(std::size_t /*end*/, std::span<const std::uint8_t> /*private_data*/) override {}
  void on_arrival(std::size_t /*end*/, std::span<const std::uint8_t> octets) override {
    hear({octets.begin(), octets.end()});
  }

  void OnTestEnd(const ::testing::TestInfo& /*test*/) override {
    const std::scoped_lock lock(mutex_);
    for (const Profile profile : std::exchange(heard_, {})) conformance::ran(std::string("2-") + name_of(profile));
  }

 private:
  void hear(const Bytes& octets) {
    const auto draft = draft_of(octets);
    const std::scoped_lock lock(mutex_);
    if (draft) heard_.insert(*draft);
  }

  std::mutex mutex_;
  std::set<Profile> heard_;
};

// gtest deletes its listeners.
[[maybe_unused]] const Witness* const kWitness = new Witness;

}  // namespace
}  // namespace weft::wire_v2
