#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "ddp/segment.h"
#include "rdmap/atomic.h"
#include "rdmap/header.h"
#include "rdmap/ring.h"
#include "rdmap/terminate.h"

namespace weft::rdmap {

// InboundAtomic makes an InboundRead an Atomic Operation. The operation is carried out in its turn, after the Responses
// of all earlier Reads. It is carried out once, however often its Response is framed.
struct InboundAtomic {
  AtomicRequestHeader request;
  ddp::Msn msn;                           // of the Response, on queue 3 (EXT-5-06)
  std::optional<std::uint64_t> original;  // the word's value before the operation, once that was carried out
};

// InboundRead is a Read or Atomic Request of the peer that was checked and is not fully answered. It occupies one of
// our IRD slots until TCP takes the last octet of its Response.
struct InboundRead {
  ReadRequestHeader request;            // of a Read
  std::optional<InboundAtomic> atomic;  // of an Atomic
  // The header as received, for a Terminate if the answer fails half way (RFC 5040 section 4.8).
  std::array<std::uint8_t, ddp::kUntaggedHeaderLen> ddp_header{};
};

// InboundReads are answered in the order in which they came (RFC 5040 section 5.5 rule 20, RFC 7306 section 5.4).
using InboundReads = Ring<InboundRead>;

// refuse_read is the body of the Terminate that ends `read` after `sent` octets of its Response have left. The returned
// header describes the remaining part (RDMAP-4.8-20). For an Atomic, only the DDP header goes back (EXT-8.1-02).
inline TerminateMessage refuse_read(const InboundRead& read, std::uint32_t sent, Terminate why) {
  TerminateMessage m;
  m.what = why;
  const std::size_t header_len = read.atomic ? kAtomicRequestHeaderLen : kReadRequestHeaderLen;
  m.segment_len = static_cast<std::uint16_t>(ddp::kUntaggedHeaderLen + header_len);
  m.ddp_header = read.ddp_header;
  m.ddp_header_len = ddp::kUntaggedHeaderLen;
  if (read.atomic) return m;
  ReadRequestHeader left = read.request;
  left.sink_to += sent;
  left.src_to += sent;
  left.size -= sent;
  m.rdma_header = emit_read_request_header(left);
  m.has_rdma_header = true;
  return m;
}

}  // namespace weft::rdmap
