#include "apps/dissect/message_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rpcrdma/xdr/xdr.h"

namespace weft::apps::dissect {

void MessageParts::on_gap() {
  drop();
  may_lack_front_ = true;
}

void MessageParts::drop() {
  held_.now -= octets_.capacity();
  octets_ = {};
  len_ = 0;
  is_under_way_ = false;
}

void MessageParts::judge(const TransportHeader& header, Frame& frame) const {
  const bool is_part = header.is_middle || header.has_payload || header.external;
  if (!is_under_way_ || !is_part || (header.xid == xid_ && !header.external)) return;
  frame.findings.push_back({header.xid == xid_ ? "W2-6.3.6-3" : "W2-6.3.6-4",
                            fmt::format("a message inside the parts of {:#010x}", xid_),
                            "the receiver answers RDMA2_ERR_INVAL_CONT and drops the parts"});
}

void MessageParts::take(const TransportHeader& header, ConstBytes part) {
  if (header.xid != xid_) drop();
  if (lacks_front(header, part)) return;
  may_lack_front_ = false;
  xid_ = header.xid;
  is_under_way_ = true;
  const bool is_cut = len_ != octets_.size();
  len_ += part.size();
  const std::size_t kept = std::min(part.size(), kMax - octets_.size());
  const std::size_t size = octets_.size() + kept;
  const std::size_t more = size - std::min(size, octets_.capacity());
  if (is_cut || held_.now + more > HeldMessages::kMax) return;
  held_.now -= octets_.capacity();
  octets_.insert(octets_.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(kept));
  held_.now += octets_.capacity();
}

bool MessageParts::ends(const TransportHeader& header) const {
  return is_under_way_ && header.has_payload && header.xid == xid_;
}

// The first part begins with the XID, as the header does.
bool MessageParts::lacks_front(const TransportHeader& header, ConstBytes payload) const {
  if (!may_lack_front_) return false;
  rpcrdma::xdr::XdrReader in(payload);
  std::uint32_t xid = 0;
  return !in.u32(xid) || xid != header.xid;
}

MessageParts::Joined MessageParts::join(ConstBytes last) {
  held_.now -= octets_.capacity();
  is_under_way_ = false;
  const bool is_cut = len_ != octets_.size();
  Joined joined{std::exchange(octets_, {}), std::exchange(len_, 0) + last.size()};
  if (!is_cut) joined.octets.insert(joined.octets.end(), last.begin(), last.end());
  return joined;
}

}  // namespace weft::apps::dissect
