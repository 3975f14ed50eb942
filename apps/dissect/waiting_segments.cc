#include "apps/dissect/waiting_segments.h"

#include <utility>

namespace weft::apps::dissect {

std::size_t WaitingSegments::size_of(const Waiting& waiting) {
  std::size_t size = sizeof(Waiting) + waiting.octets.size();
  for (const std::string& comment : waiting.comments) size += sizeof(std::string) + comment.size();
  return size;
}

void WaitingSegments::hold(const TcpSegment& segment) {
  Waiting& one = waiting_.emplace_back(
      Waiting{.head = segment, .octets = {segment.payload.begin(), segment.payload.end()}, .comments = {}});
  one.comments.assign(segment.comments.begin(), segment.comments.end());
  held_here_ += size_of(one);
  held_.now += size_of(one);
}

bool WaitingSegments::is_overdue(Timestamp now) const {
  if (waiting_.empty()) return false;
  return waiting_.size() > kMax || held_here_ > HeldOctets::kMaxOfHalf || held_.now > HeldOctets::kMax ||
         now - waiting_.front().head.time > kMaxTime;
}

WaitingSegments::Waiting WaitingSegments::take() {
  Waiting oldest = std::move(waiting_.front());
  waiting_.pop_front();
  held_here_ -= size_of(oldest);
  held_.now -= size_of(oldest);
  return oldest;
}

TcpSegment WaitingSegments::Waiting::segment() {
  comment_views.assign(comments.begin(), comments.end());
  TcpSegment whole = head;
  whole.payload = octets;
  whole.comments = comment_views;
  return whole;
}

}  // namespace weft::apps::dissect
