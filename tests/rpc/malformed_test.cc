// Messages that are known to make other implementations crash, hang or take too much memory, each with its name. A
// responder that serves NFS gets them, and a requester where a Reply can have the same fault. After each the connection
// is of use, unless RDMA itself answers the fault.
#include <gtest/gtest.h>

#include "nfsulb/bindings.h"
#include "nfsulb/testing/compound.h"
#include "rpcrdma/testing/vectors.h"
#include "tests/rpc/good_messages.h"

namespace weft::rpcrdma::testing {
namespace {

using nfsulb::testing::Xdr;

constexpr std::uint32_t k3GiB = 0xc0000000;
constexpr std::size_t kMaxItem = 8192;
constexpr std::size_t kMaxCall = 1 << 20;  // Responder::Config's

// A server of NFS, and a client made by hand.
struct Malformed : ::testing::Test {
  void open(ResponderEnd::Options options = {
                .credits = 4, .inline_threshold = 4096, .reply_threshold = 1024, .max_item = kMaxItem}) {
    nfs.reset();
    nfs = std::make_unique<NfsResponder>(memory, options);
  }
  Segment offer(Octets& octets, verbs::Access access) {
    mrs.push_back(std::make_unique<FakeMr>(memory, FakeMemory::Region{octets.data(), octets.size(), access}));
    return {mrs.back()->rkey(), static_cast<std::uint32_t>(octets.size()),
            reinterpret_cast<std::uintptr_t>(octets.data())};
  }
  Segment readable(Octets& octets) { return offer(octets, verbs::Access::kRemoteRead); }
  Segment writable(Octets& octets) { return offer(octets, verbs::Access::kLocalWrite | verbs::Access::kRemoteWrite); }
  static Octets nfs3(std::uint32_t procedure, const Xdr& args) {
    Octets octets;
    xdr::XdrWriter out(octets);
    emit_call(out, {5, nfsulb::kNfsProgram, nfsulb::kNfsV3, procedure, {}, {}});
    out.raw(args.octets());
    return octets;
  }
  // WRITE without its data, which belong at kDataPosition; READ of as many octets.
  static Octets write_call(std::uint32_t len) { return nfs3(7, Xdr().opaque(28).u64(0).words({len, 2, len})); }
  static constexpr std::uint32_t kDataPosition = 40 + 32 + 8 + 12;
  static Octets read_call(std::uint32_t len) { return nfs3(6, Xdr().opaque(28).u64(0).u32(len)); }
  static v1::Header header(v1::Proc proc = v1::Proc::kMsg) {
    v1::Header header;
    header.xid = 5;
    header.credit = 4;
    header.proc = proc;
    return header;
  }
  // The answer to a message, in words. The responder leaves nothing behind. If it is alive it serves the next Call.
  std::string say(const Octets& octets) {
    ResponderEnd& end = nfs->end;
    end.qp.sent.clear();
    end.qp.rdma.clear();
    nfs->answers.num_calls = 0;
    EXPECT_TRUE(end.qp.inject(octets));
    end.pump();
    num_served = nfs->answers.num_calls;
    num_rdma = end.qp.rdma.size();
    std::string said = end.qp.sent.empty() ? "silence" : answer_of(end.qp.sent.at(0));
    if (end.endpoint->failure()) {
      said = "the end of the connection";
      end.responder.reset();
    } else {
      end.qp.sent.clear();
      EXPECT_TRUE(end.qp.inject(message(header(), nfs3(0, {}))));
      end.pump();
      EXPECT_EQ(end.qp.sent.empty() ? "silence" : answer_of(end.qp.sent[0]), "SUCCESS") << "after " << said;
    }
    EXPECT_EQ(end.budget.used(), 0u);
    EXPECT_EQ(end.pool.in_use(), 0u);
    if (!end.responder) open();
    return said;
  }
  std::string say(const v1::Header& header, const Octets& payload = {}) { return say(message(header, payload)); }
  std::string answer_of(const Octets& answer) {
    answered = parse(answer);
    if (answered.proc == v1::Proc::kError) return answered.err == v1::Err::kChunk ? "ERR_CHUNK" : "ERR_VERS";
    if (answered.proc == v1::Proc::kNomsg) return "long";
    const Octets payload = payload_of(answer);
    xdr::XdrReader in(payload);
    ReplyHeader reply;
    return parse_reply(in, reply) ? describe(reply) : "garbage";
  }

