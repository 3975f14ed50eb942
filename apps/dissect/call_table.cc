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
  const auto old = calls_.find(xid);
  const bool is_repeated = old != calls_.end();
  if (is_repeated) {
    forget(old);
    has_forgotten_ = true;
  }
  const std::size_t num = num_segments(offered);
  if (calls_.size() >= kMaxCalls || num_offered_ + num > kMaxSegments) {
    calls_.clear();
    segments_.clear();
    num_offered_ = 0;
    has_forgotten_ = true;
  }
  Call& call = calls_[xid];
  call = {.is_repeated = is_repeated, .num_gaps = num_gaps_, .time = time};
  if (num > kMaxSegments) return call;
  call.offered = offered;
  num_offered_ += num;
  for_each_segment(offered, [&](std::uint32_t handle, Segment segment) {
    segment.xid = xid;
    segments_.emplace(std::tuple(handle, segment.offset, xid), segment);
  });
  return call;
}

CallTable::Call* CallTable::find(std::uint32_t xid) {
  const auto found = calls_.find(xid);
  return found == calls_.end() ? nullptr : &found->second;
}

const CallTable::Call* CallTable::find(std::uint32_t xid) const {
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
    const auto found = segments_.find({handle, segment.offset, call->first});
    if (found != segments_.end()) segments_.erase(found);
  });
  calls_.erase(call);
}

// The segments that begin at `to` or before come first, the nearest of them before the others. Then come those that
// begin where the octets end that are offered so far.
CallTable::Memory CallTable::find_memory(std::uint32_t handle, std::uint64_t to, std::uint64_t len) const {
  Memory memory;
  std::uint64_t reach = to;  // every octet before it is offered
  std::size_t num_looks = 0;
  const auto is_enough = [&](const Segment& segment) {
    const std::uint64_t end = segment.offset + std::min<std::uint64_t>(segment.len, UINT64_MAX - segment.offset);
    if (memory.segment == nullptr || end > reach) memory.segment = &segment;
    reach = std::max(reach, end);
    memory.is_offered = reach - to >= len;
    memory.is_certain = ++num_looks < kMaxLooks;
    return memory.is_offered || !memory.is_certain;
  };
  const auto behind = segments_.upper_bound({handle, to, UINT32_MAX});
  const auto has_handle = [handle](const auto& entry) { return std::get<0>(entry.first) == handle; };
  for (auto at = behind; at != segments_.begin() && has_handle(*std::prev(at));) {
    if (is_enough((--at)->second)) return memory;
  }
  for (auto at = behind; at != segments_.end() && has_handle(*at); ++at) {
    if (at->second.offset > reach) {
      if (memory.segment == nullptr) memory.segment = &at->second;
      break;
    }
    if (is_enough(at->second)) return memory;
  }
  return memory;
}

void CallTable::note_write(std::uint32_t handle, std::uint64_t to, std::uint64_t len) {
  const std::uint64_t end = to + std::min(len, UINT64_MAX - to);
  std::size_t num_looks = 0;
  // The segments that begin before the end of the Write.
  for (auto at = segments_.lower_bound({handle, end, 0}); at != segments_.begin();) {
    if (std::get<0>((--at)->first) != handle) return;
    Segment& segment = at->second;
    if (end > segment.offset && to - std::min(to, segment.offset) < segment.len) {
      segment.written = std::max(segment.written, std::min<std::uint64_t>(end - segment.offset, segment.len));
    }
    if (++num_looks < kMaxLooks) continue;
    knows_written_ = false;
    return;
  }
}

std::optional<std::uint64_t> CallTable::written(std::uint32_t xid, const rpcrdma::Segment& offered) const {
  const auto found = segments_.find({offered.handle, offered.offset, xid});
  if (!knows_written_ || found == segments_.end()) return std::nullopt;
  return found->second.written;
}

bool CallTable::may_have_had(std::uint32_t xid) const {
  return has_forgotten_ || calls_.contains(xid) || std::ranges::find(answered_, xid) != answered_.end();
}

}  // namespace weft::apps::dissect
