#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "rpcrdma/framing.h"
#include "rpcrdma/reassembly.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::rpcrdma {

// Continuation: an RPC message that goes in several messages (draft-ietf-nfsv4-rpcrdma-version-two-07 section 6.6.2),
// and how much of its Payload stream has been sent. The pieces, and the octets that they view, outlive it. A value.
class Continuation {
 public:
  Continuation() = default;
  // last_len: octets of the Payload stream that fit in the last message, at least kLeastLast. The stream is longer.
  Continuation(Reassembly::Part::Direction direction, std::uint32_t xid, std::span<const ConstBytes> pieces,
               std::size_t last_len)
      : direction_(direction), xid_(xid), last_len_(last_len) {
    go_on_with(pieces);
  }

  Reassembly::Part::Direction direction() const { return direction_; }
  std::uint32_t xid() const { return xid_; }
  std::size_t remaining() const { return remaining_; }
  // Whether another message comes before the last one.
  bool needs_part() const { return remaining_ > last_len_; }
  // The length of the next part if at most `room` octets fit. The last message gets some octets, too, and parts end at
  // multiples of four octets.
  std::size_t next_len(std::size_t room) const {
    return std::min(room, remaining_ - kLeastPart) / kLeastPart * kLeastPart;
  }
  // go_on_with: the octets that are left stand in these pieces.
  void go_on_with(std::span<const ConstBytes> pieces) {
    pieces_ = pieces;
    piece_ = done_ = remaining_ = 0;
    for (const ConstBytes piece : pieces) remaining_ += piece.size();
  }
  // Writes the next `len` octets.
  void write(xdr::XdrWriter& out, std::size_t len) {
    remaining_ -= len;
    while (len != 0) {
      const ConstBytes rest = pieces_[piece_].subspan(done_);
      const std::size_t now = std::min(len, rest.size());
      out.raw(rest.first(now));
      len -= now;
      done_ += now;
      if (done_ < pieces_[piece_].size()) continue;
      ++piece_;
      done_ = 0;
    }
  }

 private:
  Reassembly::Part::Direction direction_ = Reassembly::Part::Direction::kCall;
  std::uint32_t xid_ = 0;
  std::span<const ConstBytes> pieces_;
  std::size_t last_len_ = 0;
  std::size_t remaining_ = 0;
  std::size_t piece_ = 0;  // the piece that goes on next
  std::size_t done_ = 0;   // octets of it
};

}  // namespace weft::rpcrdma
