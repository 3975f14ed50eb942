#include "apps/dissect/connection_decoder.h"

#include "apps/dissect/layer_writer.h"
#include "apps/dissect/mpa_layer.h"
#include "apps/dissect/startup_rules.h"

namespace weft::apps::dissect {

ConnectionDecoder::ConnectionDecoder(const Options& options, Listener& listener, Numbers& numbers, HeldOctets& held,
                                     const TcpSegment& first)
    : options_(options),
      listener_(listener),
      numbers_(numbers),
      ends_{first.src, first.dst},
      client_(first.syn && first.has_ack ? 1 : 0),
      rpc_(options),
      rdmap_(options, rpc_),
      first_(*this, 0, held),
      second_(*this, 1, held) {}

void ConnectionDecoder::on_segment(const TcpSegment& segment) {
  last_ = segment.time;
  const int end = end_of(segment);
  Direction& from = direction(end);
  if (segment.syn) {
    if (from.tcp.is_foreign_syn(segment.seq)) return;
    on_syn(segment, from, direction(1 - end));
    rpc_.on_sides_known();
  }
  if (segment.has_ack) direction(1 - end).tcp.on_ack(segment.ack);
  watch_order(segment, from, direction(1 - end));
  from.tcp.on_segment(segment, from.mpa);
  if (from.tcp.is_disordered()) rdmap_.on_disorder();
  const auto end_seq = segment.seq + static_cast<std::uint32_t>(segment.payload_len);
  if (segment.fin && from.tcp.is_complete(end_seq)) from.mpa.end({segment.packet, segment.time});
  if (segment.fin || segment.rst) tell_end(segment, end);
}

void ConnectionDecoder::on_syn(const TcpSegment& segment, Direction& from, Direction& to) {
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

// A segment that acknowledges octets which the capture does not have yet shows that it missed a packet of the other
// side, before that side's next segment does.
void ConnectionDecoder::watch_order(const TcpSegment& segment, Direction& from, const Direction& to) {
  const auto is_behind = [](std::uint32_t a, std::uint32_t b) { return seq_distance(b, a) > 0; };
  if (segment.has_ack && to.sent && is_behind(segment.ack, *to.sent)) rdmap_.on_disorder();
  const std::uint32_t end =
      segment.seq + static_cast<std::uint32_t>(segment.payload_len) + (segment.syn ? 1 : 0) + (segment.fin ? 1 : 0);
  if (!from.sent || is_behind(end, *from.sent)) from.sent = end;
}

void ConnectionDecoder::finish() {
  first_.tcp.finish(first_.mpa);
  second_.tcp.finish(second_.mpa);
  if (id_ != 0) {
    listener_.on_connection_end(
        id_, {.client = direction(client_).tcp.counters(), .server = direction(1 - client_).tcp.counters()});
  }
  id_ = 0;
}

void ConnectionDecoder::tell_end(const TcpSegment& segment, int end) {
  has_fin_[static_cast<std::size_t>(end)] |= segment.fin;
  was_reset_ |= segment.rst;
  if (id_ == 0 || (told_end_ && segment.fin)) return;
  told_end_ = true;
  begin_frame(end, {segment.packet, segment.time}, {});
  LayerWriter(frame_, LayerKind::kTcp, options_)
      .line(FMT_COMPILE("{}"), segment.rst ? "TCP connection reset" : "TCP end");
  listener_.on_frame(frame_);
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
  of_.frame_.facts.is_startup = true;
  of_.listener_.on_frame(of_.frame_);
}

void ConnectionDecoder::Direction::on_bad_startup_frame(const mpa::BadFrame& why, ConstBytes wire,
                                                        const Arrival& arrival) {
  of_.begin_frame(end_, arrival, wire);
  tell_bad_startup_frame(why, of_.options_, of_.frame_);
  of_.listener_.on_frame(of_.frame_);
}

void ConnectionDecoder::Direction::on_fpdu(const Fpdu& fpdu, const Arrival& arrival) {
  of_.begin_frame(end_, arrival, fpdu.wire);
  of_.frame_.wire_len = fpdu.wire_len;
  of_.frame_.ulpdu = fpdu.ulpdu;
  tell_fpdu(fpdu, of_.options_, of_.frame_);
  of_.rdmap_.on_fpdu(of_.side_of(end_), fpdu, of_.frame_);
  of_.listener_.on_frame(of_.frame_);
}

void ConnectionDecoder::Direction::on_empty_ulpdu(const Arrival& arrival) {
  of_.begin_frame(end_, arrival, {});
  LayerWriter(of_.frame_, LayerKind::kMpa, of_.options_).text("a ULPDU_Length of 0");
  of_.frame_.findings.push_back(
      {"MPA-3-09", "a ULPDU has at least one octet", "the receiver ends the connection: nothing after it can be read"});
  of_.listener_.on_frame(of_.frame_);
}

void ConnectionDecoder::Direction::on_cut_short(ConstBytes wire, const Arrival& arrival) {
  of_.begin_frame(end_, arrival, wire);
  LayerWriter(of_.frame_, LayerKind::kMpa, of_.options_)
      .line(FMT_COMPILE("the end of TCP inside an FPDU, behind {} bytes"), wire.size());
  of_.frame_.findings.push_back(
      {"MPA-8-03", "the connection ends inside an FPDU", "the receiver drops the part of the FPDU"});
  of_.listener_.on_frame(of_.frame_);
}

void ConnectionDecoder::Direction::on_skipped(std::uint64_t len, const Arrival& arrival) {
  of_.rdmap_.on_gap(of_.side_of(end_));
  if (len == 0 && of_.id_ != 0) return;
  of_.begin_frame(end_, arrival, {});
  LayerWriter(of_.frame_, LayerKind::kTcp, of_.options_)
      .line(FMT_COMPILE("{} bytes are missing in the capture or unreadable"), len);
  of_.listener_.on_frame(of_.frame_);
}

}  // namespace weft::apps::dissect
