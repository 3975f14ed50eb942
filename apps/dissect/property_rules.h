#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "apps/dissect/frame.h"
#include "apps/dissect/queue.h"
#include "base/bytes.h"
#include "rpcrdma/policies.h"
#include "rpcrdma/v2/properties.h"
#include "rpcrdma/v2_cel05/header.h"

namespace weft::apps::dissect {

struct TransportHeader;

// PropertyRules judges the properties that the sides of a connection of version 2 tell each other
// (draft-cel-nfsv4-rpcrdma-version-two-05 sections 3.3 and 6.3.3, draft-ietf-nfsv4-rpcrdma-version-two-07
// sections 4.2.2 and 5). The caller calls it only while the capture has every message of both sides until now, whole
// and in order. A value without I/O; it remembers at most kMaxRequests requests of each side, and no request for more
// than kMaxWanted properties.
class PropertyRules {
 public:
  static constexpr std::size_t kMaxRequests = 64;
  static constexpr std::size_t kMaxWanted = 64;
  static constexpr std::size_t kDefaultSize = 4096;

  // on_message: a message whose header can be read.
  void on_message(Side from, rpcrdma::Protocol protocol, const TransportHeader& header, ConstBytes message,
                  Frame& frame);
  // A message without a header that can be read may have told any property.
  void on_unreadable() { has_unread_ = true; }
  // The capture lacks messages.
  void on_lost() {
    has_unread_ = true;
    for (Half& each : halves_) each.has_forgotten = true;
  }

  // max_receive is the most that a side may take, as far as properties say: the default, or the highest size that was
  // told or asked for.
  std::size_t max_receive(Side of) const;
  // may_take_reverse_calls: the side has told that it does.
  bool may_take_reverse_calls(Side of) const { return has_unread_ || half(of).takes_reverse_calls; }

 private:
  struct Request {
    std::uint32_t xid = 0;
    std::vector<std::uint32_t> wanted;  // the number of each property
  };
  struct Half {
    Queue<Request> requests;     // without an answer
    bool has_forgotten = false;  // requests
    std::size_t max_receive = kDefaultSize;
    bool takes_reverse_calls = false;
  };

  Half& half(Side side) { return halves_[static_cast<std::size_t>(side)]; }
  const Half& half(Side side) const { return halves_[static_cast<std::size_t>(side)]; }
  void take(Side of, const rpcrdma::v2::Propset& set, const rpcrdma::v2::PropertyTable& table);
  void on_cel05(Side from, const rpcrdma::v2_cel05::Header& header, Frame& frame);
  void on_request(Side from, std::uint32_t xid, const rpcrdma::v2_cel05::Reqprop& body);
  void on_answer(Side from, std::uint32_t xid, const rpcrdma::v2_cel05::Resprop& body, Frame& frame);

  std::array<Half, 2> halves_;
  bool has_unread_ = false;
};

}  // namespace weft::apps::dissect
