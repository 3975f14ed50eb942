// Linked into a test program, this file hears the posts of all tapped ends of each test. At the end of the test it
// holds every connection against the rules of both ends (Conversation), and every message of an end whose peer is not
// tapped against the decoders. A broken rule fails the test, and so does another draft than WEFT_RPCRDMA names, or a
// message in which the codec of the engines finds another field than the decoder does. The test's results tell which
// drafts it spoke, which header types, error codes and properties occurred (tests/conformance/wire_tally.py), and as
// calls_unanswered the number of Calls that no message answered.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/ran.h"
#include "tests/wire_v2/agreement.h"
#include "tests/wire_v2/heard.h"
#include "tests/wire_v2/tables.h"

namespace weft::wire_v2 {
namespace {

constexpr Profile kProfiles[] = {Profile::kCel05, Profile::kWg07};

// The protocol of the whole test program (rpcrdma/testing/protocol_under_test.h); empty: each test's own affair.
std::string name_from_environment() {
  const char* name = std::getenv("WEFT_RPCRDMA");
  return name != nullptr ? name : "";
}

// "2-cel05", "2-wg07": a value of WEFT_RPCRDMA.
std::string protocol_of(Profile profile) {
  return std::string("2-") + name_of(profile);
}

// " RDMA2_MSG=4 RBSIZ=1"
std::string text_of(const std::map<std::string, std::size_t>& occurred) {
  std::string text;
  for (const auto& [name, count] : occurred) text += " " + name + "=" + std::to_string(count);
  return text;
}

// Properties of the test for each draft that it spoke: wire_v2_cel05 is "conversations=1 RDMA2_MSG=4", and
// arrived_v2_cel05 has what came from peers that are not tapped.
void record(const Transcript::Verdict& verdict, Profile profile) {
  const auto& arrived = verdict.arrived.occurred(profile);
  if (!arrived.empty()) {
    ::testing::Test::RecordProperty(std::string("arrived_v2_") + name_of(profile), text_of(arrived));
  }
  const auto& occurred = verdict.tally.occurred(profile);
  if (occurred.empty()) return;
  conformance::ran(protocol_of(profile));
  const auto conversations = verdict.num_conversations.find(profile);
  const std::size_t num = conversations == verdict.num_conversations.end() ? 0 : conversations->second;
  ::testing::Test::RecordProperty(std::string("wire_v2_") + name_of(profile),
                                  "conversations=" + std::to_string(num) + text_of(occurred));
}

class Recorder final : public Heard, public ::testing::EmptyTestEventListener {
 public:
  // Observes to the end of the program: gtest deletes its listeners when the list of observers may be gone.
  Recorder() {
    verbs::testing::observe_posts(*this);
    ::testing::UnitTest::GetInstance()->listeners().Append(this);
  }

  void OnTestEnd(const ::testing::TestInfo& /*test*/) override {
    const auto verdict = take().judge();
    num_messages_ += verdict.num_messages;
    if (!verdict.unanswered.empty()) {
      ::testing::Test::RecordProperty("calls_unanswered", static_cast<int>(verdict.unanswered.size()));
    }
    for (const std::string& fault : verdict.faults) ADD_FAILURE() << "on the wire: " << fault;
    const std::scoped_lock lock(mutex_);
    for (const std::string& text : std::exchange(disagreements_, {})) ADD_FAILURE() << "two readings: " << text;
    for (const Profile profile : kProfiles) {
      record(verdict, profile);
      EXPECT_TRUE(is_expected(profile) || verdict.tally.occurred(profile).empty()) << "spoken: " << name_of(profile);
    }
  }

  // A tap that hears nothing would prove nothing. A failure behind this event does not count.
  void OnTestIterationEnd(const ::testing::UnitTest& program, int /*iteration*/) override {
    const bool is_whole = program.test_to_run_count() == program.total_test_count();
    EXPECT_TRUE(!is_whole || num_messages_ != 0) << "no message of version 2 was posted";
  }

 private:
  void on_octets(const Bytes& octets) override {
    for (const Profile profile : kProfiles) {
      std::string text = disagreement(octets, profile);
      if (text.empty()) continue;
      const std::scoped_lock lock(mutex_);
      disagreements_.push_back(std::move(text));
    }
  }

  // Whether WEFT_RPCRDMA names this draft, or none.
  bool is_expected(Profile profile) const { return named_.empty() || named_ == protocol_of(profile); }

  const std::string named_ = name_from_environment();
  std::mutex mutex_;
  std::vector<std::string> disagreements_;
  std::size_t num_messages_ = 0;
};

// gtest deletes its listeners.
[[maybe_unused]] const Recorder* const kRecorder = new Recorder;

}  // namespace
}  // namespace weft::wire_v2
