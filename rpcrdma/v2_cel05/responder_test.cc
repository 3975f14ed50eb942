// A responder of cel05, whose peer is the test (draft-cel-nfsv4-rpcrdma-version-two-05 sections 7.2 and 8).
#include <gmock/gmock.h>

#include "rpcrdma/testing/forms.h"
#include "rpcrdma/testing/responder.h"
#include "rpcrdma/testing/v2_vectors.h"
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
  // A Reply that no engine waits for. It leaves no doubt which draft the peer speaks, as errors alone would.
  void deliver_a_dropped_reply() {
    deliver(
        octets_of({.xid = 9, .credit = 8, .body = cel05::Msg{.direction = cel05::Direction::kReply}}, rpc_reply(9)));
    ASSERT_THAT(end->qp.sent, IsEmpty());
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
  RecordProperty("proves", "R2-7.2.2-3 R2-8.1-1");
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
  RecordProperty("proves", "R2-7.2.3-3 R2-7.2.3-4 R2-7.2.3-7");
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
    EXPECT_EQ(std::get<cel05::Msg>(parsed(end->qp.sent[0]).body).inv_handle, 0u) << "a Reply names none";
  }
}

TEST_F(Cel05ResponderTest, NoHandleAndAForeignHandleAreNotInvalidated) {
  RecordProperty("proves", "R2-4-3 R2-7.2.3-3 R2-7.2.3-6");
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
  EXPECT_THAT(end->qp.remote_invalidations, IsEmpty());
}

TEST_F(Cel05ResponderTest, ListsBeyondTheLimitsAreNamed) {
  RecordProperty("proves", "R2-7.2.4-9 R2-7.2.4-13 R2-7.2.4-16");
  open({.max_segments = 16, .max_read_chunks = 1, .max_write_chunks = 1});
  const Segment any{7, 4, 0};
  cel05::Msg reads;
  for (std::uint32_t position : {40u, 44u}) reads.lists.read_list.push_back({position, any});
  cel05::Error error = refused(octets_of(call_with(reads), rpc_call(kWrite)));
  EXPECT_EQ(error.err, cel05::Err::kReadChunks);
  EXPECT_EQ(error.arm.max_chunks, 1u);

  cel05::Msg writes;
  writes.lists.write_list = {{any}, {any}};
  error = refused(octets_of(call_with(writes), rpc_call(kRead)));
  EXPECT_EQ(error.err, cel05::Err::kWriteChunks);
  EXPECT_EQ(error.arm.max_chunks, 1u);

  const SegmentArray too_many(17, any);
  for (const ChunkListsView& lists :
       {ChunkListsView{.read_list = std::vector(17, ReadSegment{40, any})}, ChunkListsView{.write_list = {too_many}},
        ChunkListsView{.reply_chunk = too_many}}) {
    cel05::Msg segments;
    segments.lists = lists;
    error = refused(octets_of(call_with(segments), rpc_call(kRead)));
    EXPECT_EQ(error.err, cel05::Err::kSegments);
    EXPECT_EQ(error.arm.max_segments, 16u);
  }
}

