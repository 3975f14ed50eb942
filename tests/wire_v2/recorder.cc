// Linked into a test program, this file hears the posts of all tapped ends of each test. At the end of the test it
// holds every connection against the rules of both ends (Conversation), and every message of an end whose peer is not
// tapped against the decoders. A broken rule fails the test, and so does another draft than WEFT_RPCRDMA names, or a
// message in which the codec of the engines finds another field than the decoder does. The test's results tell which
// drafts it spoke, and which header types, error codes and properties occurred (tests/conformance/wire_tally.py).

#include <gtest/gtest.h>

#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/ran.h"
#include "tests/wire_v2/agreement.h"
#include "tests/wire_v2/tables.h"
#include "tests/wire_v2/transcript.h"
#include "verbs-shim/api/testing/post_tap.h"

namespace weft::wire_v2 {
namespace {

Bytes gathered(const verbs::SendWr& wr) {
  Bytes octets;
  for (const verbs::Sge& sge : wr.sg_list) {
    const auto* at = reinterpret_cast<const std::uint8_t*>(sge.addr);
    octets.insert(octets.end(), at, at + sge.length);
  }
  return octets;
}

Segment segment_of(const verbs::SendWr& wr) {
  std::uint32_t len = 0;
  for (const verbs::Sge& sge : wr.sg_list) len += sge.length;
  return {wr.rkey, len, wr.remote_addr};
}

std::optional<Post> post_of(std::size_t end, const verbs::SendWr& wr) {
  switch (wr.opcode) {
    case verbs::WrOpcode::kSend: return Post{end, Post::Kind::kSend, gathered(wr), {}, {}};
    case verbs::WrOpcode::kSendWithInv: return Post{end, Post::Kind::kSend, gathered(wr), wr.invalidate_rkey, {}};
    case verbs::WrOpcode::kRdmaRead: return Post{end, Post::Kind::kRead, {}, {}, segment_of(wr)};
    case verbs::WrOpcode::kRdmaWrite: return Post{end, Post::Kind::kWrite, {}, {}, segment_of(wr)};
    default: return {};
  }
}

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

// A property of the test for each draft that it spoke, as "conversations=1 RDMA2_MSG=4 RBSIZ=1".
void record(const Transcript::Verdict& verdict, Profile profile) {
  const auto& occurred = verdict.tally.occurred(profile);
  if (occurred.empty()) return;
  conformance::ran(protocol_of(profile));
  const auto conversations = verdict.num_conversations.find(profile);
  std::string text =
      "conversations=" + std::to_string(conversations == verdict.num_conversations.end() ? 0 : conversations->second);
  for (const auto& [name, count] : occurred) text += " " + name + "=" + std::to_string(count);
  ::testing::Test::RecordProperty(std::string("wire_v2_") + name_of(profile), text);
}

class Recorder final : public verbs::testing::PostObserver, public ::testing::EmptyTestEventListener {
 public:
  Recorder() {
    verbs::testing::observe_posts(*this);
    ::testing::UnitTest::GetInstance()->listeners().Append(this);
  }

  void on_post(std::size_t end, const verbs::SendWr& wr) override {
    auto post = post_of(end, wr);
    if (post) add(std::move(*post));
  }
  void on_connect(std::size_t /*end*/, std::span<const std::uint8_t> /*private_data*/) override {}
  void on_pair(std::size_t client, std::size_t server) override {
    const std::scoped_lock lock(mutex_);
    transcript_.pair(client, server);
  }
  void on_arrival(std::size_t end, std::span<const std::uint8_t> octets) override {
    add({end, Post::Kind::kArrival, {octets.begin(), octets.end()}, {}, {}});
  }

  void OnTestEnd(const ::testing::TestInfo& /*test*/) override {
    const std::scoped_lock lock(mutex_);
    const auto verdict = std::exchange(transcript_, {}).judge();
    num_messages_ += verdict.num_messages;
    for (const std::string& fault : verdict.faults) ADD_FAILURE() << "on the wire: " << fault;
    for (const std::string& text : std::exchange(disagreements_, {})) ADD_FAILURE() << "two readings: " << text;
    for (const Profile profile : kProfiles) {
      record(verdict, profile);
      EXPECT_TRUE(is_expected(profile) || verdict.tally.occurred(profile).empty()) << "spoken: " << name_of(profile);
    }
  }

  // A tap that hears nothing would prove nothing. What fails behind this event does not count.
  void OnTestIterationEnd(const ::testing::UnitTest& program, int /*iteration*/) override {
    const bool is_whole = program.test_to_run_count() == program.total_test_count();
    EXPECT_TRUE(!is_whole || num_messages_ != 0) << "no message of version 2 was posted";
  }

 private:
  void add(Post post) {
    std::string text;
    for (const Profile profile : kProfiles) {
      if (text.empty()) text = disagreement(post.octets, profile);
    }
    const std::scoped_lock lock(mutex_);
    if (!text.empty()) disagreements_.push_back(std::move(text));
    transcript_.add(std::move(post));
  }

  // Whether WEFT_RPCRDMA names this draft, or none.
  bool is_expected(Profile profile) const { return named_.empty() || named_ == protocol_of(profile); }

  const std::string named_ = name_from_environment();
  std::mutex mutex_;
  Transcript transcript_;
  std::vector<std::string> disagreements_;
  std::size_t num_messages_ = 0;
};

// gtest deletes its listeners.
[[maybe_unused]] const Recorder* const kRecorder = new Recorder;

}  // namespace
}  // namespace weft::wire_v2