  FakeMemory memory;
  std::vector<std::unique_ptr<FakeMr>> mrs;
  std::unique_ptr<NfsResponder> nfs;
  v1::Header answered;
  std::size_t num_served = 0;
  std::size_t num_rdma = 0;
};

TEST_F(Malformed, TruncatedHeaders) {
  RecordProperty("proves", "R1-5.5-01 R1-5.5.2-01");
  open();
  for (const GoodMessage& good : good_messages(memory)) {
    const bool is_call = good.name[0] != 'V' && good.name[0] != 'n';
    for (std::size_t len = 1; is_call && len < good.header_len; ++len) {
      const Octets cut(good.octets.begin(), good.octets.begin() + static_cast<std::ptrdiff_t>(len));
      ASSERT_EQ(say(cut), len < 28 ? "silence" : "ERR_CHUNK") << good.name << " cut to " << len;
      ASSERT_EQ(num_served + num_rdma, 0u);
    }
  }
}

TEST_F(Malformed, PositionZeroCallsGoneWrong) {
  open();
  Octets call = nfs3(3, Xdr().opaque(28).opaque(9));
  const auto long_call = [](Segment segment, std::uint32_t position = 0) {
    v1::Header h = header(v1::Proc::kNomsg);
    h.lists.read_list = {{position, segment}};
    return h;
  };
  const Segment whole = readable(call);
  EXPECT_EQ(say(long_call(whole)), "SUCCESS");
  EXPECT_EQ(num_served, 1u);
  // Not at Position Zero; nothing there; nothing at all.
  EXPECT_EQ(say(long_call(whole, 4)), "ERR_CHUNK");
  EXPECT_EQ(say(long_call({whole.handle, 0, whole.offset})), "ERR_CHUNK");
  EXPECT_EQ(say(header(v1::Proc::kNomsg)), "ERR_CHUNK");
  EXPECT_EQ(num_rdma, 0u);
  // Beside a Payload stream, and followed by one.
  v1::Header h = long_call(whole);
  h.proc = v1::Proc::kMsg;
  EXPECT_EQ(say(h, nfs3(0, {})), "ERR_CHUNK");
  EXPECT_EQ(say(long_call(whole), nfs3(0, {})), "SUCCESS");
  // Cut anywhere: before the RPC header is known to be a Call, within it. LOOKUP's own arguments are its server's.
  for (std::uint32_t len = 1; len < 40; ++len) {
    const std::string expected = len < 8 ? "ERR_CHUNK" : "GARBAGE_ARGS";
    ASSERT_EQ(say(long_call({whole.handle, len, whole.offset})), expected) << len;
    ASSERT_EQ(num_served, 0u);
  }
  // Another XID; a Reply; words that say nothing.
  Octets wrong = call;
  wrong[3] = 6;
  EXPECT_EQ(say(long_call(readable(wrong))), "ERR_CHUNK");
  Octets reply = rpc_reply(5);
  EXPECT_EQ(say(long_call(readable(reply))), "ERR_CHUNK");
  Octets noise = pattern(500);
  EXPECT_EQ(say(long_call(readable(noise))), "ERR_CHUNK");
  // Its items' chunk points into the chunk itself, before the arguments, past the end.
  Octets write = write_call(600);
  Octets data = pattern(600);
  for (const std::uint32_t position : {4u, 36u, 88u, 96u, 4000u}) {
    h = long_call(readable(write));
    h.lists.read_list.push_back({position, readable(data)});
    EXPECT_EQ(say(h), "GARBAGE_ARGS") << position;
    EXPECT_EQ(num_served, 0u);
  }
  h.lists.read_list.back().position = kDataPosition;
  EXPECT_EQ(say(h), "SUCCESS");
}

TEST_F(Malformed, BadHandles) {
  RecordProperty("proves", "R1-5.5.3-01");
  open();
  Octets data = pattern(600);
  Octets room(4000);
  const Segment from = readable(data);
  const Segment into = writable(room);
  const auto write = [&](Segment segment) {
    v1::Header h = header();
    h.lists.read_list = {{kDataPosition, segment}};
    return say(h, write_call(600));
  };
  const auto read = [&](Segment segment, bool long_reply = false) {
    v1::Header h = header();
    if (long_reply) {
      h.lists.reply_chunk = SegmentArray{segment};
    } else {
      h.lists.write_list = {{segment}};
    }
    return say(h, long_reply ? nfs3(16, Xdr().opaque(28).u64(0).u64(0).u32(4000)) : read_call(3000));
  };
  EXPECT_EQ(write(from), "SUCCESS");
  EXPECT_EQ(read(into), "SUCCESS");
  EXPECT_EQ(read(into, true), "long");
  const std::string end = "the end of the connection";
  for (const std::uint32_t handle : {0u, 1u, from.handle + 1000, 0xffffffffu, into.handle}) {
    EXPECT_EQ(write({handle, 600, from.offset}), end) << handle;
    EXPECT_EQ(num_served, 0u);
  }
  for (const std::uint32_t handle : {0u, 1u, from.handle + 1000, 0xffffffffu, from.handle}) {
    EXPECT_EQ(read({handle, 4000, into.offset}), end) << handle;
    EXPECT_EQ(read({handle, 4000, into.offset}, true), end) << handle;
  }
  // The right handle, and octets before and behind its memory.
  EXPECT_EQ(write({from.handle, 600, from.offset - 1}), end);
  EXPECT_EQ(write({from.handle, 600, from.offset + 1}), end);
  EXPECT_EQ(write({from.handle, 600, 0}), end);
  EXPECT_EQ(write({from.handle, 600, ~std::uint64_t{0} - 100}), "ERR_CHUNK") << "it ends beyond 2^64";
  EXPECT_EQ(read({into.handle, 4000, into.offset + 1001}), end);
}

TEST_F(Malformed, ChunksOfThreeGiB) {
  RecordProperty("proves", "R1-10.1-03 R1-4.4.4-02 R1-4.4.4-03");
  open();
  Octets data = pattern(600);
  Octets room(4000);
  const Segment from = readable(data);
  const Segment into = writable(room);
  // Arguments and Calls of that size are refused before anything is pulled; sums are not taken in 32 bits.
  for (const std::uint32_t position : {kDataPosition, 0u}) {
    v1::Header h = header(position == 0 ? v1::Proc::kNomsg : v1::Proc::kMsg);
    const Octets payload = position == 0 ? Octets{} : write_call(k3GiB);
    h.lists.read_list = {{position, {from.handle, k3GiB, from.offset}}};
    EXPECT_EQ(say(h, payload), "ERR_CHUNK");
    EXPECT_EQ(num_rdma, 0u);
    h.lists.read_list.assign(4, {position, {from.handle, k3GiB, from.offset}});  // 12 GiB: 0 in 32 bits
    EXPECT_EQ(say(h, payload), "ERR_CHUNK");
    EXPECT_EQ(num_rdma, 0u);
  }
  // Room of that size is valid. The responder uses as much of it as it needs.
  v1::Header h = header();
  h.lists.write_list = {{{into.handle, k3GiB, into.offset}}};
  EXPECT_EQ(say(h, read_call(k3GiB)), "SUCCESS");
  h = header();
  h.lists.reply_chunk = SegmentArray(4, {into.handle, k3GiB, into.offset});
  EXPECT_EQ(say(h, nfs3(16, Xdr().opaque(28).u64(0).u64(0).u32(4000))), "long");
  EXPECT_EQ(num_served, 1u);
}

TEST_F(Malformed, ChunksJustPastTheLimit) {
  RecordProperty("proves", "R1-4.4.4-03");
  open();
  Octets data = pattern(kMaxItem + 1);
  const Segment from = readable(data);
  for (const std::uint32_t len : {std::uint32_t{kMaxItem}, std::uint32_t{kMaxItem} + 1}) {
    const bool past = len > kMaxItem;
    v1::Header h = header();
    h.lists.read_list = {{kDataPosition, {from.handle, len, from.offset}}};
    EXPECT_EQ(say(h, write_call(len)), past ? "ERR_CHUNK" : "SUCCESS");
    EXPECT_EQ(num_served, past ? 0u : 1u);
    // As a second segment that has one octet.
    h.lists.read_list = {{kDataPosition, {from.handle, len - 1, from.offset}},
                         {kDataPosition, {from.handle, 1, from.offset + len - 1}}};
    EXPECT_EQ(say(h, write_call(len)), past ? "ERR_CHUNK" : "SUCCESS");
  }
  Octets call = nfs3(0, {});
  call.resize(kMaxCall + kMaxItem + 1);
  const Segment whole = readable(call);
  for (const std::uint32_t more : {0u, 1u}) {
    v1::Header h = header(v1::Proc::kNomsg);
    h.lists.read_list = {{0, {whole.handle, static_cast<std::uint32_t>(call.size()) - 1 + more, whole.offset}}};
    EXPECT_EQ(say(h), more != 0 ? "ERR_CHUNK" : "SUCCESS");
    EXPECT_EQ(num_rdma, more != 0 ? 0u : 1u);
  }
}

TEST_F(Malformed, SeveralWriteChunksAndManySegments) {
  RecordProperty("proves", "U1-6.4.2-01 U1-6.4.2-07");
  open();
  Octets room(4000);
  const Segment into = writable(room);
  const auto read = [&](const std::vector<SegmentArray>& chunks) {
    v1::Header h = header();
    h.lists.write_list = chunks;
    return say(h, read_call(3000));
  };
  // READ has one result for them: the first is used, the others go back as they came.
  std::vector<SegmentArray> chunks;
  for (std::size_t num = 1; num <= 17; ++num) {
    chunks.push_back({into});
    ASSERT_EQ(read(chunks), num <= 16 ? "SUCCESS" : "ERR_CHUNK") << num;
    ASSERT_EQ(num_rdma, num <= 16 ? 1u : 0u);
  }
  for (const std::size_t num : {16u, 17u, 50u}) {
    EXPECT_EQ(read({SegmentArray(num, {into.handle, 200, into.offset})}), "SUCCESS") << num;
  }
  EXPECT_EQ(read({SegmentArray(129, {into.handle, 200, into.offset})}), "ERR_CHUNK");
  // A server of one chunk.
  open({.credits = 4, .inline_threshold = 4096, .reply_threshold = 1024, .max_segments = 16, .max_write_chunks = 1});
  EXPECT_EQ(read({{into}}), "SUCCESS");
  EXPECT_EQ(read({{into}, {into}}), "ERR_CHUNK");
  EXPECT_EQ(read({{into}, {}}), "ERR_CHUNK");
  EXPECT_EQ(read({SegmentArray(16, {into.handle, 200, into.offset})}), "SUCCESS");
  EXPECT_EQ(read({SegmentArray(17, {into.handle, 200, into.offset})}), "ERR_CHUNK");
}

// A client of NFS, and a server made by hand. Its Call has a Write chunk of 3,000 octets and a Reply chunk, or two
// Write chunks.
struct MalformedReply : ::testing::Test {
  // The status of the Call after `spoil` changed its Reply. kTimeout means that the Reply was discarded and the Call is
  // still open; then the right Reply ends it.
  CallStatus ends(bool two_chunks, const std::function<void(v1::Header&, Octets&)>& spoil, std::size_t cut = SIZE_MAX) {
    const nfsulb::testing::Xdr read = Xdr().opaque(28).u64(0).u32(3000);
    const Octets compound = nfsulb::testing::compound_args(
                                0, {nfsulb::testing::putfh(), nfsulb::testing::read(3000), nfsulb::testing::read(3000)})
                                .octets();
    Octets a(3000), b(3000);
    const std::vector<ScatteredBytes> rooms{MutBytes(a), MutBytes(b)};
    end = std::make_unique<RequesterEnd>(
        memory, RequesterEnd::Options{.reply_threshold = 1024,
                                      .chunks = {.max_write_chunks = 2, .write_list_with_reply_chunk = true}});
    CallSpec spec;
    spec.program = nfsulb::kNfsProgram;
    spec.version = two_chunks ? nfsulb::kNfsV4 : nfsulb::kNfsV3;
    spec.procedure = two_chunks ? 1 : 6;
    spec.binding = nfsulb::find_binding(spec.program, spec.version);
    spec.args = two_chunks ? ConstBytes(compound) : ConstBytes(read.octets());
    spec.max_results = 1200;
    spec.result_items = two_chunks ? OneOrMore<ScatteredBytes>(rooms) : OneOrMore<ScatteredBytes>(MutBytes(a));
    int times = 0;
    CallStatus status = CallStatus::kTimeout;
    EXPECT_TRUE(end->requester
                    ->call(spec,
                           [&](const Reply& reply) {
                             ++times;
                             status = reply.status;
                           })
                    .ok());
    v1::Header good = parse(end->qp.sent.at(0));
    const Octets results =
        two_chunks ? nfsulb::testing::compound_res(0, {nfsulb::testing::ok(nfsulb::testing::kOpPutfh),
                                                       nfsulb::testing::read_ok(3000), nfsulb::testing::read_ok(2000)})
                         .octets()
                   : Xdr().words({0, 0, 3000, 1, 3000}).octets();
    if (two_chunks) good.lists.write_list.at(1).at(0).length = 2000;
    if (good.lists.reply_chunk) good.lists.reply_chunk->at(0).length = 0;
    v1::Header header = good;
    Octets payload = rpc_reply(good.xid, results);
    const Octets good_payload = payload;
    spoil(header, payload);
    // An RDMA_NOMSG's Payload stream goes where the Reply chunk says.
    if (header.proc == v1::Proc::kNomsg && header.lists.reply_chunk && !header.lists.reply_chunk->empty()) {
      const Segment& segment = header.lists.reply_chunk->at(0);
      std::uint8_t* to = memory.find(segment.handle, segment.offset, payload.size(), verbs::Access::kRemoteWrite);
      if (to != nullptr) std::ranges::copy(payload, to);
      payload.clear();
    }
    Octets octets = message(header, payload);
    octets.resize(std::min(octets.size(), cut));
    EXPECT_TRUE(end->qp.inject(octets));
    turn();
    const CallStatus ended = times == 0 ? CallStatus::kTimeout : status;
    EXPECT_TRUE(end->qp.inject(message(good, good_payload)));
    turn();
    EXPECT_EQ(times, 1);
    if (ended == CallStatus::kTimeout) {
      EXPECT_EQ(status, CallStatus::kSuccess);
    }
    EXPECT_EQ(memory.num_remote(), 0u);
    EXPECT_EQ(end->qp.sent.size(), 1u);
    EXPECT_FALSE(end->endpoint->failure());
    return ended;
  }
  void turn() {
    end->pump();
    end->requester->on_time(TimePoint{} + std::chrono::seconds(100));
  }

