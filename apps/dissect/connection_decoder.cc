#include "apps/dissect/connection_decoder.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "apps/common/option_words.h"
#include "apps/common/printable.h"
#include "apps/dissect/effect.h"
#include "apps/dissect/finding_places.h"
#include "apps/dissect/layer_writer.h"
#include "apps/dissect/mpa_layer.h"
#include "apps/dissect/startup_rules.h"
#include "verbs-shim/soft/trace.h"

namespace weft::apps::dissect {

namespace {

// A trace of ours has a note in the comment of each packet that it cut. The frame says the same.
std::string_view without_cut_note(std::string_view text) {
  static const std::string notes[] = {in_options(verbs::kTraceCutNote), verbs::kTraceCutNote};
  for (const std::string& note : notes) {
    if (!text.starts_with(note)) continue;
    text.remove_prefix(note.size());
    if (text.starts_with("; ")) text.remove_prefix(2);
    break;
  }
  return text;
}

// The sequence number behind the last octet.
std::uint32_t end_seq(const TcpSegment& segment) {
  return segment.seq + static_cast<std::uint32_t>(segment.payload_len);
}

// The first `num` octets, and the rest with everything else that the segment has.
std::pair<TcpSegment, TcpSegment> split(const TcpSegment& segment, std::size_t num) {
  TcpSegment front = segment, rest = segment;
  front.payload = segment.payload.first(std::min(num, segment.payload.size()));
  front.payload_len = num;
  front.fin = false;
  front.comments = {};
  rest.seq += static_cast<std::uint32_t>(num);
  rest.payload = segment.payload.subspan(front.payload.size());
  rest.payload_len -= num;
  return {front, rest};
}

}  // namespace

ConnectionDecoder::ConnectionDecoder(const Options& options, Listener& listener, Numbers& numbers, Held& held,
                                     const TcpSegment& first)
    : options_(options),
      listener_(listener),
      numbers_(numbers),
      frame_(held.frame),
      ends_{first.src, first.dst},
      client_(first.syn && first.has_ack ? 1 : 0),
      rpc_(options, held.header, held.calls, held.messages, held.entries),
      rdmap_(options, rpc_, held.messages, held.entries),
      first_(*this, 0, held.segments),
      second_(*this, 1, held.segments) {}

void ConnectionDecoder::on_segment(const TcpSegment& segment) {
  last_ = segment.time;
  last_packet_ = segment.packet;
  const int end = end_of(segment);
  Direction& from = direction(end);
  if (segment.rst && is_stray_reset(segment, from)) return;
  if (segment.syn) {
    if (from.tcp.is_foreign_syn(segment.seq)) return;
    on_syn(segment, from, direction(1 - end));
    rpc_.on_sides_known();
  }
  if (segment.has_ack) direction(1 - end).tcp.on_ack(segment.ack);
  note_sent(segment, from);
  if (from.tcp.is_silent()) note_late_side(segment, end);
  if (is_waiting()) {
    if (segment.rst || first_.waiting.is_overdue(last_) || second_.waiting.is_overdue(last_)) take_all_waiting();
    pass_lost(segment, end);
    if (const std::size_t num = num_older(segment, end); num != 0) {
      const auto [older, rest] = split(segment, num);
      take(older, end);
      take_waiting();
      return take_or_hold(rest, end);
    }
  }
  take_or_hold(segment, end);
}

void ConnectionDecoder::take_or_hold(const TcpSegment& segment, int end) {
  if (has_to_wait(segment, end)) return direction(end).waiting.hold(segment);
  take(segment, end);
  take_waiting();
}

void ConnectionDecoder::take(const TcpSegment& segment, int end) {
  Direction& from = direction(end);
  from.tcp.on_segment(segment, from.mpa);
  if (from.late_until && !lacks_octets_before(end, *from.late_until)) {
    from.late_until.reset();
    rdmap_.on_caught_up(side_of(end));
  }
  if (from.mpa.has_begun()) from.note_first_octets();
  if (segment.fin || segment.rst) on_end(segment, end);
  if (!ends_waiting_.empty()) tell_ends(false);
  if (!segment.comments.empty()) tell_comments(segment, end);
  tell_unjudged(segment.packet);
}

void ConnectionDecoder::on_syn(const TcpSegment& segment, Direction& from, Direction& to) {
  from.saw_syn = true;
  from.mpa.begin_at_start();
  if (segment.has_ack && to.tcp.begin(segment.ack)) to.mpa.begin_at_start();
}

// A SYN alone proves nothing: a peer answers a stray one by a challenge ACK (RFC 5961 section 4). So it begins another
// connection only if this one has ended, or if the peer is not in the capture. A SYN-ACK is the peer's consent.
bool ConnectionDecoder::is_over(const TcpSegment& segment) const {
  const int end = end_of(segment);
  const Direction& from = direction(end);
  if (segment.syn) {
    const bool can_begin =
        segment.has_ack || has_ended() || has_fin_[static_cast<std::size_t>(end)] || !direction(1 - end).sent;
    return can_begin && from.tcp.is_foreign_syn(segment.seq);
  }
  if (!has_ended() || segment.payload_len == 0 || !from.sent) return false;
  // Retransmissions and octets that were under way when a RST came are near the last octet.
  constexpr std::int64_t kBehind = 1 << 24, kAhead = 65535;
  const std::int64_t ahead = seq_distance(*from.sent, segment.seq);
  return ahead < -kBehind || ahead > kAhead;
}

// A RST counts only at the next octet of its side (RFC 9293 section 3.5.2, RFC 5961 section 3): a receiver ignores any
// other RST. The capture may lack the last octets of that side, or their acknowledgment.
bool ConnectionDecoder::is_stray_reset(const TcpSegment& segment, const Direction& from) {
  constexpr std::int64_t kNear = 65535;
  const auto is_near = [&segment](std::uint32_t due) { return std::abs(seq_distance(due, segment.seq)) <= kNear; };
  const auto acked = from.tcp.acked();
  return from.sent && !is_near(*from.sent) && !(acked && is_near(*acked));
}

void ConnectionDecoder::note_sent(const TcpSegment& segment, Direction& from) {
  const std::uint32_t end =
      segment.seq + static_cast<std::uint32_t>(segment.payload_len) + (segment.syn ? 1 : 0) + (segment.fin ? 1 : 0);
  if (!from.sent || seq_distance(*from.sent, end) > 0) from.sent = end;
}

// What a side sends may answer the octets that its segment acknowledges. If the capture does not have them yet, it has
// the packets of the two sides in another order than they came, or it has lost some. Octets that have come before
// answer nothing.
bool ConnectionDecoder::has_to_wait(const TcpSegment& segment, int end) const {
  if ((segment.payload_len == 0 && !segment.fin) || segment.syn || segment.rst) return false;
  if (!segment.fin && direction(end).tcp.has_octets_before(end_seq(segment))) return false;
  return segment.has_ack && lacks_octets_before(1 - end, segment.ack);
}

// A FIN has a sequence number of its own.
bool ConnectionDecoder::lacks_octets_before(int end, std::uint32_t ack) const {
  const std::uint32_t fin = has_fin_[static_cast<std::size_t>(end)] ? 1 : 0;
  return direction(end).tcp.lacks_octets_before(ack - fin);
}

// Returns how many of the first octets of a segment are older than the segment that waits at the other side: the two
// acknowledge each other. These octets come again, together with newer ones.
std::size_t ConnectionDecoder::num_older(const TcpSegment& segment, int end) const {
  const WaitingSegments& other = direction(1 - end).waiting;
  if (other.empty() || !segment.has_ack || segment.syn) return 0;
  const TcpSegment& first = other.front();
  const std::int64_t num = seq_distance(segment.seq, first.ack);
  const bool is_part = num > 0 && num < static_cast<std::int64_t>(segment.payload_len);
  return is_part && seq_distance(end_seq(first), segment.ack) >= 0 ? static_cast<std::size_t>(num) : 0;
}

// A segment that begins behind octets which waiting ones acknowledge shows that these octets are lost.
void ConnectionDecoder::pass_lost(const TcpSegment& segment, int end) {
  if (segment.payload_len == 0 && !segment.fin) return;
  Direction& from = direction(end);
  const WaitingSegments& other = direction(1 - end).waiting;
  while (!other.empty() && seq_distance(other.front().ack, segment.seq) >= 0) {
    const std::uint32_t lost_until = other.front().ack;
    // Octets that are here are not lost.
    while (!from.waiting.empty() && seq_distance(from.waiting.front().seq, lost_until) > 0) take_first_waiting(end);
    from.tcp.give_up(lost_until, {segment.packet, segment.time}, from.mpa);
    take_waiting();
  }
}

// Takes the segments whose acknowledged octets have come.
void ConnectionDecoder::take_waiting() {
  const auto take_ready = [this](int end) {
    const WaitingSegments& waiting = direction(end).waiting;
    if (waiting.empty() || lacks_octets_before(1 - end, waiting.front().ack)) return false;
    take_first_waiting(end);
    return true;
  };
  while (take_ready(0) || take_ready(1)) continue;
}

// Takes a segment, whether its acknowledged octets have come or not.
void ConnectionDecoder::take_first_waiting(int end) {
  auto first = direction(end).waiting.take();
  const TcpSegment segment = first.segment();
  if (lacks_octets_before(1 - end, segment.ack)) overtake(1 - end, segment.ack);
  take(segment, end);
}

// The older segment by the times of the capture goes first.
void ConnectionDecoder::take_all_waiting() {
  while (is_waiting()) {
    const bool is_second = first_.waiting.empty() ||
                           (!second_.waiting.empty() && second_.waiting.front().time < first_.waiting.front().time);
    take_first_waiting(is_second ? 1 : 0);
    take_waiting();
  }
}

// No segment waits for a side as long as the capture has nothing of that side. So the other side may have answered the
// first octets of this one already.
void ConnectionDecoder::note_late_side(const TcpSegment& segment, int end) {
  if (!segment.syn && segment.payload_len == 0) return;
  const auto acked = direction(end).tcp.acked();
  if (acked && seq_distance(segment.seq + (segment.syn ? 1 : 0), *acked) > 0) overtake(end, *acked);
}

// The other side has answered octets before `ack`. The capture has them later, or lacks them.
void ConnectionDecoder::overtake(int end, std::uint32_t ack) {
  Direction& late = direction(end);
  if (!late.late_until || seq_distance(*late.late_until, ack) > 0) late.late_until = ack;
  rdmap_.on_overtaken(side_of(end));
}

void ConnectionDecoder::finish() {
  take_all_waiting();
  first_.tcp.finish(first_.mpa);
  second_.tcp.finish(second_.mpa);
  tell_ends(true);
  for (Direction* each : {&first_, &second_}) {
    if (id_ != 0) each->mpa.finish();
  }
  tell_unjudged(last_packet_);
  if (id_ != 0) {
    listener_.on_connection_end(
        id_, {.client = direction(client_).tcp.counters(), .server = direction(1 - client_).tcp.counters()});
  }
  id_ = 0;
}

void ConnectionDecoder::on_end(const TcpSegment& segment, int end) {
  bool& has_fin = has_fin_[static_cast<std::size_t>(end)];
  const bool is_new = segment.rst ? !was_reset_ : !has_fin;
  has_fin |= segment.fin;
  was_reset_ |= segment.rst;
  if (!is_new) return;
  ends_waiting_.push_back({{segment.packet, segment.time}, end, segment.rst, end_seq(segment)});
}

// A FIN is told behind the octets before it, and a RST behind all octets of both sides. `all`: nothing more comes.
void ConnectionDecoder::tell_ends(bool all) {
  std::size_t num_told = 0;
  for (const End& end : ends_waiting_) {
    const bool waits =
        end.reset ? first_.tcp.is_holding() || second_.tcp.is_holding() : direction(end.from).tcp.is_waiting(end.seq);
    if (waits && !all) break;
    tell_end(end);
    ++num_told;
  }
  ends_waiting_.erase(ends_waiting_.begin(), ends_waiting_.begin() + static_cast<std::ptrdiff_t>(num_told));
}

void ConnectionDecoder::tell_end(const End& end) {
  Direction& from = direction(end.from);
  if (!end.reset && from.tcp.is_complete(end.seq)) from.mpa.end(end.arrival);
  if (id_ == 0 || (told_end_ && !end.reset)) return;
  told_end_ = true;
  begin_frame(end.from, end.arrival, {});
  LayerWriter(frame_, LayerKind::kTcp, options_)
      .line(FMT_COMPILE("{}"), end.reset ? "TCP connection reset" : "TCP end");
  tell_frame();
}

// Before its first frame, nothing shows that a connection is iWARP.
void ConnectionDecoder::tell_comments(const TcpSegment& segment, int end) {
  if (id_ == 0) return;
  for (const std::string_view whole : segment.comments) {
    const std::string_view text = without_cut_note(whole);
    if (text.empty() && !whole.empty()) continue;
    const bool is_cut = text.size() > Comment::kMaxText;
    listener_.on_comment({.connection = id_,
                          .arrival = {segment.packet, segment.time},
                          .from = side_of(end),
                          .text = printable(text.substr(0, Comment::kMaxText)) + (is_cut ? " (cut)" : "")});
  }
}

void ConnectionDecoder::tell_unjudged(std::uint64_t packet) {
  if (both_sides_.was_told) return;  // these rules judge the memory, too
  if (missing_octets_.why.empty()) {
    missing_octets_.why = rdmap_.why_uncertain();
    if (missing_octets_.why.empty()) missing_octets_.why = rpc_.why_uncertain();
    missing_octets_.since = packet;
  }
  if (both_sides_.why.empty()) {
    both_sides_.why = rdmap_.why_unjudged();
    if (both_sides_.why.empty()) both_sides_.why = rpc_.why_unjudged();
    both_sides_.since = packet;
  }
  if (offered_memory_.why.empty()) {
    offered_memory_.why = rpc_.why_unjudged_memory();
    offered_memory_.since = packet;
  }
  tell_silence(offered_memory_);
  tell_silence(both_sides_);
  tell_silence(missing_octets_);
}

// Before its first frame, nothing shows that a connection is iWARP.
void ConnectionDecoder::tell_silence(Silence& silence) {
  if (silence.why.empty() || id_ == 0 || std::exchange(silence.was_told, true)) return;
  listener_.on_unjudged({.connection = id_, .packet = silence.since, .what = silence.what, .why = silence.why});
}

void ConnectionDecoder::begin_frame(int end, const Arrival& arrival, ConstBytes wire) {
  if (id_ == 0) {
    id_ = ++numbers_.connections;
    listener_.on_connection({.id = id_,
                             .client = endpoint_str(ends_[static_cast<std::size_t>(client_)]),
                             .server = endpoint_str(ends_[static_cast<std::size_t>(1 - client_)]),
                             .saw_start = first_.tcp.saw_start()});
  }
  frame_.number = ++numbers_.frames;
  frame_.arrival = arrival;
  frame_.connection = id_;
  frame_.from = side_of(end);
  frame_.wire = wire;
  frame_.wire_len = wire.size();
  frame_.ulpdu = frame_.message = {};
  frame_.layers.clear();
  frame_.findings.clear();
  frame_.facts = {};
}

void ConnectionDecoder::tell_frame() {
  if (!frame_.findings.empty() || frame_.facts.is_terminate) {
    place_findings(frame_);
    faults_.on_frame(frame_, rdmap_.record(other(frame_.from)));
  }
  listener_.on_frame(frame_);
}

void ConnectionDecoder::settle_terms() {
  const auto rejects = [](const std::optional<mpa::StartupFrame>& startup) {
    return startup && startup->kind == mpa::FrameKind::kReply && startup->r;
  };
  if (rejects(first_.startup) || rejects(second_.startup)) {
    // TCP goes on without MPA (MPA-7.1.2-06, MPA-7.1.2-12).
    first_.mpa.leave();
    second_.mpa.leave();
    return;
  }
  if (!first_.startup || !second_.startup) return;
  first_.mpa.set_terms(terms_of(*first_.startup, *second_.startup));
  second_.mpa.set_terms(terms_of(*second_.startup, *first_.startup));
  const auto private_data_of = [](const mpa::StartupFrame& frame) {
    return rpcrdma::parse_private_data(mpa::ulp_private_data(frame));
  };
  rpc_.on_private_data(private_data_of(*direction(client_).startup), private_data_of(*direction(1 - client_).startup));
  rdmap_.on_start(side_of(0), start_of(*first_.startup, *second_.startup));
  rdmap_.on_start(side_of(1), start_of(*second_.startup, *first_.startup));
}

void ConnectionDecoder::Direction::on_startup_frame(const mpa::StartupFrame& frame, ConstBytes wire,
                                                    const Arrival& arrival) {
  startup = frame;
  if (of_.id_ == 0) of_.client_ = frame.kind == mpa::FrameKind::kRequest ? end_ : 1 - end_;
  of_.rdmap_.on_startup_frame(of_.side_of(end_));
  of_.rpc_.on_sides_known();
  of_.settle_terms();
  of_.begin_frame(end_, arrival, wire);
  tell_startup_frame(frame, of_.options_, of_.frame_);
  const auto& peer = of_.direction(1 - end_).startup;
  judge_startup_frame(frame, peer ? &*peer : nullptr, of_.frame_);
  if (frame.kind == mpa::FrameKind::kReply) judge_early_reply(of_.frame_);
  of_.frame_.facts.is_startup = true;
  of_.tell_frame();
  if (!peer) return;
  // FPDUs that came before this frame waited for its terms.
  Direction& waiting = of_.direction(1 - end_);
  // The acknowledgment of an early FPDU shows the order. Without one the order is not known.
  if (waiting.mpa.has_begun() && !waiting.is_early_) of_.rdmap_.on_early_fpdu();
  waiting.mpa.resume(arrival);
}

// The packets of the two sides can be captured in another order than they were sent. But a Reply whose segment
// acknowledges no octet of the other side was sent before its Request came.
void ConnectionDecoder::Direction::judge_early_reply(Frame& frame) const {
  const Direction& peer = of_.direction(1 - end_);
  if (tcp.is_disordered() || !peer.saw_syn || !peer.tcp.is_unacknowledged()) return;
  frame.find("MPA-7.1.2-03", "a Reply before the Request", "the initiator takes it for the answer to its Request");
}

// An initiator that acknowledges no octet of the other side when it sends its first FPDU has no Reply.
void ConnectionDecoder::Direction::note_first_octets() {
  if (std::exchange(has_begun_, true)) return;
  const Direction& peer = of_.direction(1 - end_);
  const bool is_initiator = startup && startup->kind == mpa::FrameKind::kRequest;
  is_early_ = is_initiator && !tcp.is_disordered() && peer.saw_syn && peer.tcp.is_unacknowledged();
}

// Tells the frame of octets behind the startup frame.
void ConnectionDecoder::Direction::tell_octets() {
  note_first_octets();
  if (std::exchange(is_early_, false)) {
    of_.frame_.find("MPA-7.1.2-10", "bytes behind the Request, before the Reply came",
                    may_end("the responder may not be ready for FPDUs, or end the connection"));
  }
  of_.tell_frame();
}

void ConnectionDecoder::Direction::on_bad_startup_frame(const mpa::BadFrame& why, ConstBytes wire,
                                                        const Arrival& arrival) {
  of_.begin_frame(end_, arrival, wire);
  tell_bad_startup_frame(why, of_.options_, of_.frame_);
  of_.tell_frame();
}

void ConnectionDecoder::Direction::on_fpdu(const Fpdu& fpdu, const Arrival& arrival) {
  of_.begin_frame(end_, arrival, fpdu.wire);
  const Direction& other = of_.direction(1 - end_);
  if (other.mpa.has_begun()) of_.rdmap_.on_first_octets(of_.side_of(1 - end_));
  of_.rdmap_.set_unread(of_.side_of(1 - end_), other.mpa.is_inside_fpdu() || other.tcp.is_holding());
  of_.frame_.wire_len = fpdu.wire_len;
  of_.frame_.ulpdu = fpdu.ulpdu;
  tell_fpdu(fpdu, of_.options_, of_.frame_);
  of_.rdmap_.on_fpdu(of_.side_of(end_), fpdu, of_.frame_);
  tell_octets();
}

void ConnectionDecoder::Direction::on_empty_ulpdu(ConstBytes wire, bool bad_marker, const Arrival& arrival) {
  of_.begin_frame(end_, arrival, wire);
  tell_empty_ulpdu(bad_marker, of_.options_, of_.frame_);
  tell_octets();
  of_.rdmap_.on_disorder("nothing can be read behind a ULPDU_Length of 0");
}

void ConnectionDecoder::Direction::on_cut_short(ConstBytes wire, const Arrival& arrival) {
  of_.begin_frame(end_, arrival, wire);
  LayerWriter(of_.frame_, LayerKind::kMpa, of_.options_)
      .line(FMT_COMPILE("the end of TCP inside an FPDU, behind {} bytes"), wire.size());
  of_.frame_.findings.push_back(
      {"MPA-8-03", "the connection ends inside an FPDU", "the receiver drops the part of the FPDU"});
  tell_octets();
}

void ConnectionDecoder::Direction::on_unfinished(ConstBytes wire, const Arrival& arrival) {
  of_.begin_frame(end_, arrival, wire);
  LayerWriter(of_.frame_, LayerKind::kMpa, of_.options_)
      .line(FMT_COMPILE("the first {} bytes of an FPDU; the rest is not in the capture"), wire.size());
  tell_octets();
}

void ConnectionDecoder::Direction::on_gap() {
  if (!startup && !saw_syn) of_.rdmap_.on_disorder("the capture begins in the middle of the connection");
  of_.rdmap_.on_gap(of_.side_of(end_));
}

void ConnectionDecoder::Direction::on_skipped(std::uint64_t len, const Arrival& arrival) {
  on_gap();
  if (len == 0) return;  // a capture that begins with an FPDU, in the middle of a connection
  of_.begin_frame(end_, arrival, {});
  LayerWriter(of_.frame_, LayerKind::kTcp, of_.options_)
      .line(FMT_COMPILE("{} bytes are missing in the capture or unreadable"), len);
  tell_octets();
}

void ConnectionDecoder::Direction::on_damaged(std::uint64_t len, const Arrival& arrival) {
  on_gap();
  of_.begin_frame(end_, arrival, {});
  tell_damaged(len, of_.options_, of_.frame_);
  tell_octets();
}

}  // namespace weft::apps::dissect
