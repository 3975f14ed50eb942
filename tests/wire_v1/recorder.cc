// Linked into a test program, this file hears the posts of all tapped ends of each test. A Send that is no well-formed
// message of RPC-over-RDMA version 1 fails the test. With WEFT_WIRE_RECORD=FILE in the environment it writes the posts
// (record.h) to FILE, test by test and end by end, for digests.py.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/wire_v1/record.h"
#include "verbs-shim/api/testing/post_tap.h"

namespace weft::wire_v1 {
namespace {

std::vector<std::uint8_t> gathered(const verbs::SendWr& wr) {
  std::vector<std::uint8_t> octets;
  for (const verbs::Sge& sge : wr.sg_list) {
    const auto* at = reinterpret_cast<const std::uint8_t*>(sge.addr);
    // The octets of a Read have not arrived yet: its length alone counts.
    if (wr.opcode == verbs::WrOpcode::kRdmaRead) {
      octets.resize(octets.size() + sge.length);
    } else {
      octets.insert(octets.end(), at, at + sge.length);
    }
  }
  return octets;
}

std::string hex(std::span<const std::uint8_t> octets) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t octet : octets) {
    text += kDigits[octet >> 4];
    text += kDigits[octet & 15];
  }
  return text;
}

class Recorder final : public verbs::testing::PostObserver, public ::testing::EmptyTestEventListener {
 public:
  Recorder() {
    if (const char* path = std::getenv("WEFT_WIRE_RECORD")) {
      file_.open(path);
      keeps_ = true;
    }
    verbs::testing::observe_posts(*this);
    ::testing::UnitTest::GetInstance()->listeners().Append(this);
  }

  void on_post(std::size_t end, const verbs::SendWr& wr) override {
    const bool is_send = wr.opcode == verbs::WrOpcode::kSend || wr.opcode == verbs::WrOpcode::kSendWithInv;
    if (!is_send && !keeps_) return;
    const auto octets = gathered(wr);
    std::string fault;
    const std::scoped_lock lock(mutex_);
    End& at = ends_[end];
    const std::string line = at.record.line_of(wr, octets, xids_, fault);
    if (!fault.empty()) ADD_FAILURE() << "a malformed message was posted: " << fault << "\n" << hex(octets);
    if (keeps_ && !line.empty()) at.lines.push_back(line);
  }
  void on_connect(std::size_t end, std::span<const std::uint8_t> private_data) override {
    const std::scoped_lock lock(mutex_);
    if (keeps_) ends_[end].lines.push_back("private data " + hex(private_data));
  }

  void OnTestEnd(const ::testing::TestInfo& test) override {
    const std::scoped_lock lock(mutex_);
    std::size_t number = 0;
    for (const auto& [end, at] : ends_) {
      if (at.lines.empty()) continue;
      if (number++ == 0) file_ << "test " << test.test_suite_name() << "." << test.name() << "\n";
      file_ << "end " << number << "\n";
      for (const std::string& line : at.lines) file_ << line << "\n";
    }
    ends_.clear();
    xids_.clear();
  }

 private:
  struct End {
    EndRecord record;
    std::vector<std::string> lines;
  };

  std::mutex mutex_;
  bool keeps_ = false;
  std::ofstream file_;
  std::map<std::size_t, End> ends_;
  Xids xids_;
};

// gtest deletes its listeners.
[[maybe_unused]] const Recorder* const kRecorder = new Recorder;

}  // namespace
}  // namespace weft::wire_v1
