// A responder of cel05, whose peer is the test (draft-cel-nfsv4-rpcrdma-version-two-05 sections 7.2 and 8).
#include <gmock/gmock.h>

#include "rpcrdma/testing/responder.h"
#include "rpcrdma/v2_cel05/header.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
namespace cel05 = v2_cel05;

Octets octets_of(const cel05::Header& header, const Octets& payload = {}) {
  Octets octets;
  xdr::XdrWriter out(octets);
  emit_header(out, header);
  out.raw(payload);
  return octets;
}

cel05::Header parsed(const Octets& octets) {
  cel05::Header header;
  ConstBytes payload;
  EXPECT_EQ(parse_message(octets, header, payload), v2::HeaderError::kNone);
  return header;
}

struct Cel05ResponderTest : ResponderTest {
  void open(ResponderEnd::Options options = {}) {
    options.protocols = {Protocol::k2Cel05};
    ResponderTest::open(options);
  }
  cel05::Header call_with(cel05::Msg body) { return {.xid = 5, .credit = 8, .body = std::move(body)}; }
  void deliver(const Octets& octets) {
    ASSERT_TRUE(end->qp.inject(octets));
    end->pump();
  }
  // The answer to the message, which has to be one RDMA2_ERROR.
  cel05::Error refused(const Octets& octets) {
    const std::size_t before = end->qp.sent.size();
    deliver(octets);
    EXPECT_THAT(end->qp.sent, SizeIs(before + 1));
    if (end->qp.sent.size() == before) return {};
    const cel05::Header header = parsed(end->qp.sent.back());
    EXPECT_EQ(header.xid, 5u);
    EXPECT_TRUE(std::holds_alternative<cel05::Error>(header.body));
    return std::get<cel05::Error>(header.body);
  }
};

TEST_F(Cel05ResponderTest, ACallIsAnsweredInItsVersionAndDirection) {
  open({.credits = 8});
  deliver(octets_of(call_with({}), rpc_call(kNull)));
  answer({});
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  const cel05::Header header = parsed(end->qp.sent[0]);
  EXPECT_EQ(header.xid, 5u);
  EXPECT_EQ(header.vers, 2u);
  EXPECT_EQ(header.credit, 8u);
  const auto& body = std::get<cel05::Msg>(header.body);
  EXPECT_EQ(body.direction, cel05::Direction::kReply);
  EXPECT_EQ(body.inv_handle, 0u);
}

// No engine sees this message, so none would notice.
TEST_F(Cel05ResponderTest, AMessageAboutPropertiesInvalidatesNothing) {
  open();
  end->link->exchange_properties({}, {});
  deliver_invalidating(octets_of({.body = cel05::Connprop{}}));
  ASSERT_TRUE(end->endpoint->failure());
  EXPECT_TRUE(end->endpoint->violated());
  EXPECT_NE(end->endpoint->failure()->find("invalidated"), std::string::npos);
}

TEST_F(Cel05ResponderTest, TheNamedHandleIsInvalidated) {
  for (const bool can_invalidate : {true, false}) {
    open({.can_invalidate = can_invalidate});
    cel05::Msg body;
    body.lists.write_list = {{writable(4096)}, {writable(8192)}};
    body.inv_handle = body.lists.write_list[1][0].handle;
    deliver(octets_of(call_with(body), rpc_call(kRead)));
    answer({});
    ASSERT_THAT(end->qp.sent, SizeIs(1));
    EXPECT_EQ(end->responder->counters().invalidations, can_invalidate ? 1u : 0u);
    EXPECT_EQ(end->qp.remote_invalidations,
              can_invalidate ? std::vector{body.inv_handle} : std::vector<std::uint32_t>{});
  }
}

// R2-7.2.3-3, R2-7.2.3-6
TEST_F(Cel05ResponderTest, NoHandleAndAForeignHandleAreNotInvalidated) {
  open({.can_invalidate = true});
  for (const std::uint32_t handle : {0u, 0x5eedu}) {
    cel05::Msg body;
    body.lists.write_list = {{writable(4096)}};
    body.inv_handle = handle;
    deliver(octets_of(call_with(body), rpc_call(kRead)));
    answer({});
  }
  EXPECT_THAT(end->qp.sent, SizeIs(2));
  EXPECT_EQ(end->responder->counters().invalidations, 0u);
}

