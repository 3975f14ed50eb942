#include "rdmap/receiver.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <utility>

#include "ddp/tagged.h"

namespace weft::rdmap {

namespace {

constexpr std::uint8_t kNumOpcodes = 8;

}  // namespace

void Receiver::open(ddp::StreamScope scope, RecvSource& recvs, std::uint16_t ird) {
  scope_ = scope;
  recvs_ = &recvs;
  ird_ = ird;
}

Receiver::Verdict Receiver::on_ulpdu(ConstBytes ulpdu) {
  ++counters_.fpdus_rx;
  const auto segment = ddp::parse_segment(ulpdu);
  if (!segment)
    return refuse(to_terminate(segment.error()), ulpdu,
                  segment.error() == ddp::Error::kLocalCatastrophic ? Headers::kNone : Headers::kDdp);
  if (const auto* tagged = std::get_if<ddp::TaggedHeader>(&segment->header))
    return on_tagged(*tagged, segment->payload, ulpdu);
  return on_untagged(std::get<ddp::UntaggedHeader>(segment->header), segment->payload, ulpdu);
}

Receiver::Verdict Receiver::on_tagged(const ddp::TaggedHeader& header, ConstBytes payload, ConstBytes ulpdu) {
  const Control control = parse_control(header.rsvd_ulp);
  if (control.rv != kRdmapVersion) return refuse(kInvalidVersion, ulpdu);  // RDMAP-7.2-03
  const auto opcode = static_cast<Opcode>(control.opcode);
  // RDMAP-7.2-02, before placement: a Send opcode with T=1 would otherwise write through an STag (notes N-09).
  if (control.opcode >= kNumOpcodes || !is_tagged(opcode)) return refuse(kUnexpectedOpcode, ulpdu);
  if (tagged_open_ && opcode != tagged_opcode_) return refuse(kUnexpectedOpcode, ulpdu);
  const Verdict verdict =
      opcode == Opcode::kWrite ? on_write(header, payload, ulpdu) : on_read_response(header, payload, ulpdu);
  tagged_open_ = !header.last;
  tagged_opcode_ = opcode;
  return verdict;
}

Receiver::Verdict Receiver::on_write(const ddp::TaggedHeader& header, ConstBytes payload, ConstBytes ulpdu) {
  const auto target = ddp::resolve_tagged(memory_, scope_, header, payload.size());
  if (const auto* error = std::get_if<ddp::Error>(&target)) return refuse(*error, ulpdu);
  if (!payload.empty()) std::memcpy(std::get<MutBytes>(target).data(), payload.data(), payload.size());
  counters_.write_octets_rx += payload.size();
  if (header.last) ++counters_.writes_rx;
  return Verdict::kTaken;
}

Receiver::Verdict Receiver::on_read_response(const ddp::TaggedHeader& header, ConstBytes payload, ConstBytes ulpdu) {
  SendEntry* read = requests_.oldest_read();
  if (read == nullptr) return refuse(ddp::Error::kInvalidStag, ulpdu);
  const auto refuse_as = [&](ddp::Error error, WorkStatus status = WorkStatus::kFatal) {
    return refuse_response(to_terminate(error), status, ulpdu);
  };
  // RDMAP-5.2.2-08: matched, so that the sink needs no remote write right.
  if (!payload.empty()) {
    if (header.stag != sink_stag(read->wr)) return refuse_as(ddp::Error::kInvalidStag);
    if (header.to > std::numeric_limits<std::uint64_t>::max() - payload.size())
      return refuse_as(ddp::Error::kToWrap);  // RDMAP-4.4-08
    if (header.to != sink_to(read->wr) + read->read) return refuse_as(ddp::Error::kBaseBounds);
  }
  const std::uint64_t left = read->len - read->read;
  if (payload.size() > left) return refuse_as(ddp::Error::kBaseBounds);
  if (header.last && payload.size() != left) return refuse_as(ddp::Error::kBaseBounds);
  views_.clear();
  if (resolve_range(memory_, scope_, read->wr.sg_list, read->read, payload.size(), ddp::Right::kLocalWrite, views_))
    return refuse_as(ddp::Error::kLocalCatastrophic, WorkStatus::kLocalProtection);
  scatter(payload, views_);
  read->read += payload.size();
  counters_.read_octets_rx += payload.size();
  if (header.last) requests_.finish_read(WorkStatus::kSuccess);
  return Verdict::kTaken;
}

Receiver::Verdict Receiver::on_untagged(const ddp::UntaggedHeader& header, ConstBytes payload, ConstBytes ulpdu) {
  if (const auto error = ddp::check_qn(header.qn)) return refuse(*error, ulpdu);
  const Control control = parse_control(header.rsvd_ulp);
  if (control.rv != kRdmapVersion) return refuse(kInvalidVersion, ulpdu);  // RDMAP-7.2-03
  const auto opcode = static_cast<Opcode>(control.opcode);
  if (control.opcode >= kNumOpcodes || is_tagged(opcode) || queue_of(opcode) != header.qn)
    return refuse(kUnexpectedOpcode, ulpdu);  // RDMAP-7.2-02
  if (const auto error = queues_[header.qn].check_msn(header)) return refuse(*error, ulpdu);
  switch (opcode) {
    case Opcode::kReadRequest: return on_read_request(header, payload, ulpdu);
    case Opcode::kTerminate: return on_terminate(header, payload, ulpdu);
    default: return on_send(opcode, header, payload, ulpdu);
  }
}

Receiver::Verdict Receiver::on_send(Opcode opcode, const ddp::UntaggedHeader& header, ConstBytes payload,
                                    ConstBytes ulpdu) {
  ddp::UntaggedQueue& queue = queues_[kSendQn];
  if (queue.open() && opcode != send_opcode_) return refuse(kUnexpectedOpcode, ulpdu);  // notes A-12
  send_opcode_ = opcode;
  if (!recv_) {
    recv_ = recvs_->take();
    if (recv_) recv_len_ = total_len(recv_->sg_list);
  }
  const auto buffer_len = recv_ ? std::optional(recv_len_) : std::nullopt;
  if (const auto error = queue.check(header, payload.size(), buffer_len))
    return refuse_send(to_terminate(*error),
                       *error == ddp::Error::kMessageTooLong ? WorkStatus::kLocalLength : WorkStatus::kFlushed, ulpdu);
  views_.clear();
  if (resolve_range(memory_, scope_, recv_->sg_list, queue.received(), payload.size(), ddp::Right::kLocalWrite, views_))
    return refuse_send(to_terminate(ddp::Error::kLocalCatastrophic), WorkStatus::kLocalProtection, ulpdu);
  // The payload's memory has been found first: an STag is given up only for a message that is delivered.
  if (header.last && invalidates(opcode)) {  // RDMAP-5.3-14
    const auto result = memory_.invalidate(scope_, ddp::Stag{header.rsvd_ulp_8_39});
    if (const auto* error = std::get_if<ddp::AccessError>(&result))
      return refuse_send(to_invalidate_terminate(*error), WorkStatus::kRemoteInvalidRequest, ulpdu);  // RDMAP-5.3-15
  }
  scatter(payload, views_);
  if (const auto len = queue.advance(header, payload.size())) deliver(opcode, header, *len);
  return Verdict::kTaken;
}

void Receiver::deliver(Opcode opcode, const ddp::UntaggedHeader& header, std::uint32_t len) {
  Completion c;
  c.wr_id = recv_->wr_id;
  c.op = WorkOp::kRecv;
  c.byte_len = len;
  c.solicited = is_solicited(opcode);
  if (invalidates(opcode)) c.invalidated = ddp::Stag{header.rsvd_ulp_8_39};
  recv_.reset();
  ++counters_.sends_rx;
  events_.push_back(std::move(c));
}

Receiver::Verdict Receiver::on_read_request(const ddp::UntaggedHeader& header, ConstBytes payload, ConstBytes ulpdu) {
  ddp::UntaggedQueue& queue = queues_[kReadRequestQn];
  // Queue 1 has one buffer of a header's size for each IRD slot (notes N-10).
  const auto buffer_len = reads_.size() < ird_ ? std::optional<std::uint64_t>(kReadRequestHeaderLen) : std::nullopt;
  if (const auto error = queue.check(header, payload.size(), buffer_len)) return refuse(*error, ulpdu);
  const auto request = parse_read_request_header(payload);
  if (!header.last || !request) return refuse(kStreamCatastrophic, ulpdu);  // notes N-11, N-16
  if (request->size > 0) {                                                  // RDMAP-5.2.1-14
    const auto source =
        memory_.resolve(scope_, request->src_stag, request->src_to, request->size, ddp::Right::kRemoteRead);
    if (const auto* error = std::get_if<ddp::AccessError>(&source))
      return refuse(to_read_terminate(*error), ulpdu, Headers::kDdpAndRdma);
  }
  queue.advance(header, payload.size());
  ++counters_.reads_rx;
  InboundRead read;
  read.request = *request;
  std::copy_n(ulpdu.begin(), read.ddp_header.size(), read.ddp_header.begin());
  reads_.push_back(read);
  return Verdict::kTaken;
}

Receiver::Verdict Receiver::on_terminate(const ddp::UntaggedHeader& header, ConstBytes payload, ConstBytes ulpdu) {
  // A body beyond what a Terminate can hold is no reason to answer one with another: what follows it is ignored.
  const std::uint64_t buffer_len = std::max(kTerminateMaxLen, payload.size());
  if (const auto error = queues_[kTerminateQn].check(header, payload.size(), buffer_len)) return refuse(*error, ulpdu);
  const auto message = parse_terminate(payload);
  if (!header.last || !message) return Verdict::kBadTerminate;
  message_ = *message;
  return Verdict::kTerminate;
}

Receiver::Verdict Receiver::refuse(Terminate what, ConstBytes ulpdu, Headers headers) {
  constexpr std::uint8_t kTaggedBit = 0x80;
  message_ = {};
  message_.what = what;
  if (headers == Headers::kNone) return Verdict::kRefused;
  message_.segment_len = static_cast<std::uint16_t>(ulpdu.size());  // RDMAP-4.8-14
  const std::size_t len = (ulpdu[0] & kTaggedBit) != 0 ? ddp::kTaggedHeaderLen : ddp::kUntaggedHeaderLen;
  assert(ulpdu.size() >= len);
  std::copy_n(ulpdu.begin(), len, message_.ddp_header.begin());
  message_.ddp_header_len = len;
  if (headers == Headers::kDdpAndRdma) {  // RDMAP-4.8-18
    std::copy_n(ulpdu.begin() + static_cast<std::ptrdiff_t>(len), kReadRequestHeaderLen, message_.rdma_header.begin());
    message_.has_rdma_header = true;
  }
  return Verdict::kRefused;
}

Receiver::Verdict Receiver::refuse_response(Terminate what, WorkStatus status, ConstBytes ulpdu) {
  requests_.oldest_read()->done = true;
  requests_.oldest_read()->status = status;
  return refuse(what, ulpdu);
}

Receiver::Verdict Receiver::refuse_send(Terminate what, WorkStatus status, ConstBytes ulpdu) {
  fail_recv(status, what);
  return refuse(what, ulpdu);
}

void Receiver::fail_recv(WorkStatus status, const std::optional<Terminate>& why) {
  if (!recv_) return;
  Completion c;
  c.wr_id = recv_->wr_id;
  c.op = WorkOp::kRecv;
  c.status = status;
  c.terminate = why;
  recv_.reset();
  events_.push_back(std::move(c));
}

void Receiver::flush(const std::optional<Terminate>& why) {
  fail_recv(WorkStatus::kFlushed, why);
}

}  // namespace weft::rdmap
