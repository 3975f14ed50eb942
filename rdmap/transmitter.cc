#include "rdmap/transmitter.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "ddp/segment.h"
#include "mpa/fpdu.h"
#include "mpa/wire/release_memory.h"
#include "rdmap/header.h"
#include "rdmap/probes.h"

namespace weft::rdmap {

namespace {

// The longest RDMAP header behind a DDP header.
constexpr std::size_t kMaxBodyLen = std::max(kReadRequestHeaderLen, kAtomicRequestHeaderLen);

Opcode send_opcode(const SendWr& wr) {
  if (wr.op == SendOp::kImmediate || wr.op == SendOp::kWriteImmediate)
    return wr.solicited ? Opcode::kImmediateSe : Opcode::kImmediate;
  if (wr.op == SendOp::kSendInvalidate) return wr.solicited ? Opcode::kSendSeInvalidate : Opcode::kSendInvalidate;
  return wr.solicited ? Opcode::kSendSe : Opcode::kSend;
}

}  // namespace

Transmitter::Transmitter(ddp::MemoryTable& memory, SendQueue& requests, InboundReads& reads, StreamCounters& counters,
                         Room* room)
    : memory_(memory),
      requests_(requests),
      reads_(reads),
      counters_(counters),
      own_room_(room == nullptr ? std::make_unique<Room>() : nullptr),
      room_(room != nullptr ? room : own_room_.get()) {}

Transmitter::~Transmitter() = default;

void Transmitter::open(const mpa::Agreement& agreement, ddp::StreamScope scope, std::size_t fpdu_limit, bool hold) {
  writer_.emplace(agreement.crc, agreement.markers_tx, 0, &room_->framing_);
  markers_ = agreement.markers_tx;
  version_ = agreement.version;
  scope_ = scope;
  held_ = hold;
  if (fpdu_limit > 0) max_ulpdu_ = std::min(mpa::mulpdu(fpdu_limit, markers_), kMaxUlpdu);
}

void Transmitter::stop() {
  assert(!batch_open_);
  stopped_ = true;
  rest_mark_.reset();  // the caller of stop ends all requests in another way
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
  if (stopped_) return false;
  if (cursor_.source != Source::kNone || cursor_.nudge) return true;
  const std::uint64_t next = requests_.skip_done(cursor_.next_request);
  if (held_) return requests_.may_leave(next, 0) && is_local(requests_[next].wr.op);
  return request_due(next, 0) || reads_.holds(cursor_.next_response);
}

std::optional<Transmitter::Fault> Transmitter::frame(std::size_t emss, std::size_t max_octets) {
  if (batch_open_) on_tx(0);
  if (!writer_) return std::nullopt;
  assert(room_->marks_.empty());  // no other transmitter uses the room now
  batch_open_ = true;
  batch_begin_ = cursor_;
  resolved_ = {};
  fault_.reset();
  if (terminate_ == TerminateState::kQueued) {
    frame_terminate();
  } else if (held_ && !stopped_) {
    run_local();
  } else if (!stopped_) {
    const std::size_t mulpdu = std::min(mpa::mulpdu(emss, markers_), max_ulpdu_);
    Step step = Step::kFramed;
    while (step == Step::kFramed && room_->marks_.size() < kMaxFpdus) {
      const Cursor before = cursor_;
      step = frame_one(mulpdu, max_octets);
      if (step != Step::kFramed) cursor_ = before;
    }
    // A fault waits while FPDUs are ahead of it: they leave first, and some may have to be framed again.
    if (!room_->marks_.empty()) fault_.reset();
  }
  if (writer_->pending_octets() == 0) batch_open_ = false;
  if (fault_) batch_open_ = false;
  return fault_;
}

// Whether it is the turn of request seq: to leave, or to fail because it never may leave.
bool Transmitter::request_due(std::uint64_t seq, std::size_t reads_in_batch) const {
  return requests_.may_leave(seq, reads_in_batch) || requests_.lacks_ord(seq);
}

bool Transmitter::next_message() {
  if (cursor_.nudge) {
    cursor_.nudge = false;
    cursor_.source = Source::kNudge;
    cursor_.tagged = true;
    cursor_.tagged_cut = {tagged_header(Opcode::kWrite, kNobodysStag, 0), 0};
    return true;
  }
  if (!run_local()) return false;
  const bool response = reads_.holds(cursor_.next_response);
  const bool request = request_due(cursor_.next_request, reads_in_batch_);
  if (!response && !request) return false;
  if (response && (cursor_.response_next || !request)) {
    cursor_.response_next = false;
    return begin_response(cursor_.next_response++);
  }
  cursor_.response_next = true;
  return begin_request(cursor_.next_request++);
}

// Carries out the local requests whose turn it is. False if one of them failed.
bool Transmitter::run_local() {
  while (true) {
    const std::uint64_t seq = cursor_.next_request = requests_.skip_done(cursor_.next_request);
    if (!requests_.may_leave(seq, reads_in_batch_) || !is_local(requests_[seq].wr.op)) return true;
    if (!carry_out(requests_[seq].wr)) {
      TerminateMessage message;
      message.what = kLocalCatastrophic;  // RDMAP-7.1-02
      fault_ = Fault{message, seq, WorkStatus::kWindow};
      return false;
    }
    requests_.finish(seq, WorkStatus::kSuccess);
  }
}

bool Transmitter::carry_out(const SendWr& wr) {
  if (const auto* bind = std::get_if<ddp::WindowBind>(&wr.args)) return memory_.bind_window(scope_, *bind);
  return memory_.invalidate_window(scope_, wr.remote_stag);
}

bool Transmitter::begin_request(std::uint64_t seq) {
  const SendEntry& entry = requests_[seq];
  const SendWr& wr = entry.wr;
  const auto len = static_cast<std::uint32_t>(entry.len);
  if (requests_.lacks_ord(seq)) {
    TerminateMessage message;
    message.what = kLocalCatastrophic;  // RDMAP-7.1-02
    fault_ = Fault{message, seq, WorkStatus::kLocalOperation};
    return false;
  }
  cursor_.source = Source::kRequest;
  cursor_.tagged = is_tagged(wr.op);
  if (is_answered(wr.op)) {
    const Opcode opcode = wr.op == SendOp::kRdmaRead ? Opcode::kReadRequest : Opcode::kAtomicRequest;
    cursor_.untagged_cut = {untagged_header(opcode, entry.msn), 0};
    return true;
  }
  if (cursor_.tagged) {
    cursor_.tagged_cut = {tagged_header(Opcode::kWrite, wr.remote_stag, wr.remote_to), len};
  } else {
    ddp::UntaggedHeader h = untagged_header(send_opcode(wr), entry.msn);
    if (wr.op == SendOp::kSendInvalidate) h.rsvd_ulp_8_39 = wr.remote_stag.value;  // RDMAP-4.1-03
    cursor_.untagged_cut = {h, wr.op == SendOp::kImmediate ? std::uint32_t{kImmediateLen} : len};
    if (wr.op == SendOp::kImmediate) return true;
  }
  // No octet of a message leaves before its whole source is checked.
  Gather all;
  return gather_request(entry, {0, len, true}, all);
}

bool Transmitter::begin_response(std::uint64_t seq) {
  InboundRead& read = reads_[seq];
  cursor_.source = Source::kResponse;
  cursor_.tagged = !read.atomic.has_value();
  if (read.atomic) {
    if (!read.atomic->original && !execute(read)) return false;
    cursor_.untagged_cut = {untagged_header(Opcode::kAtomicResponse, read.atomic->msn), 0};
    return true;
  }
  // RDMAP-4.4-03: the sink's STag and TO go back unchecked.
  cursor_.tagged_cut = {tagged_header(Opcode::kReadResponse, read.request.sink_stag, read.request.sink_to),
                        read.request.size};
  return true;
}

bool Transmitter::execute(InboundRead& read) {
  const AtomicRequestHeader& request = read.atomic->request;
  const auto found = memory_.resolve(scope_, request.stag, request.to, kAtomicLen, ddp::Right::kRemoteAtomic);
  if (const auto* error = std::get_if<ddp::AccessError>(&found)) {
    fault_ = Fault{refuse_read(read, 0, to_read_terminate(*error)), std::nullopt};
    return false;
  }
  const MutBytes target = std::get<MutBytes>(found);
  if (!is_atomic_target(target)) {  // the STag may name other memory now
    fault_ = Fault{refuse_read(read, 0, kStreamCatastrophic), std::nullopt};
    return false;
  }
  read.atomic->msn = next_atomic_msn_;
  next_atomic_msn_ = next_atomic_msn_.next();
  read.atomic->original = execute_atomic(request.operands, target);
  return true;
}

// MPA-C.1-02: DV and RV are the same number in every ULPDU of a connection.
ddp::UntaggedHeader Transmitter::untagged_header(Opcode opcode, ddp::Msn msn) const {
  ddp::UntaggedHeader h;
  h.dv = version_;
  h.rsvd_ulp = control_octet(opcode, version_);
  h.qn = queue_of(opcode);
  h.msn = msn;
  return h;
}

ddp::TaggedHeader Transmitter::tagged_header(Opcode opcode, ddp::Stag stag, std::uint64_t to) const {
  ddp::TaggedHeader h;
  h.dv = version_;
  h.rsvd_ulp = control_octet(opcode, version_);
  h.stag = stag;
  h.to = to;
  return h;
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
  std::array<std::uint8_t, ddp::kUntaggedHeaderLen + kMaxBodyLen> header;
  std::size_t header_len = 0;
  ddp::Cut cut;
  if (cursor_.tagged) {
    const auto piece = cursor_.tagged_cut.next(mulpdu);
    ddp::emit_header(piece.header, std::span(header).first<ddp::kTaggedHeaderLen>());
    header_len = ddp::kTaggedHeaderLen;
    cut = piece.cut;
  } else {
    const auto piece = cursor_.untagged_cut.next(mulpdu);
    ddp::emit_header(piece.header, std::span(header).first<ddp::kUntaggedHeaderLen>());
    header_len = ddp::kUntaggedHeaderLen + emit_body(mark, std::span(header).subspan(ddp::kUntaggedHeaderLen));
    cut = piece.cut;
  }
  if (!gather(cut, payload)) return Step::kFault;
  const bool asks = mark.source == Source::kRequest && is_answered(requests_[mark.seq].wr.op);
  end_piece(cut, mark);
  const Step step = add(mark, ConstBytes(header).first(header_len), payload, max_octets);
  if (step == Step::kFramed && asks) ++reads_in_batch_;
  return step;
}

// Writes the RDMAP header behind the DDP header of the message under way: 0 octets for most messages.
std::size_t Transmitter::emit_body(const Mark& mark, MutBytes out) const {
  const auto put = [&](const auto& body) {
    std::copy(body.begin(), body.end(), out.begin());
    return body.size();
  };
  if (mark.source == Source::kResponse) {
    const InboundAtomic& atomic = *reads_[mark.seq].atomic;  // a Read's Response is tagged
    return put(emit_atomic_response_header({atomic.request.request_id, *atomic.original}));
  }
  const SendEntry& entry = requests_[mark.seq];
  const SendWr& wr = entry.wr;
  if (wr.op == SendOp::kRdmaRead)
    return put(emit_read_request_header(
        {sink_stag(wr), sink_to(wr), static_cast<std::uint32_t>(entry.len), wr.remote_stag, wr.remote_to}));
  if (wr.op == SendOp::kAtomic) {
    AtomicOperands operands = std::get<AtomicOperands>(wr.args);
    if (operands.op == AtomicOp::kFetchAdd) {  // EXT-5.2.1-07
      operands.compare = 0;
      operands.compare_mask = ~std::uint64_t{0};
    }
    return put(emit_atomic_request_header(
        {static_cast<std::uint8_t>(operands.op), request_id(entry), wr.remote_stag, wr.remote_to, operands}));
  }
  return 0;
}

// If a piece ends its message, moves the cursor on: to the Immediate Data behind a Write's last segment, else to no
// message.
void Transmitter::end_piece(const ddp::Cut& cut, Mark& mark) {
  mark.payload_len = cut.len;
  mark.last = cut.last;
  if (!cut.last) return;
  if (cursor_.tagged && mark.source == Source::kRequest && requests_[mark.seq].wr.op == SendOp::kWriteImmediate) {
    const SendEntry& entry = requests_[mark.seq];
    cursor_.tagged = false;
    cursor_.untagged_cut = {untagged_header(send_opcode(entry.wr), entry.msn), kImmediateLen};
    mark.last = false;
    return;
  }
  cursor_.source = Source::kNone;
}

Transmitter::Step Transmitter::add(Mark& mark, ConstBytes header, const Gather& payload, std::size_t max_octets) {
  mark.len = writer_->next_fpdu_len(header.size() + mark.payload_len);
  const std::size_t pending = writer_->pending_octets();
  if (pending > 0 && (pending >= max_octets || mark.len > max_octets - pending)) return Step::kFull;
  const bool copy = mark.source == Source::kResponse;
  if (!writer_->add(header, std::span(payload.data(), payload.size()), copy)) return Step::kFull;
  mark.after = cursor_;
  room_->marks_.push_back(mark);
  return Step::kFramed;
}

Transmitter::Step Transmitter::frame_terminate() {
  std::array<std::uint8_t, ddp::kUntaggedHeaderLen + kTerminateMaxLen> ulpdu;
  // RDMAP-4.1-20: queue 2, MSN 1, MO 0.
  ddp::emit_header(untagged_header(Opcode::kTerminate, ddp::Msn{1}), std::span(ulpdu).first<ddp::kUntaggedHeaderLen>());
  const std::size_t body_len = emit_terminate(terminate_message_, std::span(ulpdu).subspan(ddp::kUntaggedHeaderLen));
  const std::size_t len = ddp::kUntaggedHeaderLen + body_len;
  Mark mark;
  mark.source = Source::kTerminate;
  mark.last = true;
  mark.len = writer_->next_fpdu_len(len);
  if (!writer_->add(ConstBytes(ulpdu).first(len), {}, true)) return Step::kFull;
  room_->marks_.push_back(mark);
  return Step::kFramed;
}

bool Transmitter::gather(const ddp::Cut& cut, Gather& out) {
  if (cut.len == 0) return true;  // its STag and TO do not matter: RDMAP-5.2.1-14
  if (cursor_.source == Source::kResponse) return gather_response(cut, out);
  return gather_request(requests_[current_seq()], cut, out);
}

bool Transmitter::gather_request(const SendEntry& entry, const ddp::Cut& cut, Gather& out) {
  if (cut.len == 0) return true;
  if (const auto* immediate = std::get_if<ImmediateData>(&entry.wr.args); immediate != nullptr && !cursor_.tagged) {
    out.emplace_back(immediate->data() + cut.offset, cut.len);
    return true;
  }
  if (!entry.wr.inline_data.empty()) {
    out.emplace_back(entry.wr.inline_data.data() + cut.offset, cut.len);
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
    out.emplace_back(resolved_.octets.data() + offset, piece);
    offset = 0;
    len -= piece;
  }
  assert(len == 0);
  return true;
}

bool Transmitter::gather_response(const ddp::Cut& cut, Gather& out) {
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
  out.emplace_back(resolved_.octets.data() + (cut.offset - resolved_.offset), cut.len);
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
  assert(num_begun <= room_->marks_.size());
  for (std::size_t i = 0; i < num_begun; ++i) {
    const Mark& mark = room_->marks_[i];
    begun(mark);
    if (n < mark.len) {
      rest_mark_ = mark;
      break;
    }
    n -= mark.len;
    finished(mark);
  }
  cursor_ = num_begun > 0 ? room_->marks_[num_begun - 1].after : batch_begin_;
  room_->marks_.clear();
  reads_in_batch_ = 0;
  rest_len_ = writer_->pending_octets();
}

void Transmitter::trim() {
  if (batch_open_) return;
  if (writer_) writer_->trim();
  if (own_room_) own_room_->release();
}

void Transmitter::Room::release() {
  framing_.release();
  release_memory(marks_);
}

void Transmitter::begun(const Mark& mark) {
  if (mark.source == Source::kRequest && is_answered(requests_[mark.seq].wr.op)) requests_.on_read_sent(mark.seq);
  if (mark.source == Source::kTerminate) terminate_ = TerminateState::kSent;
}

Opcode Transmitter::opcode_of(const Mark& mark) const {
  switch (mark.source) {
    case Source::kTerminate: return Opcode::kTerminate;
    case Source::kResponse: return reads_[mark.seq].atomic ? Opcode::kAtomicResponse : Opcode::kReadResponse;
    case Source::kRequest: break;
    case Source::kNudge:
    case Source::kNone: return Opcode::kWrite;
  }
  const SendWr& wr = requests_[mark.seq].wr;
  switch (wr.op) {
    case SendOp::kRdmaRead: return Opcode::kReadRequest;
    case SendOp::kAtomic: return Opcode::kAtomicRequest;
    case SendOp::kRdmaWrite: return Opcode::kWrite;
    case SendOp::kWriteImmediate: return mark.last ? send_opcode(wr) : Opcode::kWrite;
    default: return send_opcode(wr);
  }
}

void Transmitter::finished(const Mark& mark) {
  ++counters_.fpdus_tx;
  WEFT_PROBE(fpdu_out, &counters_, static_cast<int>(opcode_of(mark)), mark.payload_len);
  if (mark.source == Source::kResponse) {
    counters_.read_octets_tx += mark.payload_len;
    if (mark.last) reads_.pop_front();
    return;
  }
  if (mark.source == Source::kNudge) ++counters_.nudges_tx;
  if (mark.source != Source::kRequest) return;
  const SendOp op = requests_[mark.seq].wr.op;
  if (is_answered(op)) requests_.on_read_left(mark.seq);
  if (requests_[mark.seq].own) {  // not a message of the ULP
    if (op != SendOp::kRdmaRead) requests_.finish(mark.seq, WorkStatus::kSuccess);
    return;
  }
  if (op == SendOp::kRdmaWrite || (op == SendOp::kWriteImmediate && !mark.last))
    counters_.write_octets_tx += mark.payload_len;
  if (op == SendOp::kSend || op == SendOp::kSendInvalidate) counters_.send_octets_tx += mark.payload_len;
  if (!mark.last) return;
  switch (op) {
    case SendOp::kRdmaRead: ++counters_.reads_tx; return;
    case SendOp::kAtomic: ++counters_.atomics_tx; return;
    case SendOp::kWriteImmediate: ++counters_.immediates_tx; [[fallthrough]];
    case SendOp::kRdmaWrite: ++counters_.writes_tx; break;
    case SendOp::kImmediate: ++counters_.immediates_tx; break;
    default: ++counters_.sends_tx;
  }
  requests_.finish(mark.seq, WorkStatus::kSuccess);
}

}  // namespace weft::rdmap
