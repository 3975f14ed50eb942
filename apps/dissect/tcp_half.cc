#include "apps/dissect/tcp_half.h"

#include <algorithm>
#include <utility>

namespace weft::apps::dissect {

namespace {

// The memory of an early segment beside its octets.
constexpr std::size_t kEarlyOverhead = 128;

}  // namespace

bool TcpHalf::begin(std::uint32_t first) {
  if (started_) return false;
  started_ = saw_start_ = true;
  first_ = next_ = first;
  return true;
}

// A SYN can come behind the first octets if the capture has packets out of order.
bool TcpHalf::is_foreign_syn(std::uint32_t seq) const {
  constexpr std::int64_t kLate = 65536;
  if (!started_) return false;
  const std::int64_t behind = seq_distance(seq + 1, first_);
  return behind < 0 || behind > (saw_start_ ? 0 : kLate);
}

void TcpHalf::on_segment(const TcpSegment& segment, Sink& sink) {
  saw_syn_ |= segment.syn;
  if (segment.syn && !begin(segment.seq + 1)) return;
  if (segment.payload_len == 0) return;
  if (!started_) {
    started_ = true;
    first_ = next_ = segment.seq;
  }
  const std::int64_t ahead = seq_distance(next_, segment.syn ? segment.seq + 1 : segment.seq);
  const auto len = static_cast<std::int64_t>(segment.payload_len);
  if (ahead + len <= 0) {
    ++counters_.retransmitted;
    return;
  }
  if (ahead > 0) {
    ++counters_.out_of_order;
    disordered_ = true;
    hold(segment, position_ + static_cast<std::uint64_t>(ahead));
    if (is_hole_lost()) pass_hole(sink);
    return;
  }
  const auto old = static_cast<std::size_t>(-ahead);
  const ConstBytes fresh = segment.payload.subspan(std::min(old, segment.payload.size()));
  deliver(fresh, segment.payload_len - old, {segment.packet, segment.time}, sink);
  drain(sink);
}

void TcpHalf::deliver(ConstBytes octets, std::size_t len, const Arrival& arrival, Sink& sink) {
  position_ += len;
  next_ += static_cast<std::uint32_t>(len);
  counters_.octets += octets.size();
  if (!octets.empty()) sink.on_octets(octets, arrival);
  if (octets.size() == len) return;
  has_gap_ = true;
  counters_.cut += len - octets.size();
  sink.on_missing(len - octets.size(), arrival);
}

void TcpHalf::hold(const TcpSegment& segment, std::uint64_t at) {
  const auto existing = early_.find(at);
  if (existing != early_.end() && existing->second.len >= segment.payload_len) return;
  Early early{{segment.payload.begin(), segment.payload.end()}, segment.payload_len, {segment.packet, segment.time}};
  const std::size_t before = existing == early_.end() ? 0 : existing->second.octets.size() + kEarlyOverhead;
  const std::size_t after = early.octets.size() + kEarlyOverhead;
  early_.insert_or_assign(at, std::move(early));
  held_here_ += after - before;
  held_.now += after - before;
}

// A hole that the peer acknowledged was received there and is missing here. Without that, the segment may still come,
// as long as there is room for the segments behind it.
bool TcpHalf::is_hole_lost() const {
  if (early_.empty()) return false;
  if (held_here_ > HeldOctets::kMaxOfHalf || held_.now > HeldOctets::kMax) return true;
  const std::uint64_t hole = early_.begin()->first - position_;
  return has_ack_ && seq_distance(acked_, next_ + static_cast<std::uint32_t>(hole)) <= 0;
}

bool TcpHalf::is_waiting(std::uint32_t end) const {
  if (!early_.empty()) return true;
  if (!started_ || seq_distance(next_, end) <= 0) return false;
  return !has_ack_ || seq_distance(acked_, end) > 0;
}

void TcpHalf::pass_hole(Sink& sink) {
  const std::uint64_t hole = early_.begin()->first - position_;
  has_gap_ = true;
  counters_.lost += hole;
  sink.on_missing(hole, early_.begin()->second.arrival);
  position_ += hole;
  next_ += static_cast<std::uint32_t>(hole);
  drain(sink);
}

void TcpHalf::give_up(std::uint32_t end, const Arrival& arrival, Sink& sink) {
  while (lacks_octets_before(end)) {
    const auto hole = static_cast<std::uint64_t>(seq_distance(next_, end));
    if (!early_.empty() && early_.begin()->first - position_ <= hole) {
      pass_hole(sink);
      continue;
    }
    has_gap_ = true;
    counters_.lost += hole;
    position_ += hole;
    next_ = end;
    sink.on_missing(hole, arrival);
  }
}

void TcpHalf::drain(Sink& sink) {
  while (!early_.empty() && early_.begin()->first <= position_) {
    const auto node = early_.extract(early_.begin());
    const Early& early = node.mapped();
    held_here_ -= early.octets.size() + kEarlyOverhead;
    held_.now -= early.octets.size() + kEarlyOverhead;
    const std::uint64_t old = position_ - node.key();
    if (old >= early.len) {
      ++counters_.retransmitted;
      continue;
    }
    const ConstBytes octets = early.octets;
    deliver(octets.subspan(std::min<std::size_t>(old, octets.size())), early.len - old, early.arrival, sink);
  }
}

void TcpHalf::finish(Sink& sink) {
  while (!early_.empty()) pass_hole(sink);
}

void TcpHalf::drop_held() {
  held_.now -= held_here_;
}

}  // namespace weft::apps::dissect
