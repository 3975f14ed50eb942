// What a requester of cel05 does with the transport properties of both sides
// (draft-cel-nfsv4-rpcrdma-version-two-05 section 6.2).
#include <gmock/gmock.h>

#include "rpcrdma/testing/cel05_requester.h"
#include "rpcrdma/v2_cel05/properties.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::SizeIs;

struct Cel05RequesterPropertiesTest : Cel05RequesterTest {
  // A client that tells so many octets of its Receives, behind its first Reply. Its own message is Send 1.
  void open_and_tell(std::uint32_t receive_size) {
    open({.inline_threshold = 16384});
    outcomes.clear();
    end->link->exchange_properties({.send_size = 16384, .receive_size = receive_size}, {});
    get_credits();
    ASSERT_THAT(end->qp.sent, SizeIs(2));
    (void)body_of<cel05::Connprop>(1);
  }
  void hear(const Properties& peer, std::uint32_t credit = 8) {
    deliver(octets_of({.credit = credit, .body = cel05::Connprop{.start = make_propset(peer, cel05::kProperties)}}));
  }
  // The last Call's.
  template <typename Body>
  ChunkListsView lists_of_last() {
    return body_of<Body>(end->qp.sent.size() - 1).lists;
  }
};

TEST_F(Cel05RequesterPropertiesTest, TheSizesOfReceivesAreTheThresholds) {
  RecordProperty("proves", "R2-6.2.1-1 R2-6.2.1-2 R2-6.2.1-3");
  open_and_tell(8192);
  call_of(kNull, pattern(5000));
  EXPECT_THAT(lists_of_last<cel05::Nomsg>().read_list, SizeIs(1)) << "the default";
  hear({.receive_size = 8192});
  call_of(kNull, pattern(5000));
  EXPECT_EQ(lists_of_last<cel05::Msg>(), ChunkListsView{});
  call_of(kNull, pattern(8192 - kCallHeaders));
  EXPECT_EQ(lists_of_last<cel05::Msg>(), ChunkListsView{});
  EXPECT_THAT(end->qp.sent.back(), SizeIs(8192));
  call_of(kNull, pattern(8192 - kCallHeaders + 4));
  EXPECT_THAT(lists_of_last<cel05::Nomsg>().read_list, SizeIs(1));
  for (const std::size_t bound : {6000u, 8200u}) {
    CallSpec spec;
    spec.max_results = bound;
    call(spec);
    EXPECT_EQ(lists_of_last<cel05::Msg>().reply_chunk.has_value(), bound > 8192) << bound;
  }
}

// A server that knows no properties says so with either code, or not at all.
TEST_F(Cel05RequesterPropertiesTest, AServerThatTellsNothingHasTheDefaults) {
  RecordProperty("proves", "R2-3.3-3 R2-6.3-2 R2-6.3.1-3");
  for (const auto err : {std::optional<cel05::Err>(), {cel05::Err::kInvalProc}, {cel05::Err::kInvalOption}}) {
    open_and_tell(16384);
    if (err) deliver(octets_of({.xid = header_of(1).xid, .credit = 8, .body = cel05::Error{.err = *err}}));
    for (const std::size_t len : {4096u, 4100u, 9000u}) call_of(kNull, pattern(len - kCallHeaders));
    ASSERT_THAT(end->qp.sent, SizeIs(5));
    EXPECT_THAT(sent(2), SizeIs(4096));
    for (const std::size_t i : {3u, 4u}) EXPECT_THAT(body_of<cel05::Nomsg>(i).lists.read_list, SizeIs(1));
    const std::uint32_t xid = header_of(2).xid;
    Octets reply = octets_of({.xid = xid, .credit = 8, .body = cel05::Msg{.direction = cel05::Direction::kReply}},
                             rpc_reply(xid, pattern(4096 - 36 - 24)));
    ASSERT_THAT(reply, SizeIs(4096));
    deliver(reply);
    ASSERT_THAT(outcomes, SizeIs(2));
    EXPECT_EQ(outcomes[1].status, CallStatus::kSuccess);
    EXPECT_FALSE(end->endpoint->failure());
  }
}

TEST_F(Cel05RequesterPropertiesTest, MessagesAboutPropertiesGrantNothing) {
  RecordProperty("proves", "R2-7.2.2-9");
  open_and_tell(8192);
  for (const std::uint32_t credit : {0u, 1u, 99u}) {
    hear({.receive_size = 8192}, credit);
    deliver(octets_of({.credit = credit, .body = cel05::Updprop{}}));
    deliver(octets_of({.credit = credit, .body = cel05::Reqprop{}}));
    deliver(octets_of({.credit = credit, .body = cel05::Resprop{}}));
    EXPECT_EQ(end->link->credits().granted, 8u) << credit;
  }
}

}  // namespace
}  // namespace weft::rpcrdma::testing
