#include "apps/dissect/call_table.h"

#include <algorithm>

namespace weft::apps::dissect {

namespace {

std::size_t num_segments(const rpcrdma::ChunkListsView& lists) {
  std::size_t num = 0;
  for_each_segment(lists, [&num](std::uint32_t, const CallTable::Segment&) { ++num; });
  return num;
}

}  // namespace

CallTable::Call& CallTable::add(std::uint32_t xid, Timestamp time, const rpcrdma::ChunkListsView& offered) {
  if (const auto old = calls_.find(xid); old != calls_.end()) forget(old);
  const std::size_t num = num_segments(offered);
  if (calls_.size() >= kMaxCalls || num_offered_ + num > kMaxSegments) {
    calls_.clear();
    segments_.clear();
    num_offered_ = 0;
    has_forgotten_ = true;
  }
  Call& call = calls_[xid];
  call = {.num_gaps = num_gaps_, .time = time};
  if (num > kMaxSegments) return call;
  call.offered = offered;
  num_offered_ += num;
  for_each_segment(offered, [&](std::uint32_t handle, Segment segment) {
    segment.xid = xid;
    segments_[{handle, segment.offset}] = segment;
  });
  return call;
}

CallTable::Call* CallTable::find(std::uint32_t xid) {
  const auto found = calls_.find(xid);
  return found == calls_.end() ? nullptr : &found->second;
}

void CallTable::answer(std::uint32_t xid) {
  const auto call = calls_.find(xid);
  if (call == calls_.end()) return;
  forget(call);
  answered_.push_back(xid);
  if (answered_.size() > kMaxAnswered) answered_.pop_front();
}

void CallTable::forget(std::unordered_map<std::uint32_t, Call>::iterator call) {
  num_offered_ -= num_segments(call->second.offered);
  for_each_segment(call->second.offered, [&](std::uint32_t handle, const Segment& segment) {
    const auto found = segments_.find({handle, segment.offset});
    if (found != segments_.end() && found->second.xid == call->first) segments_.erase(found);
  });
  calls_.erase(call);
}

const CallTable::Segment* CallTable::find_segment(std::uint32_t handle, std::uint64_t to) const {
  auto found = segments_.upper_bound({handle, to});
  if (found != segments_.begin() && std::prev(found)->first.first == handle) return &std::prev(found)->second;
  return found != segments_.end() && found->first.first == handle ? &found->second : nullptr;
}

bool CallTable::may_have_had(std::uint32_t xid) const {
  return has_forgotten_ || calls_.contains(xid) || std::ranges::find(answered_, xid) != answered_.end();
}

}  // namespace weft::apps::dissect
