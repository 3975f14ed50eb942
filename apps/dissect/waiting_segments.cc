#include "apps/dissect/waiting_segments.h"

#include <iterator>
#include <utility>

namespace weft::apps::dissect {

bool WaitingSegments::was_sent_before(const TcpSegment& one, const TcpSegment& other) {
  const std::int64_t by_ack = seq_distance(one.ack, other.ack);
  return by_ack != 0 ? by_ack > 0 : seq_distance(one.seq, other.seq) > 0;
}

std::size_t WaitingSegments::size_of(const Waiting& waiting) {
  std::size_t size = sizeof(Waiting) + waiting.octets.size();
  for (const std::string& comment : waiting.comments) size += sizeof(std::string) + comment.size();
  return size;
}

void WaitingSegments::hold(const TcpSegment& segment) {
  Waiting one{.head = segment, .octets = {segment.payload.begin(), segment.payload.end()}, .comments = {}};
  one.comments.assign(segment.comments.begin(), segment.comments.end());
  one.head.payload = {};
  one.head.comments = {};
  held_here_ += size_of(one);
  held_.now += size_of(one);
  auto behind = waiting_.end();
  while (behind != waiting_.begin() && was_sent_before(segment, std::prev(behind)->head)) --behind;
  waiting_.insert(behind, std::move(one));
}

bool WaitingSegments::is_overdue(Timestamp now) const {
  if (waiting_.empty()) return false;
  return waiting_.size() > kMax || held_here_ > HeldOctets::kMaxOfHalf || held_.now > HeldOctets::kMax ||
         now - waiting_.front().head.time > kMaxTime;
}

WaitingSegments::Waiting WaitingSegments::take() {
  Waiting first = std::move(waiting_.front());
  waiting_.pop_front();
  held_here_ -= size_of(first);
  held_.now -= size_of(first);
  return first;
}

TcpSegment WaitingSegments::Waiting::segment() {
  comment_views.assign(comments.begin(), comments.end());
  TcpSegment whole = head;
  whole.payload = octets;
  whole.comments = comment_views;
  return whole;
}

}  // namespace weft::apps::dissect
