#include "apps/dissect/call_table.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace weft::apps::dissect {

namespace {

// Write chunks take memory without segments, too.
std::size_t num_entries(const rpcrdma::ChunkListsView& lists) {
  std::size_t num = lists.call_chunk.size() + lists.read_list.size() + lists.write_list.size();
  for (const rpcrdma::SegmentArray& chunk : lists.write_list) num += chunk.size();
  return num + (lists.reply_chunk ? lists.reply_chunk->size() : 0);
}

std::size_t num_entries(const std::vector<std::uint8_t>& head) {
  return (head.size() + CallTable::kHeadOfEntry - 1) / CallTable::kHeadOfEntry;
}

}  // namespace

// The lists stay where the next Call finds their memory.
std::unique_ptr<CallTable::Call> CallTable::Pool::take() {
  if (calls_.empty()) return std::make_unique<Call>();
  std::unique_ptr<Call> call = std::move(calls_.back());
  calls_.pop_back();
  static_cast<CallWords&>(*call) = {};
  call->num_entries = 0;
  return call;
}

void CallTable::Pool::give(std::unique_ptr<Call> call) {
  if (calls_.size() == kMax || call->num_entries > kMaxEntries) return;
  if (!call->reply_head.empty()) call->reply_head = {};
  calls_.push_back(std::move(call));
}

CallTable::Call& CallTable::add(std::uint32_t xid, Timestamp time, const rpcrdma::ChunkListsView& offered) {
  auto [at, is_new] = calls_.try_emplace(xid);
  const bool is_repeated = !is_new || was_repeated(xid);
  if (!is_new) {
    forget(at);
    at = calls_.try_emplace(xid).first;
  }
  const std::size_t num = num_entries(offered);
  if (calls_.size() > kMaxCalls || num_offered_ + num > kMaxSegments || !count_.has_room(1 + num)) {
    forget_all();
    at = calls_.try_emplace(xid).first;
  }
  at->second = pool_.take();
  Call& call = *at->second;
  call.is_repeated = is_repeated;
  call.num_lost = num_lost_;
  call.num_gaps = is_late_ ? kUnknownGaps : num_gaps_;
  call.time = time;
  num_repeated_ += is_repeated ? 1 : 0;
  count();
  if (num > kMaxSegments || !count_.has_room(num)) {
    call.offered.clear();
    return call;
  }
  if (!offered.empty() || !call.offered.empty()) call.offered = offered;
  call.num_entries = num;
  if (num == 0) return call;
  num_offered_ += num;
  count();
  for_each_segment(offered, [&](std::uint32_t handle, Segment segment) {
    segment.xid = xid;
    segments_.emplace(std::tuple(handle, segment.offset, xid), segment);
  });
  return call;
}

void CallTable::on_resumed(std::optional<std::uint32_t> num_lost) {
  has_gap_ = false;
  const std::uint64_t num_answered = std::exchange(num_answered_, 0);
  if (!num_lost) has_forgotten_ = true;
  if (!num_lost || *num_lost != 0) ++num_lost_;
  if (num_lost) num_unknown_ += *num_lost - std::min<std::uint64_t>(*num_lost, num_answered);
}

void CallTable::on_unknown_answer(std::uint32_t xid) {
  if (has_gap_) ++num_answered_;
  if (!has_gap_ && num_unknown_ > 0) --num_unknown_;
  if (!is_late_) return;
  if (answered_.size() == kMaxPast || !count_.has_room(1)) {
    has_forgotten_ = has_overflowed_ = true;
    return;
  }
  answered_.push_back(xid);
  count();
}

void CallTable::on_caught_up() {
  is_late_ = false;
  answered_ = {};
  count();
}

bool CallTable::takes_early_answer(std::uint32_t xid) {
  if (answered_.empty()) return false;
  const auto found = std::ranges::find(answered_, xid);
  if (found == answered_.end()) return false;
  answered_.erase(found);
  count();
  return true;
}

// The Replies to all Calls with this XID may still come.
bool CallTable::was_repeated(std::uint32_t xid) const {
  return num_repeated_ > 0 && std::ranges::any_of(std::views::iota(std::size_t{0}, past_.size()), [&](std::size_t i) {
           return past_[i].xid == xid && past_[i].is_repeated;
         });
}

void CallTable::forget_all() {
  for (const auto& [xid, call] : calls_) num_repeated_ -= call != nullptr && call->is_repeated ? 1 : 0;
  calls_.clear();
  segments_.clear();
  ahead_.clear();
  num_offered_ = num_heads_ = 0;
  has_forgotten_ = has_overflowed_ = true;
  count();
}

CallTable::Call* CallTable::find(std::uint32_t xid) {
  const auto found = calls_.find(xid);
  return found == calls_.end() ? nullptr : found->second.get();
}

const CallTable::Call* CallTable::find(std::uint32_t xid) const {
  const auto found = calls_.find(xid);
  return found == calls_.end() ? nullptr : found->second.get();
}

void CallTable::end_call(std::uint32_t xid, Had had) {
  const auto call = calls_.find(xid);
  if (call == calls_.end()) return;
  const bool is_repeated = call->second->is_repeated;
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

void CallTable::forget(Calls::iterator call) {
  constexpr std::size_t kSparse = 8, kSmall = 128;
  Call& ended = *call->second;
  num_offered_ -= ended.num_entries;
  if (!ended.reply_head.empty()) num_heads_ -= num_entries(ended.reply_head);
  if (ended.num_entries != 0) forget_segments(call->first, ended);
  num_repeated_ -= ended.is_repeated ? 1 : 0;
  pool_.give(std::move(call->second));
  calls_.erase(call);
  // A table that once had many Calls gives their memory back.
  if (calls_.capacity() > kSmall && calls_.size() < calls_.capacity() / kSparse) calls_.rehash(0);
  count();
}

void CallTable::forget_segments(std::uint32_t xid, const Call& call) {
  for_each_segment(call.offered, [&](std::uint32_t handle, const Segment& segment) {
    const auto found = segments_.find({handle, segment.offset, xid});
    if (found == segments_.end()) return;
    if (!ahead_.empty()) ahead_.erase(&found->second);
    segments_.erase(found);
  });
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
  for (std::size_t i = past_.size(); i-- != 0;) {
    if (past_[i].xid == xid) return past_[i].had;
  }
  return Had::kNever;
}

}  // namespace weft::apps::dissect
