#include "rdmap/transmitter.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "ddp/segment.h"
#include "mpa/fpdu.h"
#include "rdmap/header.h"

namespace weft::rdmap {

namespace {

Opcode send_opcode(const SendWr& wr) {
  if (wr.op == SendOp::kSendInvalidate) return wr.solicited ? Opcode::kSendSeInvalidate : Opcode::kSendInvalidate;
  return wr.solicited ? Opcode::kSendSe : Opcode::kSend;
}

ddp::UntaggedHeader untagged_header(Opcode opcode, ddp::Msn msn) {
  ddp::UntaggedHeader h;
  h.rsvd_ulp = control_octet(opcode);
  h.qn = queue_of(opcode);
  h.msn = msn;
  return h;
}

ddp::TaggedHeader tagged_header(Opcode opcode, ddp::Stag stag, std::uint64_t to) {
  ddp::TaggedHeader h;
  h.rsvd_ulp = control_octet(opcode);
  h.stag = stag;
  h.to = to;
  return h;
}

// MPA-C.1-02: DV and RV are the same number, in every ULPDU of a connection.
template <typename Header>
Header versioned(Header h, std::uint8_t version) {
  Control control = parse_control(h.rsvd_ulp);
  control.rv = version;
  h.rsvd_ulp = emit_control(control);
  h.dv = version;
  return h;
}

}  // namespace

void Transmitter::open(const mpa::Agreement& agreement, ddp::StreamScope scope, std::size_t fpdu_limit, bool hold) {
  writer_.emplace(agreement.crc, agreement.markers_tx);
  markers_ = agreement.markers_tx;
  version_ = agreement.version;
  scope_ = scope;
  held_ = hold;
  if (fpdu_limit > 0) max_ulpdu_ = mpa::mulpdu(fpdu_limit, markers_);
}

void Transmitter::stop() {
  assert(!batch_open_);
  stopped_ = true;
  rest_mark_.reset();  // whoever stops us ends all requests in another way
}

void Transmitter::terminate(const TerminateMessage& message) {
  stop();
  if (terminate_ != TerminateState::kNone) return;  // one per stream, the first error (RDMAP-7.1-05)
  terminate_ = TerminateState::kQueued;
  terminate_message_ = message;
}

bool Transmitter::wants_tx() const {
  if (!writer_) return false;
  if (mid_fpdu() || terminate_ == TerminateState::kQueued) return true;
  if (stopped_ || held_) return false;
  return cursor_.source != Source::kNone || reads_.holds(cursor_.next_response) ||
         requests_.may_leave(cursor_.next_request, 0);
}

std::optional<Transmitter::Fault> Transmitter::frame(std::size_t emss, std::size_t max_octets) {
  if (batch_open_) on_tx(0);
  if (!writer_) return std::nullopt;
  batch_open_ = true;
  batch_begin_ = cursor_;
  resolved_ = {};
  fault_.reset();
  if (terminate_ == TerminateState::kQueued) {
    frame_terminate();
  } else if (!stopped_ && !held_) {
    const std::size_t mulpdu = std::min(mpa::mulpdu(emss, markers_), max_ulpdu_);
    Step step = Step::kFramed;
    while (step == Step::kFramed && marks_.size() < kMaxFpdus) {
      const Cursor before = cursor_;
      step = frame_one(mulpdu, max_octets);
      if (step != Step::kFramed) cursor_ = before;
    }
    // Behind other FPDUs a fault waits: they leave first, and some of them may have to be framed again.
    if (!marks_.empty()) fault_.reset();
  }
  if (writer_->pending_octets() == 0) batch_open_ = false;
  if (fault_) batch_open_ = false;
  return fault_;
}

bool Transmitter::next_message() {
  const bool response = reads_.holds(cursor_.next_response);
  const bool request = requests_.may_leave(cursor_.next_request, reads_in_batch_);
  if (!response && !request) return false;
  if (response && (cursor_.response_next || !request)) {
    begin_response(cursor_.next_response++);
    cursor_.response_next = false;
    return true;
  }
  cursor_.response_next = true;
  return begin_request(cursor_.next_request++);
}

bool Transmitter::begin_request(std::uint64_t seq) {
  const SendEntry& entry = requests_[seq];
  const auto len = static_cast<std::uint32_t>(entry.len);
  cursor_.source = Source::kRequest;
  cursor_.tagged = entry.wr.op == SendOp::kRdmaWrite;
  if (cursor_.tagged) {
    cursor_.tagged_cut = {tagged_header(Opcode::kWrite, entry.wr.remote_stag, entry.wr.remote_to), len};
  } else if (entry.wr.op == SendOp::kRdmaRead) {
    cursor_.untagged_cut = {untagged_header(Opcode::kReadRequest, entry.msn), 0};
    return true;
  } else {
    ddp::UntaggedHeader h = untagged_header(send_opcode(entry.wr), entry.msn);
    if (entry.wr.op == SendOp::kSendInvalidate) h.rsvd_ulp_8_39 = entry.wr.remote_stag.value;  // RDMAP-4.1-03
    cursor_.untagged_cut = {h, len};
  }
  // No octet of a message leaves before all of its source is known to be ours.
  Gather all;
  return gather_request(entry, {0, len, true}, all);
}

void Transmitter::begin_response(std::uint64_t seq) {
  const ReadRequestHeader& request = reads_[seq].request;
  cursor_.source = Source::kResponse;
  cursor_.tagged = true;
  // RDMAP-4.4-03: the sink's name goes back unexamined.
  cursor_.tagged_cut = {tagged_header(Opcode::kReadResponse, request.sink_stag, request.sink_to), request.size};
}

std::uint64_t Transmitter::current_seq() const {
  return cursor_.source == Source::kResponse ? cursor_.next_response - 1 : cursor_.next_request - 1;
}

Transmitter::Step Transmitter::frame_one(std::size_t mulpdu, std::size_t max_octets) {
  if (cursor_.source == Source::kNone && !next_message()) return fault_ ? Step::kFault : Step::kNothing;
  Mark mark;
  mark.source = cursor_.source;
  mark.seq = current_seq();
  Gather payload;
  std::array<std::uint8_t, ddp::kUntaggedHeaderLen + kReadRequestHeaderLen> header;
  std::size_t header_len = 0;
  ddp::Cut cut;
  if (cursor_.tagged) {
    const auto piece = cursor_.tagged_cut.next(mulpdu);
    ddp::emit_header(versioned(piece.header, version_), std::span(header).first<ddp::kTaggedHeaderLen>());
    header_len = ddp::kTaggedHeaderLen;
    cut = piece.cut;
  } else {
    const auto piece = cursor_.untagged_cut.next(mulpdu);
    ddp::emit_header(versioned(piece.header, version_), std::span(header).first<ddp::kUntaggedHeaderLen>());
    header_len = ddp::kUntaggedHeaderLen;
    cut = piece.cut;
  }
  const bool is_read = mark.source == Source::kRequest && requests_[mark.seq].wr.op == SendOp::kRdmaRead;
  if (is_read) {
    const SendEntry& entry = requests_[mark.seq];
    const auto body =
        emit_read_request_header({sink_stag(entry.wr), sink_to(entry.wr), static_cast<std::uint32_t>(entry.len),
                                  entry.wr.remote_stag, entry.wr.remote_to});
    std::copy(body.begin(), body.end(), header.begin() + ddp::kUntaggedHeaderLen);
    header_len += body.size();
  } else if (!gather(cut, payload)) {
    return Step::kFault;
  }
  mark.payload_len = cut.len;
  mark.last = cut.last;
  if (cut.last) cursor_.source = Source::kNone;
  const Step step = add(std::move(mark), ConstBytes(header).first(header_len), payload, max_octets);
  if (step == Step::kFramed && is_read) ++reads_in_batch_;
  return step;
}

Transmitter::Step Transmitter::add(Mark mark, ConstBytes header, const Gather& payload, std::size_t max_octets) {
  mark.len = writer_->next_fpdu_len(header.size() + mark.payload_len);
  const std::size_t pending = writer_->pending_octets();
  if (pending > 0 && (pending >= max_octets || mark.len > max_octets - pending)) return Step::kFull;
  const bool copy = mark.source == Source::kResponse;
  if (!writer_->add(header, std::span(payload.data(), payload.size()), copy)) return Step::kFull;
  mark.after = cursor_;
  marks_.push_back(std::move(mark));
  return Step::kFramed;
}

Transmitter::Step Transmitter::frame_terminate() {
  std::array<std::uint8_t, ddp::kUntaggedHeaderLen + kTerminateMaxLen> ulpdu;
  // RDMAP-4.1-20: queue 2, MSN 1, MO 0.
  ddp::emit_header(versioned(untagged_header(Opcode::kTerminate, ddp::Msn{1}), version_),
                   std::span(ulpdu).first<ddp::kUntaggedHeaderLen>());
  const std::size_t body_len = emit_terminate(terminate_message_, std::span(ulpdu).subspan(ddp::kUntaggedHeaderLen));
  const std::size_t len = ddp::kUntaggedHeaderLen + body_len;
  Mark mark;
  mark.source = Source::kTerminate;
  mark.last = true;
  mark.len = writer_->next_fpdu_len(len);
  if (!writer_->add(ConstBytes(ulpdu).first(len), {}, true)) return Step::kFull;
  marks_.push_back(std::move(mark));
  return Step::kFramed;
}

bool Transmitter::gather(const ddp::Cut& cut, Gather& out) {
  if (cursor_.source == Source::kResponse) return gather_response(cut, out);
  return gather_request(requests_[current_seq()], cut, out);
}

bool Transmitter::gather_request(const SendEntry& entry, const ddp::Cut& cut, Gather& out) {
  if (cut.len == 0) return true;
  if (!entry.wr.inline_data.empty()) {
    out.push_back(ConstBytes(entry.wr.inline_data).subspan(cut.offset, cut.len));
    return true;
  }
  const std::uint64_t seq = current_seq();
  std::uint64_t offset = cut.offset;
  std::size_t len = cut.len;
  for (std::size_t i = 0; i < entry.wr.sg_list.size() && len > 0; ++i) {
    const Sge& sge = entry.wr.sg_list[i];
    if (offset >= sge.len) {
      offset -= sge.len;
      continue;
    }
    if (resolved_.source != Source::kRequest || resolved_.seq != seq || resolved_.index != i) {
      const auto found = memory_.resolve(scope_, sge.key, sge.addr, sge.len, ddp::Right::kLocalRead);
      if (std::holds_alternative<ddp::AccessError>(found)) {
        TerminateMessage message;
        message.what = kLocalCatastrophic;  // RDMAP-7.1-02
        fault_ = Fault{message, seq};
        return false;
      }
      resolved_ = {Source::kRequest, seq, i, 0, std::get<MutBytes>(found)};
    }
    const std::size_t piece = std::min<std::size_t>(len, static_cast<std::size_t>(sge.len - offset));
    out.push_back(resolved_.octets.subspan(static_cast<std::size_t>(offset), piece));
    offset = 0;
    len -= piece;
  }
  assert(len == 0);
  return true;
}

bool Transmitter::gather_response(const ddp::Cut& cut, Gather& out) {
  if (cut.len == 0) return true;  // RDMAP-5.2.1-14
  const std::uint64_t seq = current_seq();
  const InboundRead& read = reads_[seq];
  if (resolved_.source != Source::kResponse || resolved_.seq != seq) {
    const auto found = memory_.resolve(scope_, read.request.src_stag, read.request.src_to + cut.offset,
                                       read.request.size - cut.offset, ddp::Right::kRemoteRead);
    if (const auto* error = std::get_if<ddp::AccessError>(&found)) {
      fault_ = Fault{refuse_read(read, cut.offset, to_read_terminate(*error)), std::nullopt};
      return false;
    }
    resolved_ = {Source::kResponse, seq, 0, cut.offset, std::get<MutBytes>(found)};
  }
  out.push_back(resolved_.octets.subspan(static_cast<std::size_t>(cut.offset - resolved_.offset), cut.len));
  return true;
}

void Transmitter::on_tx(std::size_t n) {
  if (!writer_ || !batch_open_) return;
  batch_open_ = false;
  const std::size_t num_begun = writer_->on_tx(n);
  if (n < rest_len_) {
    n = 0;
  } else {
    n -= rest_len_;
    if (rest_mark_) finished(*rest_mark_);
    rest_mark_.reset();
  }
  assert(num_begun <= marks_.size());
  for (std::size_t i = 0; i < num_begun; ++i) {
    const Mark& mark = marks_[i];
    begun(mark);
    if (n < mark.len) {
      rest_mark_ = mark;
      break;
    }
    n -= mark.len;
    finished(mark);
  }
  cursor_ = num_begun > 0 ? marks_[num_begun - 1].after : batch_begin_;
  marks_.clear();
  reads_in_batch_ = 0;
  rest_len_ = writer_->pending_octets();
}

void Transmitter::begun(const Mark& mark) {
  if (mark.source == Source::kRequest && requests_[mark.seq].wr.op == SendOp::kRdmaRead)
    requests_.on_read_sent(mark.seq);
  if (mark.source == Source::kTerminate) terminate_ = TerminateState::kSent;
}

void Transmitter::finished(const Mark& mark) {
  ++counters_.fpdus_tx;
  if (mark.source == Source::kResponse) {
    counters_.read_octets_tx += mark.payload_len;
    if (mark.last) reads_.pop_front();
    return;
  }
  if (mark.source != Source::kRequest) return;
  const SendOp op = requests_[mark.seq].wr.op;
  if (op == SendOp::kRdmaRead) {
    ++counters_.reads_tx;
    return;
  }
  if (op == SendOp::kRdmaWrite) counters_.write_octets_tx += mark.payload_len;
  if (!mark.last) return;
  ++(op == SendOp::kRdmaWrite ? counters_.writes_tx : counters_.sends_tx);
  requests_.finish(mark.seq, WorkStatus::kSuccess);
}

}  // namespace weft::rdmap
