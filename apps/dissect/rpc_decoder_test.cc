// What the RPC decoder judges, and what it leaves alone, on connections that are made by hand.
#include "apps/dissect/rpc_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/dissect/testing/rpc.h"
#include "rpcrdma/v2_wg07/header.h"

namespace weft::apps::dissect {
namespace {

namespace wg07 = rpcrdma::v2_wg07;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Octets;
using testing::pattern;
using testing::rpc_call;
using testing::Talk;
using testing::untagged;
using testing::Wire;

Octets wg07_message(std::uint32_t xid, wg07::Body body, ConstBytes payload) {
  Octets octets;
  rpcrdma::xdr::XdrWriter out(octets);
  emit_header(out, wg07::Header{.xid = xid, .credit = 8, .body = std::move(body)});
  out.raw(payload);
  return octets;
}

// The last part of one message and the first part of the next are missing: the parts belong together no more.
TEST(RpcDecoder, PartsEndAtAGap) {
  Talk talk;
  talk.wire.open();
  const Octets rpc = rpc_call(1, 0, pattern(80));
  const auto front = ConstBytes(rpc).first(40), back = ConstBytes(rpc).subspan(40);
  talk.send(Wire::kClient, wg07_message(1, wg07::CallInline{}, rpc));
  talk.send(Wire::kClient, wg07_message(2, wg07::CallMiddle{.remaining = 80}, front));
  talk.lose(Wire::kClient, wg07_message(2, wg07::CallInline{}, back));
  talk.wire.on_segment(talk.wire.segment(Wire::kServer, {}));
  const Octets other = rpc_call(3, 0, {});
  talk.send(Wire::kClient, wg07_message(3, wg07::CallInline{}, other));
  talk.send(Wire::kClient, wg07_message(4, wg07::CallInline{}, rpc_call(4, 0, {})));
  talk.dissector.finish();
  EXPECT_THAT(talk.told.lines, Contains(HasSubstr("RDMA2_CALL_INLINE, XID 0x00000004")));
  EXPECT_THAT(talk.told.findings, IsEmpty());
}

}  // namespace
}  // namespace weft::apps::dissect
