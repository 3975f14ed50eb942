#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/perf/message.h"
#include "apps/perf/region.h"
#include "base/time.h"
#include "verbs-shim/api/cm.h"
#include "verbs-shim/api/verbs.h"

namespace weft::apps::perf {

// RdmaPeer is one client of the listener. The client's Hello came with the connection request, so queues and memory are
// made to measure: fill until all memory is there, then accept. From then on RdmaPeer serves Writes and Reads with its
// memory; takes Sends and answers every quarter of a window with Totals; echoes Sends if round trips are measured;
// answers an empty Send (the client's end) with the final Totals.
class RdmaPeer {
 public:
  // region: memory_of(hello) octets, none of them written.
  RdmaPeer(std::unique_ptr<verbs::CmId> id, const Hello& hello, Region region);

  // fill writes at most `most` further octets of the memory. Returns whether all of it is written now.
  bool fill(std::size_t most) { return region_.fill(most); }
  // accept takes the connection. `ready` is the listener's Ready; accept fills the region in.
  absl::Status accept(verbs::Device& device, Ready ready);
  bool is_accepted() const { return is_accepted_; }

  // Takes some completions. False once the connection is over or must be ended.
  bool on_progress();
  // Whether on_progress left completions, which no descriptor reports.
  bool has_more() const { return has_more_; }
  // silent_for says how long the connection has moved nothing, as far as the earlier calls show; each call is a new
  // look. Before accept the silence is the listener's own.
  std::chrono::steady_clock::duration silent_for(TimePoint now);
  // take_region is the last call before the end of the RdmaPeer, whose queue pair still uses the memory.
  Region take_region() { return std::move(region_); }
  // The octets of memory that a client with this Hello asks for.
  static std::uint64_t memory_of(const Hello& hello);

  std::size_t num_filled() const { return region_.octets().size(); }
  const std::string& name() const { return name_; }
  Op op() const { return hello_.op; }

 private:
  // Answers under way at once: one for each quarter of the window, and the final one.
  static constexpr std::size_t kNumAnswers = 8;
  // One echo in so many is signaled, so that the send queue drains.
  static constexpr std::uint64_t kSignalEvery = 32;

  absl::Status prepare(verbs::Device& device);
  bool on_completion(const verbs::Wc& wc);
  bool on_message(std::uint32_t len);
  verbs::Status post_recv();
  bool answer(bool final);
  bool echo(std::uint32_t len);

  std::string name_;
  const Hello hello_;
  const std::uint32_t window_;
  std::uint32_t unanswered_ = 0;
  bool is_accepted_ = false;
  bool has_more_ = false;
  Totals totals_;
  std::uint64_t moved_ = 0;  // at the last look, and the time of its last change
  std::optional<TimePoint> moved_at_;
  Region region_;
  std::vector<std::uint8_t> answers_;
  std::unique_ptr<verbs::Pd> pd_;  // a domain of its own: no client reaches the memory of another
  std::vector<std::size_t> free_answers_;
  std::unique_ptr<verbs::Mr> region_mr_, answers_mr_;
  std::unique_ptr<verbs::Cq> cq_;
  std::unique_ptr<verbs::CmId> id_;
  std::unique_ptr<verbs::Qp> qp_;
};

}  // namespace weft::apps::perf
