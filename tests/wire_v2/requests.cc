#include "tests/wire_v2/requests.h"

#include <algorithm>

namespace weft::wire_v2 {
namespace {

bool holds(const Segment& segment, const Segment& octets) {
  if (segment.handle != octets.handle || octets.offset < segment.offset) return false;
  const std::uint64_t at = octets.offset - segment.offset;
  return at <= segment.length && octets.length <= segment.length - at;
}

bool any_read(const ReadList& reads, const Segment& octets) {
  return std::ranges::any_of(reads, [&](const ReadSegment& read) { return holds(read.target, octets); });
}

bool any(const Chunk& chunk, const Segment& octets) {
  return std::ranges::any_of(chunk, [&](const Segment& segment) { return holds(segment, octets); });
}

template <typename Predicate>
Request* find_if(std::vector<Request>& requests, Predicate predicate) {
  const auto at = std::ranges::find_if(requests, predicate);
  return at == requests.end() ? nullptr : &*at;
}

}  // namespace

Request* Requests::find_rpc(std::uint32_t xid) {
  return find_if(open_, [xid](const Request& request) { return request.is_rpc && request.header.xid == xid; });
}

Request* Requests::find_option(std::uint32_t xid) {
  return find_if(open_, [xid](const Request& request) {
    return request.header.kind == Kind::kOption && request.header.xid == xid;
  });
}

Request* Requests::find_any(std::uint32_t xid) {
  if (Request* request = find_rpc(xid)) return request;
  return find_if(open_, [xid](const Request& request) { return request.header.xid == xid; });
}

void Requests::close(const Request* request) {
  open_.erase(open_.begin() + (request - open_.data()));
}

bool Requests::offers_read(const Segment& octets) const {
  return std::ranges::any_of(open_, [&](const Request& request) {
    return any_read(request.header.call, octets) || any_read(request.header.reads, octets);
  });
}

bool Requests::offers_write(const Segment& octets) {
  for (Request& request : open_) {
    const Message& header = request.header;
    const bool in_writes = std::ranges::any_of(header.writes, [&](const Chunk& chunk) { return any(chunk, octets); });
    if (!in_writes && !(header.reply && any(*header.reply, octets))) continue;
    std::uint64_t& end = request.written[octets.handle];
    end = std::max(end, octets.offset + octets.length);
    return true;
  }
  return false;
}

std::vector<std::uint32_t> Requests::unanswered() const {
  std::vector<std::uint32_t> xids;
  for (const Request& request : open_) {
    if (request.is_rpc) xids.push_back(request.header.xid);
  }
  return xids;
}

}  // namespace weft::wire_v2
