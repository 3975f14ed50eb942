// Messages that the engines refuse for one reason alone. All else in them is in order.
#include "rpcrdma/testing/forms.h"

namespace weft::rpcrdma::testing {
namespace {

// A binding whose answers the test sets.
struct Said {
  Walked walked = Walked::kWhole;
  std::vector<EligibleItem> arguments;
  std::vector<std::optional<EligibleItem>> results;
};
Said said;

Walked say_arguments(std::uint32_t, ConstBytes, std::span<const std::size_t>, std::vector<EligibleItem>& items) {
  items = said.arguments;
  return said.walked;
}

Walked say_results(std::uint32_t, ConstBytes, std::span<const std::uint32_t>,
                   std::vector<std::optional<EligibleItem>>& items) {
  items = said.results;
  return said.walked;
}

const Binding& said_binding() {
  static constexpr Binding kBinding{kSyntheticProgram, kSyntheticVersion, say_arguments, say_results};
  return kBinding;
}

const Binding& plain_synthetic_binding() {
  static constexpr Binding kBinding{kSyntheticProgram, kSyntheticVersion};
  return kBinding;
}

struct RefusedCalls : ::testing::Test {
  void open(ResponderEnd::Options options = {}) {
    end = std::make_unique<ResponderEnd>(memory, options);
    for (ServedProgram& program : end->programs) {
      if (program.binding == &synthetic_binding()) program.binding = &said_binding();
    }
    end->service.answer = [this](ServedCall& served) { end->responder->reply(served.id, {}); };
  }
  // The answer to a Call of 40 octets of RPC header and no arguments.
  std::string call(const ChunkListsView& lists) {
    v1::Header header;
    header.xid = 5;
    header.credit = 8;
    header.lists = lists;
    Octets payload;
    xdr::XdrWriter out(payload);
    emit_call(out, {5, kSyntheticProgram, kSyntheticVersion, kPair, {}, {}});
    EXPECT_TRUE(end->qp.inject(message(header, payload)));
    end->pump();
    EXPECT_EQ(end->budget.used(), 0u);
    if (end->qp.sent.size() != 1) return "nothing, or too much";
    if (parse(end->qp.sent[0]).proc == v1::Proc::kError) return "RDMA_ERROR";
    const Octets answer = payload_of(end->qp.sent[0]);
    xdr::XdrReader in(answer);
    ReplyHeader reply;
    return parse_reply(in, reply) ? describe(reply) : "garbage";
  }