TEST_F(Cel05ResponderTest, ListsBeyondTheLimitsAreNamed) {
  open({.max_segments = 4, .max_read_chunks = 2, .max_write_chunks = 1});
  const Segment any{7, 4, 0};
  cel05::Msg reads;
  for (std::uint32_t position : {40u, 44u, 48u}) reads.lists.read_list.push_back({position, any});
  cel05::Error error = refused(octets_of(call_with(reads), rpc_call(kWrite)));
  EXPECT_EQ(error.err, cel05::Err::kReadChunks);
  EXPECT_EQ(error.arm.max_chunks, 2u);

  cel05::Msg writes;
  writes.lists.write_list = {{any}, {any}};
  error = refused(octets_of(call_with(writes), rpc_call(kRead)));
  EXPECT_EQ(error.err, cel05::Err::kWriteChunks);
  EXPECT_EQ(error.arm.max_chunks, 1u);

  cel05::Msg segments;
  segments.lists.write_list = {SegmentArray(5, any)};
  error = refused(octets_of(call_with(segments), rpc_call(kRead)));
  EXPECT_EQ(error.err, cel05::Err::kSegments);
  EXPECT_EQ(error.arm.max_segments, 4u);
}

TEST_F(Cel05ResponderTest, ARepliesNeedIsNamed) {
  open({.reply_threshold = 1024});
  cel05::Msg body;
  body.lists.reply_chunk = SegmentArray{writable(1000)};
  deliver(octets_of(call_with(body), rpc_call(kReaddir)));
  ServedReply reply;
  reply.results = pattern(3000);
  answer(std::move(reply));
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  const auto error = std::get<cel05::Error>(parsed(end->qp.sent[0]).body);
  EXPECT_EQ(error.err, cel05::Err::kReplyResource);
  EXPECT_EQ(error.arm.length_needed, 3000u + 24u);  // with the RPC header
}

TEST_F(Cel05ResponderTest, AResultsNeedIsNamed) {
  open();
  cel05::Msg body;
  body.lists.write_list = {{writable(1000)}};
  deliver(octets_of(call_with(body), rpc_call(kRead)));
  Octets len;
  xdr::XdrWriter(len).u32(1004);
  answer(item_reply(pattern(1004), len));
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  const auto error = std::get<cel05::Error>(parsed(end->qp.sent[0]).body);
  EXPECT_EQ(error.err, cel05::Err::kWriteResource);
  EXPECT_EQ(error.arm.chunk_index, 1u);
  EXPECT_EQ(error.arm.length_needed, 1004u);
}

// R2-5.1-3, R2-6.3-2
TEST_F(Cel05ResponderTest, OptionsAndPropertiesAreRefusedAsSuch) {
  open();
  const cel05::Body bodies[] = {cel05::Optional{.opttype = 77}, cel05::Connprop{}, cel05::Reqprop{}, cel05::Updprop{}};
  for (const cel05::Body& body : bodies) {
    EXPECT_EQ(refused(octets_of({.xid = 5, .credit = 8, .body = body})).err, cel05::Err::kInvalOption);
  }
  EXPECT_THAT(end->service.calls, IsEmpty());
}

// R2-7.2.4-4, R2-7.2.4-5, R2-7.2.4-3
TEST_F(Cel05ResponderTest, AMessageThatIsNoneIsRefused) {
  open();
  Octets octets = octets_of(call_with({}), rpc_call(kNull));
  octets[15] = 2;  // rdma_proc
  EXPECT_EQ(refused(octets).err, cel05::Err::kInvalProc);
  octets = octets_of(call_with({}), rpc_call(kNull));
  octets[27] = 2;  // a discriminator
  EXPECT_EQ(refused(octets).err, cel05::Err::kBadXdr);
  octets = octets_of(call_with({}), rpc_call(kNull));
  octets[7] = 1;  // rdma_vers
  deliver(octets);
  Octets expected;
  xdr::XdrWriter out(expected);
  for (const std::uint32_t word : {5u, 1u, 32u, 4u, 1u, 2u, 2u}) out.u32(word);
  EXPECT_EQ(end->qp.sent.back(), expected);
}

