#include "rdmap/receiver.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <utility>

#include "ddp/tagged.h"
#include "requirements/violates.h"

namespace weft::rdmap {

void Receiver::open(ddp::StreamScope scope, RecvSource& recvs, std::uint16_t ird, std::uint8_t version, bool rfc7306) {
  scope_ = scope;
  recvs_ = &recvs;
  ird_ = ird;
  version_ = version;
  set_rfc7306(rfc7306);
}

void Receiver::set_rfc7306(bool rfc7306) {
  num_opcodes_ = rfc7306 ? kNumOpcodes7306 : kNumOpcodes5040;
  num_queues_ = rfc7306 ? ddp::kNumQueuesWithAtomics : ddp::kNumQueues;
}

Receiver::Verdict Receiver::on_ulpdu(const mpa::Ulpdu& ulpdu) {
  Verdict verdict = check(ulpdu.view(0, std::min(ulpdu.size(), kHeadLen), head_scratch_), ulpdu.size());
  if (verdict == Verdict::kTaken) verdict = find_memory(0, views_);
  if (verdict == Verdict::kTaken) verdict = invalidate();
  if (verdict == Verdict::kTaken) {
    std::size_t offset = header_len_;
    for (MutBytes view : views_) {
      ulpdu.copy(offset, view);
      offset += view.size();
    }
    deliver();
  }
  if (verdict == Verdict::kRefused) settle_refusal();
  return verdict;
}

// ---------------------------------------------------------------- check

Receiver::Verdict Receiver::check(ConstBytes head, std::size_t ulpdu_len) {
  head_ = head;
  ulpdu_len_ = ulpdu_len;
  target_ = Target::kNone;
  blamed_ = Blamed::kNobody;
  const auto error = ddp::parse_segment(head, version_, segment_);
  keep_ddp_header(head);
  if (error)
    return refuse(to_terminate(*error), *error == ddp::Error::kLocalCatastrophic ? Headers::kNone : Headers::kDdp);
  header_len_ = head.size() - segment_.payload.size();
  payload_len_ = ulpdu_len - header_len_;
  if (const auto* tagged = std::get_if<ddp::TaggedHeader>(&segment_.header)) return check_tagged(*tagged);
  return check_untagged(std::get<ddp::UntaggedHeader>(segment_.header), segment_.payload);
}

// Keeps the header as received, for a Terminate that returns it now or in a later turn.
void Receiver::keep_ddp_header(ConstBytes head) {
  constexpr std::uint8_t kTaggedBit = 0x80;
  const bool is_tagged = !head.empty() && (head[0] & kTaggedBit) != 0;
  const std::size_t len = is_tagged ? ddp::kTaggedHeaderLen : ddp::kUntaggedHeaderLen;
  ddp_header_len_ = head.size() < len ? 0 : len;
  ddp_header_ = {};
  if (ddp_header_len_ == 0) return;
  // Two copies of a length that the compiler knows.
  if (is_tagged) {
    std::memcpy(ddp_header_.data(), head.data(), ddp::kTaggedHeaderLen);
  } else {
    std::memcpy(ddp_header_.data(), head.data(), ddp::kUntaggedHeaderLen);
  }
}

Receiver::Verdict Receiver::check_tagged(const ddp::TaggedHeader& header) {
  const Control control = parse_control(header.rsvd_ulp);
  if (violates("RDMAP-7.2-03", control.rv != version_)) return refuse(kInvalidVersion);
  opcode_ = static_cast<Opcode>(control.opcode);
  // Checked before placement: a Send opcode with T=1 would otherwise write through an STag (RDMAP-N-09).
  if (violates("RDMAP-7.2-02", control.opcode >= num_opcodes_ || !is_tagged(opcode_))) return refuse(kUnexpectedOpcode);
  if (violates("RDMAP-7.2-02", tagged_open_ && opcode_ != tagged_opcode_)) return refuse(kUnexpectedOpcode);
  if (opcode_ == Opcode::kReadResponse) return check_read_response(header);
  target_ = Target::kRegion;
  return Verdict::kTaken;
}

Receiver::Verdict Receiver::check_read_response(const ddp::TaggedHeader& header) {
  const SendEntry* read = requests_.oldest_read();
  if (violates("RDMAP-5.2.2-05", read == nullptr)) return refuse(ddp::Error::kInvalidStag);
  const auto refuse_as = [&](ddp::Error error) {
    return refuse_for(Blamed::kRead, WorkStatus::kFatal, to_terminate(error));
  };
  // RDMAP-5.2.2-08: the Response is matched with its request, so the sink needs no remote write right.
  if (payload_len_ > 0) {
    if (violates("RDMAP-5.2.2-08", header.stag != sink_stag(read->wr))) return refuse_as(ddp::Error::kInvalidStag);
    if (violates("RDMAP-4.4-08", header.to > std::numeric_limits<std::uint64_t>::max() - payload_len_))
      return refuse_as(ddp::Error::kToWrap);
    if (violates("RDMAP-5.2.2-08", header.to != sink_to(read->wr) + read->read))
      return refuse_as(ddp::Error::kBaseBounds);
  }
  const std::uint64_t left = read->len - read->read;
  if (violates("RDMAP-5.2.2-08", payload_len_ > left || (header.last && payload_len_ != left)))
    return refuse_as(ddp::Error::kBaseBounds);
  target_ = Target::kRead;
  return Verdict::kTaken;
}

Receiver::Verdict Receiver::check_untagged(const ddp::UntaggedHeader& header, ConstBytes body) {
  if (const auto error = ddp::check_qn(header.qn, num_queues_)) return refuse(*error);
  const Control control = parse_control(header.rsvd_ulp);
  if (violates("RDMAP-7.2-03", control.rv != version_)) return refuse(kInvalidVersion);
  opcode_ = static_cast<Opcode>(control.opcode);
  if (violates("RDMAP-7.2-02", control.opcode >= num_opcodes_ || is_tagged(opcode_) || queue_of(opcode_) != header.qn))
    return refuse(kUnexpectedOpcode);
  if (opcode_ == Opcode::kTerminate) return check_terminate(header, body);
  if (const auto error = queues_[header.qn].check_msn(header)) return refuse(*error);
  switch (opcode_) {
    case Opcode::kReadRequest: return check_read_request(header, body);
    case Opcode::kAtomicRequest: return check_atomic_request(header, body);
    case Opcode::kAtomicResponse: return check_atomic_response(header, body);
    default: return check_send(header, body);
  }
}

Receiver::Verdict Receiver::check_send(const ddp::UntaggedHeader& header, ConstBytes body) {
  const ddp::UntaggedQueue& queue = queues_[kSendQn];
  // DDP-A-12
  if (violates("RDMAP-7.2-02", queue.open() && opcode_ != send_opcode_)) return refuse(kUnexpectedOpcode);
  if (!recv_) {
    recv_ = recvs_->take();
    if (recv_) recv_len_ = total_len(recv_->sg_list);
  }
  const bool immediate = is_immediate(opcode_);
  // Immediate Data goes into the completion, and into the receive's memory if it has room (EXT-X-10).
  const std::uint64_t room = immediate ? std::max<std::uint64_t>(recv_len_, kImmediateLen) : recv_len_;
  const auto buffer_len = recv_ ? std::optional(room) : std::nullopt;
  if (const auto error = queue.check(header, payload_len_, buffer_len))
    return refuse_for(Blamed::kRecv,
                      *error == ddp::Error::kMessageTooLong ? WorkStatus::kLocalLength : WorkStatus::kFlushed,
                      to_terminate(*error));
  if (immediate) {
    if (violates("EXT-6.3-04", !header.last || payload_len_ != kImmediateLen))
      return refuse_for(Blamed::kRecv, WorkStatus::kFlushed, kStreamCatastrophic);  // EXT-X-09
    std::copy_n(body.begin(), std::min(body.size(), immediate_.size()), immediate_.begin());
    if (recv_len_ < kImmediateLen) return Verdict::kTaken;
  }
  target_ = Target::kRecv;
  return Verdict::kTaken;
}

// Queue 1 has one buffer for each IRD slot. The buffer is as long as the request's header (RDMAP-N-10, RDMAP-N-11,
// EXT-X-07).
std::optional<std::uint64_t> Receiver::request_buffer_len(std::size_t header_len) const {
  return reads_.size() < ird_ ? std::optional<std::uint64_t>(header_len) : std::nullopt;
}

Receiver::Verdict Receiver::check_read_request(const ddp::UntaggedHeader& header, ConstBytes body) {
  if (const auto error = queues_[kReadRequestQn].check(header, payload_len_, request_buffer_len(kReadRequestHeaderLen)))
    return refuse(*error);
  const auto request = parse_read_request_header(body);
  // RDMAP-N-11, RDMAP-N-16
  if (violates("RDMAP-4.4-01", !header.last || !request)) return refuse(kStreamCatastrophic);
  if (request->size > 0) {  // RDMAP-5.2.1-14
    const auto source =
        memory_.resolve(scope_, request->src_stag, request->src_to, request->size, ddp::Right::kRemoteRead);
    if (const auto* error = std::get_if<ddp::AccessError>(&source))
      return refuse(to_read_terminate(*error), Headers::kDdpAndRdma);
  }
  read_.request = *request;
  read_.atomic.reset();
  read_.ddp_header = ddp_header_;
  return Verdict::kTaken;
}

Receiver::Verdict Receiver::check_atomic_request(const ddp::UntaggedHeader& header, ConstBytes body) {
  if (const auto error =
          queues_[kReadRequestQn].check(header, payload_len_, request_buffer_len(kAtomicRequestHeaderLen)))
    return refuse(*error);
  const auto request = parse_atomic_request_header(body);
  if (violates("EXT-4.2-01", !header.last || !request)) return refuse(kStreamCatastrophic);          // RDMAP-N-11
  if (violates("EXT-5.2.1-13", !is_atomic_op(request->aop_code))) return refuse(kUnexpectedOpcode);  // EXT-X-03
  // Access is checked first: a peer without access learns nothing about the alignment (EXT-X-04). No RDMAP header:
  // EXT-8.1-02.
  const auto target = memory_.resolve(scope_, request->stag, request->to, kAtomicLen, ddp::Right::kRemoteAtomic);
  if (const auto* error = std::get_if<ddp::AccessError>(&target)) return refuse(to_read_terminate(*error));
  if (violates("EXT-8.2-02", !is_atomic_target(std::get<MutBytes>(target)))) return refuse(kStreamCatastrophic);
  read_.request = {};
  read_.atomic = InboundAtomic{*request, {}, std::nullopt};
  read_.ddp_header = ddp_header_;
  return Verdict::kTaken;
}

Receiver::Verdict Receiver::check_atomic_response(const ddp::UntaggedHeader& header, ConstBytes body) {
  const SendEntry* atomic = requests_.oldest_atomic();
  // Queue 3 has a buffer only for the answer that is due.
  const auto buffer_len = atomic != nullptr ? std::optional<std::uint64_t>(kAtomicResponseHeaderLen) : std::nullopt;
  if (const auto error = queues_[kAtomicResponseQn].check(header, payload_len_, buffer_len)) {
    if (atomic == nullptr) return refuse(*error);
    return refuse_for(Blamed::kAtomic, WorkStatus::kFatal, to_terminate(*error));
  }
  const auto answer = parse_atomic_response_header(body);
  if (violates("EXT-5.2.2-06", !header.last || !answer))
    return refuse_for(Blamed::kAtomic, WorkStatus::kFatal, kStreamCatastrophic);
  if (violates("EXT-5.2.1-05", answer->request_id != request_id(*atomic)))  // EXT-X-08
    return refuse_for(Blamed::kAtomic, WorkStatus::kFatal, kStreamCatastrophic);
  answer_ = *answer;
  // deliver writes the answer in this machine's byte order, so its octets are not placed. The memory is found now and
  // again at delivery.
  target_ = Target::kAtomic;
  return Verdict::kTaken;
}

Receiver::Verdict Receiver::check_terminate(const ddp::UntaggedHeader& header, ConstBytes body) {
  // An error in a Terminate is never answered with another Terminate (RDMAP-5.4-07). Octets behind its body are
  // ignored.
  const std::uint64_t buffer_len = std::max(kTerminateMaxLen, payload_len_);
  const auto message = parse_terminate(body);
  if (violates("RDMAP-5.4-07",
               queues_[kTerminateQn].check(header, payload_len_, buffer_len).has_value() || !header.last || !message))
    return Verdict::kBadTerminate;
  message_ = *message;
  return Verdict::kTerminate;
}

// ---------------------------------------------------------------- place

Receiver::Verdict Receiver::find_memory(std::size_t offset, ViewList& views) {
  views.clear();
  const std::size_t len = placed_len() - offset;
  switch (target_) {
    case Target::kNone: return Verdict::kTaken;
    case Target::kRegion: {
      const auto& header = std::get<ddp::TaggedHeader>(segment_.header);
      const auto found = ddp::resolve_tagged(memory_, scope_, header.stag, header.to + offset, len);
      if (const auto* error = std::get_if<ddp::Error>(&found)) return refuse(*error);
      const MutBytes& target = std::get<MutBytes>(found);
      views.emplace_back(target.data(), target.size());
      return Verdict::kTaken;
    }
    case Target::kRead: {
      const SendEntry& read = *requests_.oldest_read();
      if (!resolve_range(memory_, scope_, read.wr.sg_list, read.read + offset, len, ddp::Right::kLocalWrite, views))
        return Verdict::kTaken;
      return refuse_for(Blamed::kRead, WorkStatus::kLocalProtection, to_terminate(ddp::Error::kLocalCatastrophic));
    }
    case Target::kAtomic:
      sink_views_.clear();
      if (!resolve_range(memory_, scope_, requests_.oldest_atomic()->wr.sg_list, 0, kAtomicLen, ddp::Right::kLocalWrite,
                         sink_views_))
        return Verdict::kTaken;
      return refuse_for(Blamed::kAtomic, WorkStatus::kLocalProtection, to_terminate(ddp::Error::kLocalCatastrophic));
    case Target::kRecv:
      if (!resolve_range(memory_, scope_, recv_->sg_list, queues_[kSendQn].received() + offset, len,
                         ddp::Right::kLocalWrite, views))
        return Verdict::kTaken;
      return refuse_for(Blamed::kRecv, WorkStatus::kLocalProtection, to_terminate(ddp::Error::kLocalCatastrophic));
  }
  return Verdict::kTaken;
}

// ---------------------------------------------------------------- deliver

Receiver::Verdict Receiver::invalidate() {
  const auto* header = std::get_if<ddp::UntaggedHeader>(&segment_.header);
  if (header == nullptr || !header->last || !invalidates(opcode_)) return Verdict::kTaken;  // RDMAP-5.3-14
  const auto result = memory_.invalidate(scope_, ddp::Stag{header->rsvd_ulp_8_39});
  const auto* error = std::get_if<ddp::AccessError>(&result);
  if (error == nullptr) return Verdict::kTaken;
  return refuse_for(Blamed::kRecv, WorkStatus::kRemoteInvalidRequest,
                    to_invalidate_terminate(*error));  // RDMAP-5.3-15
}

void Receiver::deliver() {
  if (const auto* tagged = std::get_if<ddp::TaggedHeader>(&segment_.header)) return deliver_tagged(*tagged);
  deliver_untagged(std::get<ddp::UntaggedHeader>(segment_.header));
}

void Receiver::deliver_untagged(const ddp::UntaggedHeader& header) {
  switch (opcode_) {
    case Opcode::kReadRequest:
    case Opcode::kAtomicRequest:
      queues_[kReadRequestQn].advance(header, payload_len_);
      heard_message_ = heard_message_ || opcode_ == Opcode::kReadRequest;
      ++(opcode_ == Opcode::kReadRequest ? counters_.reads_rx : counters_.atomics_rx);
      reads_.push_back(read_);
      return;
    case Opcode::kAtomicResponse: return deliver_atomic_response(header);
    default: return deliver_send(header);
  }
}

void Receiver::deliver_atomic_response(const ddp::UntaggedHeader& header) {
  std::array<std::uint8_t, kAtomicLen> octets;
  std::memcpy(octets.data(), &answer_.original, octets.size());
  scatter(octets, sink_views_);
  queues_[kAtomicResponseQn].advance(header, payload_len_);
  requests_.finish_read(WorkStatus::kSuccess);
}

void Receiver::deliver_tagged(const ddp::TaggedHeader& header) {
  tagged_open_ = !header.last;
  tagged_opcode_ = opcode_;
  if (opcode_ == Opcode::kWrite) {
    counters_.write_octets_rx += payload_len_;
    if (!header.last) return;
    heard_message_ = true;
    ++counters_.writes_rx;
    return;
  }
  requests_.oldest_read()->read += payload_len_;
  counters_.read_octets_rx += payload_len_;
  read_progress_ = read_progress_ || payload_len_ != 0;
  if (header.last) requests_.finish_read(WorkStatus::kSuccess);
}

void Receiver::deliver_send(const ddp::UntaggedHeader& header) {
  send_opcode_ = opcode_;
  if (const auto len = queues_[kSendQn].advance(header, payload_len_)) complete_recv(header, *len);
}

void Receiver::complete_recv(const ddp::UntaggedHeader& header, std::uint32_t len) {
  const bool immediate = is_immediate(opcode_);
  heard_message_ = heard_message_ || !immediate;
  if (recv_->own) return recv_.reset();
  auto& c = events_.extend().emplace<Completion>();
  c.wr_id = recv_->wr_id;
  c.op = WorkOp::kRecv;
  c.byte_len = immediate && recv_len_ < kImmediateLen ? 0 : len;
  c.solicited = is_solicited(opcode_);
  if (invalidates(opcode_)) c.invalidated = ddp::Stag{header.rsvd_ulp_8_39};
  if (immediate) {
    c.immediate = immediate_;
    ++counters_.immediates_rx;
  } else {
    ++counters_.sends_rx;
    counters_.send_octets_rx += len;
  }
  recv_.reset();
}

// ---------------------------------------------------------------- refuse

Receiver::Verdict Receiver::refuse(Terminate what, Headers headers) {
  message_ = {};
  message_.what = what;
  if (headers == Headers::kNone) return Verdict::kRefused;
  message_.segment_len = static_cast<std::uint16_t>(ulpdu_len_);  // RDMAP-4.8-14
  message_.ddp_header = ddp_header_;
  message_.ddp_header_len = ddp_header_len_;
  if (headers == Headers::kDdpAndRdma) {  // RDMAP-4.8-18
    std::copy_n(head_.begin() + static_cast<std::ptrdiff_t>(ddp_header_len_), kReadRequestHeaderLen,
                message_.rdma_header.begin());
    message_.has_rdma_header = true;
  }
  return Verdict::kRefused;
}

Receiver::Verdict Receiver::refuse_for(Blamed blamed, WorkStatus status, Terminate what) {
  blamed_ = blamed;
  blamed_status_ = status;
  return refuse(what);
}

void Receiver::settle_refusal() {
  switch (std::exchange(blamed_, Blamed::kNobody)) {
    case Blamed::kNobody: return;
    case Blamed::kRead: return mark_failed(*requests_.oldest_read());
    case Blamed::kAtomic: return mark_failed(*requests_.oldest_atomic());
    case Blamed::kRecv: return fail_recv(blamed_status_, message_.what);
  }
}

void Receiver::mark_failed(SendEntry& entry) const {
  entry.done = true;
  entry.status = blamed_status_;
}

void Receiver::fail_recv(WorkStatus status, const std::optional<Terminate>& why) {
  if (!recv_) return;
  Completion c;
  c.wr_id = recv_->wr_id;
  c.op = WorkOp::kRecv;
  c.status = status;
  c.terminate = why;
  if (!std::exchange(recv_, std::nullopt)->own) events_.push_back(c);
}

void Receiver::flush(const std::optional<Terminate>& why) {
  fail_recv(WorkStatus::kFlushed, why);
}

}  // namespace weft::rdmap
