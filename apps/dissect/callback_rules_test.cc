// Callbacks of NFSv4.1 as Calls of the reverse direction: when they may come, and in which form.
#include "apps/dissect/callback_rules.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "apps/dissect/testing/rpc2.h"

namespace weft::apps::dissect {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Octets;
using testing::Talk;
using testing::Wire;

constexpr std::uint32_t kDestroySession = 44, kCreateSession = 43, kBindConnToSession = 41;

// An operation of NFSv4.1 with its arguments.
Octets operation(std::uint32_t number, std::uint32_t max_request = 0) {
  Octets octets;
  rpcrdma::xdr::XdrWriter out(octets);
  out.u32(number);
  const auto session = [&out] { out.raw(Octets(16)); };
  const auto attrs = [&out](std::uint32_t request) {
    for (const std::uint32_t word : {0u, request, request, 64u, 2u, 1u, 0u}) out.u32(word);
  };
  if (number == kDestroySession) session();
  if (number == kBindConnToSession) {
    session();
    out.u32(3);
    out.u32(0);
  }
  if (number == kCreateSession) {
    out.u64(1);
    out.u32(1);
    out.u32(2);  // CREATE_SESSION4_FLAG_CONN_BACK_CHAN
    attrs(1 << 20);
    attrs(max_request);
    out.u32(0x40000000);
    out.u32(0);
  }
  return octets;
}

struct Callbacks : ::testing::Test {
  Callbacks() {
    talk.wire.open();
    client_calls(operation(kDestroySession));
  }
  void client_calls(const Octets& compound, std::uint32_t version = 4) {
    Octets args;
    rpcrdma::xdr::XdrWriter out(args);
    out.u32(0);  // tag
    out.u32(1);  // minorversion
    out.u32(1);
    out.raw(compound);
    Octets rpc;
    rpcrdma::xdr::XdrWriter call(rpc);
    rpcrdma::emit_call(call, {++xid, 100003, version, 1, {}, {}});
    call.raw(args);
    rpcrdma::v1::Header header;
    header.xid = xid;
    header.credit = Talk::kCredits;
    talk.send(Wire::kClient, testing::message(header, rpc));
    talk.reply(xid);
  }
  std::vector<std::string> server_calls(bool in_chunk = false) {
    talk.told.findings.clear();
    rpcrdma::v1::Header header;
    header.xid = ++xid;
    header.credit = Talk::kCredits;
    Octets rpc;
    rpcrdma::xdr::XdrWriter call(rpc);
    rpcrdma::emit_call(call, {xid, 0x40000000, 1, 0, {}, {}});
    if (in_chunk) {
      header.proc = rpcrdma::v1::Proc::kNomsg;
      header.lists.read_list.push_back({.position = 0, .target = {.handle = 7, .length = 4096}});
      rpc.clear();
    }
    talk.send(Wire::kServer, testing::message(header, rpc));
    return talk.told.findings;
  }
  Talk talk;
  std::uint32_t xid = 0;
};

TEST_F(Callbacks, AClientIsReadyBehindCreateSession) {
  EXPECT_THAT(server_calls(), ElementsAre("R1-7.3.1-01"));
  client_calls(operation(kCreateSession, 4096));
  EXPECT_THAT(server_calls(), IsEmpty());
}
TEST_F(Callbacks, AClientIsReadyBehindBindConnToSession) {
  client_calls(operation(kBindConnToSession));
  EXPECT_THAT(server_calls(), IsEmpty());
}
// Its operations may be any.
TEST_F(Callbacks, BehindACallThatCannotBeReadNothingIsJudged) {
  client_calls(operation(9999));
  EXPECT_THAT(server_calls(), IsEmpty());
}
TEST_F(Callbacks, LongCallsNeedAClientThatTakesThem) {
  client_calls(operation(kCreateSession, 1024));
  EXPECT_THAT(server_calls(), IsEmpty());
  EXPECT_THAT(server_calls(true), ElementsAre("U1-6.5.2-05"));
  client_calls(operation(kCreateSession, 8192));
  EXPECT_THAT(server_calls(true), IsEmpty());
}
// Its session may come from another connection.
TEST_F(Callbacks, ABoundConnectionMayHaveAnyLength) {
  client_calls(operation(kBindConnToSession));
  client_calls(operation(kCreateSession, 1024));
  EXPECT_THAT(server_calls(true), IsEmpty());
}
// Without NFSv4, the ends may be ready in their own way.
TEST(OtherCallbacks, WithoutNfs4NothingIsJudged) {
  Talk talk;
  talk.wire.open();
  talk.call(1);
  talk.reply(1);
  talk.send_reverse(Wire::kServer, 9);
  EXPECT_THAT(talk.told.findings, IsEmpty());
}

}  // namespace
}  // namespace weft::apps::dissect
