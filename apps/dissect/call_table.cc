#include "apps/dissect/call_table.h"

#include <algorithm>
#include <utility>

namespace weft::apps::dissect {

namespace {

// Write chunks take memory without segments, too.
std::size_t num_entries(const rpcrdma::ChunkListsView& lists) {
  std::size_t num = lists.write_list.size();
  for_each_segment(lists, [&num](std::uint32_t, const CallTable::Segment&) { ++num; });
  return num;
}

std::size_t num_entries(const std::vector<std::uint8_t>& head) {
  return (head.size() + CallTable::kHeadOfEntry - 1) / CallTable::kHeadOfEntry;
}

}  // namespace

CallTable::Call& CallTable::add(std::uint32_t xid, Timestamp time, const rpcrdma::ChunkListsView& offered) {
  const auto old = calls_.find(xid);
  const bool is_repeated = old != calls_.end() || was_repeated(xid);
  if (old != calls_.end()) forget(old);
  const std::size_t num = num_entries(offered);
  if (calls_.size() >= kMaxCalls || num_offered_ + num > kMaxSegments || !count_.has_room(1 + num)) forget_all();
  Call& call = new_call(xid);
  call.is_repeated = is_repeated;
  call.num_lost = num_lost_;
  call.num_gaps = num_gaps_;
  call.time = time;
  num_repeated_ += is_repeated ? 1 : 0;
  count();
  if (num > kMaxSegments || !count_.has_room(num)) return call;
  call.offered = offered;
  num_offered_ += num;
  count();
  for_each_segment(offered, [&](std::uint32_t handle, Segment segment) {
    segment.xid = xid;
    segments_.emplace(std::tuple(handle, segment.offset, xid), segment);
  });
  return call;
}

// A connection has few Calls open at once: the memory of the last one that ended serves the next one.
CallTable::Call& CallTable::new_call(std::uint32_t xid) {
  if (spare_.empty()) return calls_[xid];
  spare_.key() = xid;
  return calls_.insert(std::move(spare_)).position->second;
}

void CallTable::on_resumed(std::optional<std::uint32_t> num_lost) {
  has_gap_ = false;
  const std::uint64_t num_answered = std::exchange(num_answered_, 0);
  if (!num_lost) has_forgotten_ = true;
  if (!num_lost || *num_lost != 0) ++num_lost_;
  if (num_lost) num_unknown_ += *num_lost - std::min<std::uint64_t>(*num_lost, num_answered);
}

void CallTable::on_unknown_answer() {
  if (has_gap_) ++num_answered_;
  if (!has_gap_ && num_unknown_ > 0) --num_unknown_;
}

// The Replies to all Calls with this XID may still come.
bool CallTable::was_repeated(std::uint32_t xid) const {
  return num_repeated_ > 0 &&
         std::ranges::any_of(past_, [xid](const Past& past) { return past.xid == xid && past.is_repeated; });
}

void CallTable::forget_all() {
  for (const auto& [xid, call] : calls_) num_repeated_ -= call.is_repeated ? 1 : 0;
  calls_.clear();
  segments_.clear();
  ahead_.clear();
  num_offered_ = num_heads_ = 0;
  has_forgotten_ = has_overflowed_ = true;
  count();
}

CallTable::Call* CallTable::find(std::uint32_t xid) {
  const auto found = calls_.find(xid);
  return found == calls_.end() ? nullptr : &found->second;
}

const CallTable::Call* CallTable::find(std::uint32_t xid) const {
  const auto found = calls_.find(xid);
  return found == calls_.end() ? nullptr : &found->second;
}

void CallTable::end_call(std::uint32_t xid, Had had) {
  const auto call = calls_.find(xid);
  if (call == calls_.end()) return;
  const bool is_repeated = call->second.is_repeated;
  forget(call);
  note_past({xid, is_repeated ? Had::kUnknown : had, is_repeated});
}

// Where there is no room for one more, the oldest one gives way, and had() knows of no Call any more.
void CallTable::note_past(Past past) {
  if (!count_.has_room(1) && !past_.empty()) {
    has_forgotten_ = has_overflowed_ = true;
    forget_oldest_past();
  }
  past_.push_back(past);
  num_repeated_ += past.is_repeated ? 1 : 0;
  if (past_.size() > kMaxPast) forget_oldest_past();
  count();
}

void CallTable::forget_oldest_past() {
  num_repeated_ -= past_.front().is_repeated ? 1 : 0;
  past_.pop_front();
}

void CallTable::keep_reply_head(Call& call, ConstBytes head) {
  num_heads_ -= num_entries(call.reply_head);
  call.reply_head = {};
  count();
  if (!count_.has_room(head.size() / kHeadOfEntry + 1)) return;
  call.reply_head.assign(head.begin(), head.end());
  num_heads_ += num_entries(call.reply_head);
  count();
}

void CallTable::forget(std::unordered_map<std::uint32_t, Call>::iterator call) {
  num_offered_ -= num_entries(call->second.offered);
  num_heads_ -= num_entries(call->second.reply_head);
  for_each_segment(call->second.offered, [&](std::uint32_t handle, const Segment& segment) {
    const auto found = segments_.find({handle, segment.offset, call->first});
    if (found == segments_.end()) return;
    ahead_.erase(&found->second);
    segments_.erase(found);
  });
  num_repeated_ -= call->second.is_repeated ? 1 : 0;
  spare_ = calls_.extract(call);
  spare_.mapped() = {};
  count();
}

// The segments that begin at `to` or before come first, the nearest of them before the others. Then come those that
// begin where the octets end that are offered so far.
CallTable::Memory CallTable::find_memory(std::uint32_t handle, std::uint64_t to, std::uint64_t len) const {
  Memory memory;
  // Octets are counted from `to` on: memory may end at 2^64, which is no 64-bit number.
  const std::uint64_t room = to == 0 ? UINT64_MAX : 0 - to;
  std::uint64_t reach = 0;  // every octet before it is offered
  std::size_t num_looks = 0;
  const auto is_enough = [&](const Segment& segment) {
    const std::uint64_t before = to - std::min(to, segment.offset),
                        behind = segment.offset - std::min(to, segment.offset);
    const std::uint64_t end = std::min(behind + segment.len - std::min<std::uint64_t>(before, segment.len), room);
    if (memory.segment == nullptr || end > reach) memory.segment = &segment;
    reach = std::max(reach, end);
    memory.is_offered = reach >= len;
    memory.is_certain = ++num_looks < kMaxLooks;
    return memory.is_offered || !memory.is_certain;
  };
  const auto behind = segments_.upper_bound({handle, to, UINT32_MAX});
  const auto has_handle = [handle](const auto& entry) { return std::get<0>(entry.first) == handle; };
  for (auto at = behind; at != segments_.begin() && has_handle(*std::prev(at));) {
    if (is_enough((--at)->second)) return memory;
  }
  for (auto at = behind; at != segments_.end() && has_handle(*at); ++at) {
    if (at->second.offset - to > reach) {
      if (memory.segment == nullptr) memory.segment = &at->second;
      break;
    }
    if (is_enough(at->second)) return memory;
  }
  return memory;
}

void CallTable::note_write(std::uint32_t handle, std::uint64_t to, std::uint64_t len) {
  if (len == 0) return;
  const std::uint64_t last = to + std::min(len - 1, UINT64_MAX - to);
  std::size_t num_looks = 0;
  Segment* first = nullptr;  // the first segment that the Write reached
  // The segments that begin at the last octet of the Write or before.
  for (auto at = segments_.upper_bound({handle, last, UINT32_MAX}); at != segments_.begin();) {
    if (std::get<0>((--at)->first) != handle) return;
    Segment& segment = at->second;
    const std::uint64_t begin = to - std::min(to, segment.offset);
    if (begin < segment.len) {
      note_run(segment, {begin, std::min<std::uint64_t>(last - segment.offset, segment.len - 1) + 1});
      if (first != nullptr) first->is_shared = segment.is_shared = true;
      first = &segment;
    }
    if (++num_looks < kMaxLooks) continue;
    knows_written_ = false;
    return;
  }
}

// A run is inside the segment, whose length has 32 bits.
void CallTable::note_run(Segment& segment, Run run) {
  segment.end = std::max(segment.end, static_cast<std::uint32_t>(run.end));
  if (run.begin > segment.written) return note_run_ahead(segment, run);
  segment.written = std::max(segment.written, static_cast<std::uint32_t>(run.end));
  const auto found = ahead_.empty() ? ahead_.end() : ahead_.find(&segment);
  if (found == ahead_.end()) return;
  segment.written = static_cast<std::uint32_t>(found->second.pass(segment.written));
  if (found->second.empty()) ahead_.erase(found);
  count();
}

void CallTable::note_run_ahead(Segment& segment, Run run) {
  if (segment.has_forgotten) return;
  const bool has_room = ahead_.contains(&segment) || (ahead_.size() < kMaxHoled && count_.has_room(kEntriesOfHoled));
  segment.has_forgotten = !has_room || !ahead_[&segment].add(run);
  if (segment.has_forgotten) ahead_.erase(&segment);
  count();
}

std::optional<CallTable::Written> CallTable::written(std::uint32_t xid, const rpcrdma::Segment& offered) const {
  const auto found = segments_.find({offered.handle, offered.offset, xid});
  if (!knows_written_ || found == segments_.end() || found->second.has_forgotten) return std::nullopt;
  const Segment& segment = found->second;
  return Written{segment.len, segment.written, segment.is_shared ? std::nullopt : std::optional(segment.end)};
}

CallTable::Had CallTable::had(std::uint32_t xid) const {
  if (lacks_calls()) return Had::kUnknown;
  const auto last = std::find_if(past_.rbegin(), past_.rend(), [xid](const Past& past) { return past.xid == xid; });
  return last == past_.rend() ? Had::kNever : last->had;
}

}  // namespace weft::apps::dissect
