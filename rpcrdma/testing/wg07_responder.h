#pragma once

#include <algorithm>

#include "rpcrdma/testing/responder.h"
#include "rpcrdma/testing/wg07.h"

// A responder of wg07 whose peer is the test.
namespace weft::rpcrdma::testing {

namespace wg07 = v2_wg07;

struct Wg07ResponderTest : ResponderTest {
  void open(ResponderEnd::Options options = {}) {
    options.protocols = {Protocol::k2Wg07};
    ResponderTest::open(options);
    end->link->set_now(at(0));
    // The first exchange gives the client its credits.
    deliver_null(1, first_credit);
    answer({});
    num_sent = static_cast<std::uint32_t>(end->qp.sent.size());
    end->qp.sent.clear();
    end->service.calls.clear();
    end->service.args.clear();
  }
  void deliver(const Octets& octets) {
    ASSERT_TRUE(end->qp.inject(octets));
    end->pump();
  }
  template <typename Body>
  void deliver(const Body& body, const Octets& payload, std::uint32_t xid = 5, std::uint32_t credit = kManyCredits) {
    deliver(wg07_octets(xid, credit, body, payload));
  }
  void deliver_null(std::uint32_t xid, std::uint32_t credit = kManyCredits) {
    deliver(wg07::CallInline{}, rpc_call(kNull, {}, xid), xid, credit);
  }
  // The Call with this XID, in parts of `len` octets.
  void deliver_parts(const Octets& whole, std::size_t len, std::uint32_t xid = 5) {
    for (std::size_t at = 0; at < whole.size(); at += len) {
      const std::size_t to = std::min(at + len, whole.size());
      const Octets part = part_of(whole, at, to);
      if (to < whole.size()) {
        deliver(wg07::CallMiddle{static_cast<std::uint32_t>(whole.size() - to)}, part, xid);
      } else {
        deliver(wg07::CallInline{}, part, xid);
      }
    }
  }
  Wg07Message last_sent() { return wg07_parse(end->qp.sent.back()); }
  // The error in the last Send.
  wg07::Error error() {
    EXPECT_FALSE(end->qp.sent.empty());
    return end->qp.sent.empty() ? wg07::Error{} : last_sent().body<wg07::Error>();
  }
  // Credits for `num` messages more than the first exchange had.
  std::uint32_t credits(std::uint32_t num) const { return num_sent + num; }
  // A next Call is served.
  void expect_alive(std::uint32_t xid) {
    end->qp.sent.clear();
    end->service.calls.clear();
    deliver_null(xid);
    ASSERT_EQ(end->service.calls.size(), 1u);
    answer({});
    ASSERT_EQ(end->qp.sent.size(), 1u);
    EXPECT_EQ(last_sent().header.xid, xid);
    (void)last_sent().body<wg07::ReplyInline>();
  }

  std::uint32_t first_credit = kManyCredits;
  std::uint32_t num_sent = 0;
};

}  // namespace weft::rpcrdma::testing
