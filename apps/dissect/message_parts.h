#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "apps/dissect/frame.h"
#include "apps/dissect/held_messages.h"
#include "apps/dissect/transport_header.h"
#include "base/bytes.h"

namespace weft::apps::dissect {

// MessageParts puts together an RPC message that a side sends in several Sends: the last one has the chunks
// (draft-ietf-nfsv4-rpcrdma-version-two-07 section 6.3.6). A value without I/O; it holds at most kMax octets, and no
// more than HeldMessages has room for.
class MessageParts {
 public:
  static constexpr std::size_t kMax = 1 << 20;

  // held outlives the value.
  explicit MessageParts(HeldMessages& held) : held_(held) {}
  MessageParts(const MessageParts&) = delete;
  MessageParts& operator=(const MessageParts&) = delete;
  ~MessageParts() { drop(); }

  // The capture misses messages: the parts so far belong to no message that will become whole, and the next part may
  // not be the first one of its message.
  void on_gap();
  // is_idle: neither judge nor take has anything to do with a message that is no part.
  bool is_idle() const { return !is_under_way_ && !may_lack_front_; }
  // judge holds a message against the parts before it. It comes before take().
  void judge(const TransportHeader& header, Frame& frame) const;
  // take adds a part that is not the last one.
  void take(const TransportHeader& header, ConstBytes part);
  // ends: whether this message is the last part.
  bool ends(const TransportHeader& header) const;
  // Joined: a message from its parts. Beyond the bounds its first octets alone, or none.
  struct Joined {
    std::vector<std::uint8_t> octets;
    std::size_t len = 0;  // of the whole message
  };
  // join returns all parts with the last one, and forgets them.
  Joined join(ConstBytes last);
  // lacks_front: payload, in a message that is not joined, may be the last part of a message whose first parts the
  // capture lacks.
  bool lacks_front(const TransportHeader& header, ConstBytes payload) const;
  // A message ended that was not joined: the message behind it is whole.
  void on_end() { may_lack_front_ = false; }

 private:
  void drop();

  HeldMessages& held_;
  bool may_lack_front_ = false;  // the capture misses messages since the last one that was whole
  bool is_under_way_ = false;    // a part came; there may have been no room for it
  std::vector<std::uint8_t> octets_;
  std::size_t len_ = 0;  // of all parts
  std::uint32_t xid_ = 0;
};

}  // namespace weft::apps::dissect
