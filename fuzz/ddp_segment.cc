// Parse, emit, parse again for DDP segments, and the checks of an untagged queue on each well-formed segment.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "ddp/segment.h"
#include "ddp/untagged_queue.h"

namespace {

using namespace weft;

void check(bool holds) {
  if (!holds) std::abort();
}

std::vector<std::uint8_t> emit(const ddp::Segment& segment) {
  std::vector<std::uint8_t> out(ddp::kUntaggedHeaderLen, 0xa5);
  if (const auto* tagged = std::get_if<ddp::TaggedHeader>(&segment.header)) {
    ddp::emit_header(*tagged, std::span(out).first<ddp::kTaggedHeaderLen>());
    out.resize(ddp::kTaggedHeaderLen);
  } else {
    ddp::emit_header(std::get<ddp::UntaggedHeader>(segment.header), std::span(out).first<ddp::kUntaggedHeaderLen>());
  }
  out.insert(out.end(), segment.payload.begin(), segment.payload.end());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const weft::ConstBytes octets(data, size);
  const auto wire = ddp::parse_segment_wire(octets);
  const auto segment = ddp::parse_segment(octets);
  if (!wire) {
    check(!segment && segment.error() == ddp::Error::kLocalCatastrophic);
    return 0;
  }
  check(emit(*wire) == std::vector<std::uint8_t>(octets.begin(), octets.end()));
  // A DV is right for the streams of one version alone.
  const auto rdmac = ddp::parse_segment(octets, 0);
  check(!(segment && rdmac));
  if (!segment) return 0;
  check(segment->header == wire->header);
  if (const auto* header = std::get_if<ddp::UntaggedHeader>(&segment->header)) {
    constexpr std::uint64_t kBufferLen = 4096;
    ddp::UntaggedQueue queue(header->msn);
    const std::size_t len = segment->payload.size();
    if (!queue.check(*header, len, kBufferLen)) {
      check(header->mo == 0 && len <= kBufferLen);
      const auto delivered = queue.advance(*header, len);
      check(delivered.has_value() == header->last && delivered.value_or(len) == len);
    }
  }
  return 0;
}