  FakeMemory memory;
  std::unique_ptr<ResponderEnd> end;
};

TEST_F(RefusedCalls, ReadChunksThatTheBindingDoesNotVouchFor) {
  Octets octets = pattern(16);
  FakeMr mr(memory, {octets.data(), octets.size(), verbs::Access::kRemoteRead});
  const ChunkListsView lists{.read_list = {{40, {mr.rkey(), 16, reinterpret_cast<std::uintptr_t>(octets.data())}}}};
  const EligibleItem item{0, 0, 16, true};
  const auto answer = [&](Said what) {
    said = std::move(what);
    open();
    return call(lists);
  };
  EXPECT_EQ(answer({Walked::kWhole, {item}, {}}), "SUCCESS");
  // Its item was found, and then the arguments do not end where they should.
  EXPECT_EQ(answer({Walked::kGarbage, {item}, {}}), "GARBAGE_ARGS");
  // The walk ended before it came to the chunk's Position.
  EXPECT_EQ(answer({Walked::kUnknown, {}, {}}), "GARBAGE_ARGS");
  EXPECT_TRUE(end->qp.rdma.empty());
}

TEST_F(RefusedCalls, ReadChunksOfAProgramWithNothingToReduce) {
  open();
  for (ServedProgram& program : end->programs) {
    if (program.binding == &said_binding()) program.binding = &plain_synthetic_binding();
  }
  EXPECT_EQ(call({.read_list = {{40, {1, 16, 0}}}}), "GARBAGE_ARGS");
  EXPECT_TRUE(end->qp.rdma.empty());
  EXPECT_FALSE(end->endpoint->failure());
}

TEST_F(RefusedCalls, ListsThatNoReplyCanGiveBack) {
  RecordProperty("proves", "R1-5.2.4-05");
  said = {};
  const ChunkListsView lists{.write_list = {SegmentArray(80, Segment{1, 10, 0})}};
  open({.inline_threshold = 4096, .reply_threshold = 1024});
  EXPECT_EQ(call(lists), "RDMA_ERROR");
  EXPECT_FALSE(end->endpoint->failure());
  open({.inline_threshold = 4096, .reply_threshold = 4096});
  EXPECT_EQ(call(lists), "SUCCESS");
}

struct RefusedReplies : ::testing::Test {
  // Calls with room for one result and answers: `len` octets in its Write chunk, these results inline or, with
  // `long_xid`, in the Reply chunk, as a Reply to that XID.
  CallStatus answered(CallSpec spec, std::uint32_t len, const Octets& results,
                      std::optional<std::uint32_t> long_xid = {}) {
    end = std::make_unique<RequesterEnd>(memory, RequesterEnd::Options{.reply_threshold = 1024, .first_xid = 70});
    spec.max_results = long_xid ? 4000 : 20;
    CallStatus status = CallStatus::kTimeout;
    EXPECT_TRUE(end->requester->call(spec, [&](const Reply& reply) { status = reply.status; }).ok());
    v1::Header header = parse(end->qp.sent.at(0));
    for (SegmentArray& chunk : header.lists.write_list) chunk.at(0).length = len;
    Octets reply = rpc_reply(long_xid.value_or(header.xid), results);
    if (long_xid) {
      header.proc = v1::Proc::kNomsg;
      Segment& segment = header.lists.reply_chunk.value().at(0);
      segment.length = static_cast<std::uint32_t>(reply.size());
      std::uint8_t* octets = memory.find(segment.handle, segment.offset, reply.size(), verbs::Access::kRemoteWrite);
      if (octets == nullptr) return CallStatus::kLocalError;
      std::copy(reply.begin(), reply.end(), octets);
      reply.clear();
    }
    EXPECT_TRUE(end->qp.inject(message(header, reply)));
    end->pump();
    end->requester->on_time(at(0));
    EXPECT_FALSE(end->endpoint->failure());
    return status;
  }

  FakeMemory memory;
  std::unique_ptr<RequesterEnd> end;
};

TEST_F(RefusedReplies, ALongReplyToAnotherCall) {
  EXPECT_EQ(answered(spec_of(kPlain), 0, pattern(2000), 71), CallStatus::kSuccess);
  EXPECT_EQ(answered(spec_of(kPlain), 0, pattern(2000), 72), CallStatus::kBadReply);
}

TEST_F(RefusedReplies, ResultsInChunksThatAreNotEligible) {
  RecordProperty("proves", "R1-8.1.1-03");
  Octets room(3000);
  // Results with nothing to reduce.
  CallSpec spec = spec_of(kPair);
  spec.binding = &said_binding();
  spec.result_items = room;
  said = {Walked::kWhole, {}, {}};
  EXPECT_EQ(answered(spec, 0, {}), CallStatus::kSuccess);
  EXPECT_EQ(answered(spec, 8, {}), CallStatus::kBadReply);
  // A binding that met something unknown before it found the chunk's item.
  said = {Walked::kWhole, {}, {EligibleItem{0, 0, 8, true}}};
  EXPECT_EQ(answered(spec, 8, {}), CallStatus::kSuccess);
  said = {Walked::kUnknown, {}, {}};
  EXPECT_EQ(answered(spec, 0, {}), CallStatus::kBadReply) << "whether the room is filled is not known";
  EXPECT_EQ(answered(spec, 8, {}), CallStatus::kBadReply);
}

// Their item was found, and then they do not end where they should.
TEST_F(RefusedReplies, ResultsThatTheBindingCannotRead) {
  RecordProperty("proves", "R1-8.1.1-03");
  Octets room(3000);
  CallSpec spec = spec_of(kPair);
  spec.binding = &said_binding();
  spec.result_items = room;
  const EligibleItem item{0, 0, 8, true};
  said = {Walked::kWhole, {}, {item}};
  EXPECT_EQ(answered(spec, 8, {}), CallStatus::kSuccess);
  said = {Walked::kGarbage, {}, {item}};
  EXPECT_EQ(answered(spec, 8, {}), CallStatus::kBadReply);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