  FakeMemory memory;
  std::unique_ptr<RequesterEnd> end;
};

TEST_F(MalformedReply, TruncatedHeaders) {
  for (std::size_t len = 0; len < 28 + 24 + 20; ++len) {
    ASSERT_EQ(ends(
                  false, [](v1::Header&, Octets&) {}, len),
              CallStatus::kTimeout)
        << len;
  }
}

TEST_F(MalformedReply, LongRepliesGoneWrong) {
  const auto as_long = [this](const std::function<void(v1::Header&, Octets&)>& spoil) {
    return ends(false, [&](v1::Header& header, Octets& payload) {
      header.proc = v1::Proc::kNomsg;
      header.lists.reply_chunk.value().at(0).length = static_cast<std::uint32_t>(payload.size());
      spoil(header, payload);
    });
  };
  EXPECT_EQ(as_long([](v1::Header&, Octets&) {}), CallStatus::kSuccess);
  EXPECT_EQ(as_long([](v1::Header& h, Octets&) { h.lists.reply_chunk.reset(); }), CallStatus::kTimeout);
  EXPECT_EQ(as_long([](v1::Header& h, Octets&) { h.lists.reply_chunk->at(0).length = 0; }), CallStatus::kTimeout);
  EXPECT_EQ(as_long([](v1::Header& h, Octets&) { h.lists.reply_chunk->clear(); }), CallStatus::kTimeout);
  EXPECT_EQ(as_long([](v1::Header& h, Octets&) { h.lists.reply_chunk->at(0).length = 20; }), CallStatus::kBadReply);
  EXPECT_EQ(as_long([](v1::Header&, Octets& payload) { payload[3] ^= 1; }), CallStatus::kBadReply);
  EXPECT_EQ(as_long([](v1::Header&, Octets& payload) { payload[7] = 0; }), CallStatus::kBadReply);
}

TEST_F(MalformedReply, BadHandlesAndLengthsInWhatComesBack) {
  RecordProperty("proves", "R1-4.4.6-04 R1-4.4.6-05");
  const auto chunk = [this](const std::function<void(Segment&)>& spoil) {
    return ends(false, [&](v1::Header& header, Octets&) { spoil(header.lists.write_list.at(0).at(0)); });
  };
  EXPECT_EQ(chunk([](Segment&) {}), CallStatus::kSuccess);
  EXPECT_EQ(chunk([](Segment& s) { ++s.handle; }), CallStatus::kTimeout);
  EXPECT_EQ(chunk([](Segment& s) { s.offset += 4; }), CallStatus::kTimeout);
  EXPECT_EQ(chunk([](Segment& s) { ++s.length; }), CallStatus::kTimeout);
  EXPECT_EQ(chunk([](Segment& s) { s.length = k3GiB; }), CallStatus::kTimeout);
  EXPECT_EQ(chunk([](Segment& s) { --s.length; }), CallStatus::kBadReply);  // the count says otherwise
}

TEST_F(MalformedReply, SeveralWriteChunks) {
  EXPECT_EQ(ends(true, [](v1::Header&, Octets&) {}), CallStatus::kSuccess);
  EXPECT_EQ(ends(true, [](v1::Header& h, Octets&) { h.lists.write_list.pop_back(); }), CallStatus::kTimeout);
  EXPECT_EQ(ends(true, [](v1::Header& h, Octets&) { h.lists.write_list.push_back(h.lists.write_list[0]); }),
            CallStatus::kTimeout);
  EXPECT_EQ(ends(true, [](v1::Header& h, Octets&) { std::swap(h.lists.write_list[0], h.lists.write_list[1]); }),
            CallStatus::kTimeout);
  EXPECT_EQ(ends(true, [](v1::Header& h,
                          Octets&) { std::swap(h.lists.write_list[0][0].length, h.lists.write_list[1][0].length); }),
            CallStatus::kBadReply);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
