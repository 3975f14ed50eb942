#pragma once

#include <array>
#include <cstdint>

#include "ddp/segment.h"
#include "rdmap/header.h"
#include "rdmap/ring.h"
#include "rdmap/terminate.h"

namespace weft::rdmap {

// InboundRead is a Read Request of the peer that has been checked and not wholly answered: it occupies one of our IRD
// slots until TCP took the last octet of its Response.
struct InboundRead {
  ReadRequestHeader request;
  // As received, in case the answer becomes impossible half way (RFC 5040 section 4.8).
  std::array<std::uint8_t, ddp::kUntaggedHeaderLen> ddp_header{};
};

// InboundReads are answered in the order in which they came (RFC 5040 section 5.5 rule 20).
using InboundReads = Ring<InboundRead>;

// refuse_read is the body of the Terminate that ends `read` after `sent` octets of its Response have left: the returned
// header describes what is left of it (RDMAP-4.8-20).
inline TerminateMessage refuse_read(const InboundRead& read, std::uint32_t sent, Terminate why) {
  TerminateMessage m;
  m.what = why;
  m.segment_len = static_cast<std::uint16_t>(ddp::kUntaggedHeaderLen + kReadRequestHeaderLen);
  m.ddp_header = read.ddp_header;
  m.ddp_header_len = ddp::kUntaggedHeaderLen;
  ReadRequestHeader left = read.request;
  left.sink_to += sent;
  left.src_to += sent;
  left.size -= sent;
  m.rdma_header = emit_read_request_header(left);
  m.has_rdma_header = true;
  return m;
}

}  // namespace weft::rdmap
