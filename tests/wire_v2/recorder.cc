// Linked into a test program, this file hears the Sends of all tapped ends of each test. A Send of version 2 that the
// decoder of cel05 refuses fails the test. Sends of version 1 have a recorder of their own (tests/wire_v1).

#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "tests/wire_v2/decoder.h"
#include "verbs-shim/api/testing/post_tap.h"

namespace weft::wire_v2 {
namespace {

std::vector<std::uint8_t> gathered(const verbs::SendWr& wr) {
  std::vector<std::uint8_t> octets;
  for (const verbs::Sge& sge : wr.sg_list) {
    const auto* at = reinterpret_cast<const std::uint8_t*>(sge.addr);
    octets.insert(octets.end(), at, at + sge.length);
  }
  return octets;
}

constexpr std::size_t kVersionAt = 4;  // octets before rdma_vers

bool is_version_2(Octets octets) {
  return octets.size() >= kVersionAt + 4 && octets[kVersionAt] == 0 && octets[kVersionAt + 1] == 0 &&
         octets[kVersionAt + 2] == 0 && octets[kVersionAt + 3] == 2;
}

class Recorder final : public verbs::testing::PostObserver, public ::testing::EmptyTestEventListener {
 public:
  Recorder() {
    verbs::testing::observe_posts(this);
    ::testing::UnitTest::GetInstance()->listeners().Append(this);
  }

  void on_post(std::size_t /*end*/, const verbs::SendWr& wr) override {
    if (wr.opcode != verbs::WrOpcode::kSend && wr.opcode != verbs::WrOpcode::kSendWithInv) return;
    const auto octets = gathered(wr);
    if (!is_version_2(octets)) return;
    const auto decoded = decode(octets, Profile::kCel05);
    const std::scoped_lock lock(mutex_);
    ++num_decoded_;
    const Fault* fault = std::get_if<Fault>(&decoded);
    if (fault != nullptr) ADD_FAILURE() << "a malformed message was posted: " << fault->text;
  }
  void on_connect(std::size_t /*end*/, std::span<const std::uint8_t> /*private_data*/) override {}

  // A tap that hears nothing would prove nothing.
  void OnTestProgramEnd(const ::testing::UnitTest& program) override {
    const bool is_whole = program.test_to_run_count() == program.total_test_count();
    EXPECT_TRUE(!is_whole || num_decoded_ != 0) << "no message of version 2 was posted";
  }

 private:
  std::mutex mutex_;
  std::size_t num_decoded_ = 0;
};

// gtest deletes its listeners.
[[maybe_unused]] const Recorder* const kRecorder = new Recorder;

}  // namespace
}  // namespace weft::wire_v2
