// What a client answers to Calls of the server that the capture lacks, or that cannot be read (RFC 8166 section 4.5,
// RFC 8167 section 5.3).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/dissect/testing/rpc2.h"

namespace weft::apps::dissect {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Octets;
using testing::reply_chunk;
using testing::rpc_call;
using testing::Talk;
using testing::Wire;

constexpr std::uint32_t kReverseXid = 0x99;

rpcrdma::v1::Header reverse_header(rpcrdma::v1::Proc proc) {
  rpcrdma::v1::Header header;
  header.xid = kReverseXid;
  header.credit = Talk::kCredits;
  header.proc = proc;
  return header;
}
Octets reverse_refusal() {
  return testing::message(reverse_header(rpcrdma::v1::Proc::kError), {});
}
Octets reverse_reply_in_chunk() {
  auto header = reverse_header(rpcrdma::v1::Proc::kNomsg);
  header.lists = reply_chunk(0x55, 24);
  return testing::message(header, {});
}
Octets reverse_call() {
  return testing::message(reverse_header(rpcrdma::v1::Proc::kMsg), rpc_call(kReverseXid, 0, {}));
}
// The client's first message of all has its answer.
struct ReverseCall : ::testing::Test {
  ReverseCall() {
    talk.wire.open();
    talk.call(1);
    talk.reply(1);
  }
  Talk talk;
};

TEST_F(ReverseCall, IsRefusedThoughTheCaptureLacksIt) {
  for (const Octets& answer : {reverse_refusal(), reverse_reply_in_chunk()}) {
    talk.lose(Wire::kServer, reverse_call());
    talk.send(Wire::kClient, answer);
    talk.call(2);
    talk.reply(2);
  }
  talk.dissector.finish();
  EXPECT_THAT(talk.told.findings, IsEmpty());
}
// The server's next message shows that one is missing, and not which XID it has.
TEST_F(ReverseCall, IsRefusedBehindTheNextMessage) {
  talk.call(2);
  talk.lose(Wire::kServer, reverse_call());
  talk.reply(2);
  talk.send(Wire::kClient, reverse_refusal());
  talk.dissector.finish();
  EXPECT_THAT(talk.told.findings, IsEmpty());
}
TEST_F(ReverseCall, IsRefusedIfItCannotBeRead) {
  constexpr std::size_t kVersionAt = 7, kProcAt = 15, kReadListAt = 19;
  for (const std::size_t at : {kVersionAt, kProcAt, kReadListAt}) {
    Octets call = reverse_call();
    call[at] = 7;
    talk.send(Wire::kServer, call);
    talk.told.findings.clear();
    Octets refusal = reverse_refusal();
    if (at == kVersionAt) {
      auto header = reverse_header(rpcrdma::v1::Proc::kError);
      header.vers = 7;
      header.err = rpcrdma::v1::Err::kVers;
      header.vers_low = header.vers_high = 1;
      refusal = testing::message(header, {});
    }
    talk.send(Wire::kClient, refusal);
    EXPECT_THAT(talk.told.findings, IsEmpty()) << at;
  }
}
TEST_F(ReverseCall, IsNeededForARefusalOfTheClient) {
  talk.send(Wire::kClient, reverse_refusal());
  EXPECT_THAT(talk.told.findings, ElementsAre("R1-5.2.4-03"));
}

}  // namespace
}  // namespace weft::apps::dissect