TEST_F(Cel05ResponderTest, AnEndThatTakesNoChunksSaysSo) {
  RecordProperty("proves", "R2-7.2.4-10 R2-7.2.4-14");
  open({.max_segments = 0, .max_read_chunks = 0, .max_write_chunks = 0});
  cel05::Msg reads;
  reads.lists.read_list = {{40, Segment{7, 4, 0}}};
  EXPECT_EQ(refused(octets_of(call_with(reads), rpc_call(kWrite))),
            (cel05::Error{.err = cel05::Err::kReadChunks, .arm = {.max_chunks = 0}}));
  cel05::Msg writes;
  writes.lists.write_list = {{Segment{7, 4, 0}}};
  EXPECT_EQ(refused(octets_of(call_with(writes), rpc_call(kRead))).err, cel05::Err::kReplyResource);
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

TEST_F(Cel05ResponderTest, AReplyThatFitsNowhereNeedsAReplyChunk) {
  RecordProperty("proves", "R2-7.2.4-21 R2-7.2.4-22");
  open();
  deliver(octets_of(call_with({}), rpc_call(kReaddir)));
  ServedReply reply;
  reply.results = pattern(20000 - 24);
  answer(std::move(reply));
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  const auto error = std::get<cel05::Error>(parsed(end->qp.sent[0]).body);
  EXPECT_EQ(error.err, cel05::Err::kReplyResource);
  EXPECT_EQ(error.arm.length_needed, 20000u);
}

// The shapes of S06 and S07, and a short Reply that leaves its chunk unused.
TEST_F(Cel05ResponderTest, AReplyChunkHasWhatFitsNoMessage) {
  RecordProperty("proves", "R2-3.1-3 R2-6.2.1-4");
  for (const std::size_t len : {300u, 5000u}) {
    open();
    Octets call = rpc_call(kReaddir, pattern(5000));
    cel05::Nomsg body;
    body.lists.read_list = {{0, readable(call)}};
    body.lists.reply_chunk = SegmentArray{writable(4096), writable(4096)};
    deliver(octets_of({.xid = 5, .credit = 8, .body = body}));
    ASSERT_THAT(end->service.args, SizeIs(1));
    EXPECT_EQ(end->service.args[0], pattern(5000));
    ServedReply reply;
    reply.results = pattern(len - 24);
    answer(std::move(reply));
    ASSERT_THAT(end->qp.sent, SizeIs(1));
    const cel05::Header header = parsed(end->qp.sent[0]);
    const auto* external = std::get_if<cel05::Nomsg>(&header.body);
    ASSERT_EQ(external != nullptr, len > 4096) << len;
    const ChunkListsView& lists = external != nullptr ? external->lists : std::get<cel05::Msg>(header.body).lists;
    ASSERT_TRUE(lists.reply_chunk);
    EXPECT_EQ(total_length(*lists.reply_chunk), len > 4096 ? len : 0u);
  }
}

TEST_F(Cel05ResponderTest, OtherProblemsAreErrorsOfTheSystemOrEndTheConnection) {
  RecordProperty("proves", "R2-7.2.4-25");
  open({.max_item = 4096});
  cel05::Msg body;
  body.lists.read_list = {{72, Segment{7, 4100, 0}}};
  EXPECT_EQ(refused(octets_of(call_with(body), rpc_call(kWrite))).err, cel05::Err::kSystem);

  body.lists = {.reply_chunk = SegmentArray{writable(9000)}};
  deliver(octets_of(call_with(body), rpc_call(kReaddir)));
  end->pd.fail_registration = true;
  ServedReply reply;
  reply.results = pattern(8000);
  answer(std::move(reply));
  EXPECT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_TRUE(end->endpoint->failure());
}

TEST_F(Cel05ResponderTest, AResultsNeedIsNamed) {
  RecordProperty("proves", "R2-7.2.4-17 R2-7.2.4-19");
  open();
  cel05::Msg body;
  body.lists.write_list = {{writable(4096)}};
  deliver(octets_of(call_with(body), rpc_call(kRead)));
  Octets len;
  xdr::XdrWriter(len).u32(8192);
  answer(item_reply(pattern(8192), len));
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  const auto error = std::get<cel05::Error>(parsed(end->qp.sent[0]).body);
  EXPECT_EQ(error.err, cel05::Err::kWriteResource);
  EXPECT_EQ(error.arm.chunk_index, 1u);
  EXPECT_EQ(error.arm.length_needed, 8192u);
}

TEST_F(Cel05ResponderTest, TheFirstWriteChunkThatIsTooShortIsNamed) {
  RecordProperty("proves", "R2-7.2.4-18 R2-7.2.4-19");
  open();
  const Octets item = pattern(8192);
  const Message results = many_message({&item, &item, &item});
  cel05::Msg body;
  body.lists.write_list = {{writable(8192)}, {writable(4096)}, {writable(4096)}};
  Octets call;
  xdr::XdrWriter out(call);
  emit_call(out, {5, kSyntheticProgram, kSyntheticVersion, kMany, {}, {}});
  out.raw(no_operations());
  deliver(octets_of(call_with(body), call));
  answer(reply_with(results, end->pool));
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  const auto error = std::get<cel05::Error>(parsed(end->qp.sent[0]).body);
  EXPECT_EQ(error.err, cel05::Err::kWriteResource);
  EXPECT_EQ(error.arm.chunk_index, 2u);
  EXPECT_EQ(error.arm.length_needed, 8192u);
}

TEST_F(Cel05ResponderTest, OptionsAndPropertiesAreRefusedAsSuch) {
  RecordProperty("proves", "R2-5.1-2 R2-6.3-2 R2-6.3-4");
  open();
  const cel05::Body bodies[] = {cel05::Optional{.opttype = 77}, cel05::Connprop{}, cel05::Reqprop{}, cel05::Updprop{}};
  for (const cel05::Body& body : bodies) {
    EXPECT_EQ(refused(octets_of({.xid = 5, .credit = 8, .body = body})).err, cel05::Err::kInvalOption);
  }
  EXPECT_THAT(end->service.calls, IsEmpty());
}

// The answer to this message, with the XID of the message and the credits of this end.
Octets answer_like(const char* id, const Octets& message) {
  Octets octets = load_v2_vector(id).octets;
  std::copy_n(message.begin(), 4, octets.begin());
  put_word(octets, 8, 32);
  return octets;
}

TEST_F(Cel05ResponderTest, UnknownOptionsAreRefused) {
  RecordProperty("proves", "R2-5.1-2 R2-5.1-3 R2-6.3-2 R2-6.3-5 R2-7.2.4-24");
  open();
  std::vector<Octets> messages;
  for (const char* id : {"S40", "S42", "S43"}) messages.push_back(load_v2_vector(id).octets);
  for (std::uint32_t type = 0; type < 12; ++type) {
    messages.push_back(octets_of({.xid = 7 + type, .credit = 8, .body = cel05::Optional{.opttype = type}}));
  }
  for (const Octets& message : messages) {
    deliver(message);
    EXPECT_EQ(end->qp.sent.back(), answer_like("S30", message));
  }
  EXPECT_THAT(end->qp.sent, SizeIs(messages.size()));
  EXPECT_THAT(end->service.calls, IsEmpty());
}

TEST_F(Cel05ResponderTest, PropertiesHaveTypesOfTheirOwn) {
  RecordProperty("proves", "R2-6.3-5");
  open();
  end->link->exchange_properties({}, {});
  deliver(load_v2_vector("S43").octets);
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_TRUE(std::holds_alternative<cel05::Connprop>(parsed(end->qp.sent[0]).body));
  EXPECT_EQ(end->link->terms().reverse, ReverseSupport::kGeneral);
}

// XIDs of Calls and of requests about properties are apart.
TEST_F(Cel05ResponderTest, ARequestAboutPropertiesMayHaveTheXidOfACall) {
  RecordProperty("proves", "R2-6.3.2-2");
  open();
  end->link->exchange_properties({}, {});
  deliver(octets_of(call_with({}), rpc_call(kNull)));
  ASSERT_THAT(end->service.calls, SizeIs(1));
  deliver(octets_of({.xid = 5, .body = cel05::Reqprop{.want = {{.which = 1}}}}));
  answer({});
  ASSERT_THAT(end->qp.sent, SizeIs(2));
  EXPECT_TRUE(std::holds_alternative<cel05::Resprop>(parsed(end->qp.sent[0]).body));
  EXPECT_TRUE(std::holds_alternative<cel05::Msg>(parsed(end->qp.sent[1]).body));
  for (const Octets& octets : end->qp.sent) EXPECT_EQ(parsed(octets).xid, 5u);
}

TEST_F(Cel05ResponderTest, TypesOutsideTheDraftAreRefused) {
  RecordProperty("proves", "R2-5-1 R2-7.2.4-2");
  open();
  deliver_a_dropped_reply();
  for (const std::uint32_t proc : {2u, 3u, 10u, 11u, 100u, 0x7fffffffu, 0xffffffffu}) {
    Octets message = load_v2_vector("S01").octets;
    put_word(message, 12, proc);
    deliver(message);
    EXPECT_EQ(end->qp.sent.back(), answer_like("S22", message)) << proc;
  }
  EXPECT_THAT(end->qp.sent, SizeIs(7));
}

TEST_F(Cel05ResponderTest, NothingOfAMalformedMessageIsProcessed) {
  RecordProperty("proves", "R2-7.2.4-2 R2-7.2.4-6");
  open();
  Octets data = pattern(400);
  cel05::Msg body;
  body.lists.read_list = {{72, readable(data)}};
  Octets other_xid = octets_of(call_with(body), rpc_call(kWrite, write_args(400), 6));
  Octets bad_list = octets_of(call_with(body), rpc_call(kWrite, write_args(400)));
  put_word(bad_list, 52, 2);
  std::vector<Octets> messages{other_xid, bad_list};
  for (const char* id : {"S71", "S72", "S73", "S74", "S75", "S80"}) messages.push_back(load_v2_vector(id).octets);
  for (const Octets& message : messages) {
    deliver(message);
    EXPECT_EQ(end->qp.sent.back(), answer_like("S21", message));
  }
  EXPECT_THAT(end->qp.sent, SizeIs(messages.size()));
  EXPECT_THAT(end->service.calls, IsEmpty());
  EXPECT_THAT(end->qp.rdma, IsEmpty());
  deliver(octets_of(call_with({}), rpc_call(kNull)));
  EXPECT_THAT(end->service.calls, SizeIs(1)) << "the connection goes on";
}

TEST_F(Cel05ResponderTest, TheDirectionIsThatOfTheRpcMessage) {
  RecordProperty("proves", "R2-7.2.2-4");
  open();
  deliver_a_dropped_reply();
  deliver(load_v2_vector("S76").octets);  // a Reply, as it says: no request
  EXPECT_THAT(end->qp.sent, IsEmpty());
  EXPECT_EQ(refused(octets_of(call_with({}), rpc_reply(5))).err, cel05::Err::kBadXdr);
  Octets reply = rpc_reply(5);
  cel05::Nomsg body;
  body.lists.read_list = {{0, readable(reply)}};
  EXPECT_EQ(refused(octets_of({.xid = 5, .credit = 8, .body = body})).err, cel05::Err::kBadXdr);
  EXPECT_THAT(end->qp.rdma, SizeIs(1));
  EXPECT_THAT(end->service.calls, IsEmpty());
}

TEST_F(Cel05ResponderTest, AServerWithoutTheVersionNamesItsOwn) {
  RecordProperty("proves", "R2-8.2-1");
  ResponderTest::open({});
  const Octets message = load_v2_vector("S01").octets;
  deliver(message);
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_EQ(end->qp.sent[0], answer_like("S60", message));
}

// R2-7.2.4-4, R2-7.2.4-5, R2-7.2.4-3
TEST_F(Cel05ResponderTest, AMessageThatIsNoneIsRefused) {
  RecordProperty("proves", "R2-7.2.4-2");
  open();
  deliver_a_dropped_reply();
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

TEST_F(Cel05ResponderTest, AnswersAndFragmentsAreDropped) {
  RecordProperty("proves", "R2-5.1-4 R2-7.2.4-1");
  open();
  deliver(load_v2_vector("S21").octets);
  deliver(octets_of({.xid = 5, .credit = 8, .body = cel05::Error{.err = cel05::Err::kSystem}}));
  deliver(octets_of({.xid = 5, .credit = 8, .body = cel05::Optional{.optdir = cel05::Direction::kReply}}));
  deliver(octets_of({.xid = 5, .credit = 8, .body = cel05::Msg{.direction = cel05::Direction::kReply}}, rpc_reply(5)));
  deliver(Octets(12));
  EXPECT_THAT(end->qp.sent, IsEmpty());
  EXPECT_EQ(end->responder->counters().discarded, 5u);
  EXPECT_FALSE(end->endpoint->failure());
  deliver(octets_of(call_with({}), rpc_call(kNull)));
  answer({});
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_EQ(parsed(end->qp.sent[0]).credit, 32u);
}

TEST_F(Cel05ResponderTest, TheFirstMessageDecidesTheVersion) {
  RecordProperty("proves", "R2-8.3-1");
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