// R2-7.2.4-1, R2-7.2.4-28, R2-5.1-4, R2-7.2.2-2
TEST_F(Cel05ResponderTest, AnswersAndFragmentsAreDropped) {
  open();
  deliver(octets_of({.xid = 5, .credit = 8, .body = cel05::Error{.err = cel05::Err::kSystem}}));
  deliver(octets_of({.xid = 5, .credit = 8, .body = cel05::Optional{.optdir = cel05::Direction::kReply}}));
  deliver(octets_of({.xid = 5, .credit = 8, .body = cel05::Msg{.direction = cel05::Direction::kReply}}, rpc_reply(5)));
  deliver(Octets(12));
  EXPECT_THAT(end->qp.sent, IsEmpty());
  EXPECT_EQ(end->responder->counters().discarded, 4u);
}

// R2-8.3-1: the first message decides.
TEST_F(Cel05ResponderTest, TheFirstMessageDecidesTheVersion) {
  ResponderTest::open({.protocols = {Protocol::k1, Protocol::k2Cel05}});
  deliver(octets_of(call_with({}), rpc_call(kNull)));
  answer({});
  EXPECT_EQ(parsed(end->qp.sent.at(0)).vers, 2u);
  EXPECT_EQ(end->link->profile().name, "2-cel05");
  // From then on the other one is refused.
  call(call_header(), rpc_call(kNull));
  Octets expected;
  xdr::XdrWriter out(expected);
  for (const std::uint32_t word : {5u, 1u, 32u, 4u, 1u, 2u, 2u}) out.u32(word);
  EXPECT_EQ(end->qp.sent.back(), expected);

  ResponderTest::open({.protocols = {Protocol::k1, Protocol::k2Cel05}});
  call(call_header(), rpc_call(kNull));
  EXPECT_EQ(end->link->profile().name, "1");
  answer({});
  EXPECT_EQ(parse(end->qp.sent.at(0)).vers, 1u);
}

TEST_F(Cel05ResponderTest, AMessageOfNoVersionDecidesNothing) {
  ResponderTest::open({.protocols = {Protocol::k1, Protocol::k2Cel05}});
  Octets octets = octets_of(call_with({}), rpc_call(kNull));
  octets[7] = 3;
  deliver(octets);
  Octets expected;
  xdr::XdrWriter out(expected);
  for (const std::uint32_t word : {5u, 3u, 32u, 4u, 1u, 1u, 2u}) out.u32(word);
  EXPECT_EQ(end->qp.sent.at(0), expected);
  EXPECT_FALSE(end->link->is_decided());
  deliver(octets_of(call_with({}), rpc_call(kNull)));
  answer({});
  EXPECT_EQ(parsed(end->qp.sent.at(1)).vers, 2u);
}

// The version of a message is enough to answer it in its own words, whichever version the server prefers.
TEST_F(Cel05ResponderTest, AStrangeFirstMessageIsAnsweredInItsVersion) {
  for (const auto& protocols : {std::vector{Protocol::k1, Protocol::k2Cel05}, {Protocol::k2Cel05, Protocol::k1}}) {
    ResponderTest::open({.protocols = protocols});
    Octets octets = octets_of(call_with({}), rpc_call(kNull));
    octets[15] = 2;  // rdma_proc
    EXPECT_EQ(refused(octets).err, cel05::Err::kInvalProc);
    EXPECT_EQ(refused(octets_of({.xid = 5, .credit = 8, .body = cel05::Reqprop{}})).err, cel05::Err::kInvalOption);
    deliver(octets_of({.xid = 5, .credit = 8, .body = cel05::Error{.err = cel05::Err::kReadChunks}}));
    EXPECT_THAT(end->qp.sent, SizeIs(2));
    EXPECT_FALSE(end->link->is_decided());
  }
}

}  // namespace
}  // namespace weft::rpcrdma::testing
