#pragma once

#include <gmock/gmock.h>

#include <vector>

#include "rpcrdma/testing/requester.h"
#include "rpcrdma/testing/wg07.h"

// A requester of wg07 whose peer is the test.
namespace weft::rpcrdma::testing {

namespace wg07 = v2_wg07;

struct Wg07RequesterTest : RequesterTest {
  void open(RequesterEnd::Options options = {}) {
    options.protocol = Protocol::k2Wg07;
    // Most tests look at three parts.
    if (!options.chunks.max_continued_call) options.chunks.max_continued_call = 16 << 10;
    RequesterTest::open(options);
    outcomes.clear();
  }
  Wg07Message message(std::size_t i) { return wg07_parse(sent(i)); }
  std::uint32_t xid_of(std::size_t i) { return message(i).header.xid; }
  void call_of(const Octets& args, std::size_t max_results = 0) {
    CallSpec spec;
    spec.args = args;
    spec.max_results = max_results;
    call(spec);
  }
  // Answers a Call without chunks.
  void answer(std::uint32_t xid, std::uint32_t credit = kManyCredits, const Octets& results = {}) {
    deliver(wg07_octets(xid, credit, wg07::ReplyInline{}, rpc_reply(xid, results)));
  }
  // The first Call is answered, and the server gives so many credits for messages.
  void settle(std::uint32_t credit = kManyCredits) {
    call_of({});
    answer(xid_of(0), credit);
    ASSERT_EQ(outcomes.size(), 1u);
    outcomes.clear();
    end->qp.sent.clear();
  }
  // Calls of procedure WRITE with `num` buffers of `len` octets.
  void call_with_pieces(std::size_t num, std::size_t len) {
    data_.assign(num * len, 0x5a);
    args_ = write_args(data_.size());
    std::vector<ConstBytes> pieces;
    for (std::size_t i = 0; i < num; ++i) pieces.push_back(ConstBytes(data_).subspan(i * len, len));
    pieces_ = pieces;
    items_ = {ArgumentItem{write_position(), pieces_}};
    CallSpec spec;
    spec.procedure = kWrite;
    spec.args = args_;
    spec.items = items_;
    call(spec);
  }

  Octets data_, args_;
  std::vector<ConstBytes> pieces_;
  std::vector<ArgumentItem> items_;
};

}  // namespace weft::rpcrdma::testing
