// 40,000 spoiled Replies against a requester: no crash, and every Call ends once.
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "nfsulb/bindings.h"
#include "nfsulb/testing/compound.h"
#include "rpcrdma/testing/vectors.h"
#include "tests/rpc/good_messages.h"
#include "tests/rpc/mutations.h"

namespace weft::rpcrdma::testing {
namespace {

constexpr std::size_t kRepliesSpoiled = 40000;

// A Call and its peer's answer.
struct Exchange {
  const char* name;
  CallStatus status;  // of the Call without spoiling
  CallSpec spec;
  Octets results = {};
  std::vector<std::size_t> lens = {};  // octets in the Write chunks
  AcceptStat accept = AcceptStat::kSuccess;
  bool is_long = false;
  std::optional<v1::Err> err = {};
};

struct MutatedReplies : ::testing::Test {
  MutatedReplies();

  void open() {
    end.reset();
    end = std::make_unique<RequesterEnd>(memory, RequesterEnd::Options{.credits = 4,
                                                                       .inline_threshold = kInline,
                                                                       .call_threshold = 1024,
                                                                       .reply_threshold = 1024,
                                                                       .chunks = {.max_write_chunks = 2}});
    answered = 0;
  }
  // The peer's Reply to this Call. It writes the items' octets first.
  Octets reply_to(const Octets& call, const Exchange& exchange) const;
  // Whether `message` may end this Call that way.
  static std::string judge(const Octets& call, const Octets& message, CallStatus status);
  // One Call and a NULL Call beside it, and a message that is nearly the Reply.
  void run_one(const Exchange& exchange, Mutator& mutator, bool as_it_is);
  Octets foreign(Mutator& mutator, const Octets& call);
  void turn() {
    end->pump();
    end->requester->on_time(now);
  }
  void answer_all(const Exchange& first);

  FakeMemory memory;
  TimePoint now = TimePoint{} + std::chrono::seconds(100);
  std::vector<Vector> vectors = load_vectors('V');
  Octets room_a = Octets(3000);
  Octets room_b = Octets(500);
  std::vector<ScatteredBytes> rooms{MutBytes(room_a), MutBytes(room_b)};
  Octets data = pattern(3000);
  ArgumentItem item;
  Octets write_args, read_args, compound, getacl;
  std::vector<Exchange> exchanges;
  std::unique_ptr<RequesterEnd> end;
  std::size_t answered = 0;            // Sends of the requester
  std::vector<const Exchange*> asked;  // by each of them
  std::map<CallStatus, std::size_t> statuses;
  std::size_t num_timeouts = 0;
};

MutatedReplies::MutatedReplies() {
  using namespace nfsulb;           // NOLINT
  using namespace nfsulb::testing;  // NOLINT
  write_args = Xdr().opaque(28).u64(0).words({3000, 2, 3000}).octets();
  read_args = Xdr().opaque(28).u64(0).u32(3000).octets();
  compound = compound_args(0, {putfh(), read(3000), read(500)}).octets();
  getacl = Xdr().opaque(28).u32(15).octets();
  item = {write_args.size(), ConstBytes(data)};
  const auto spec = [](std::uint32_t program, std::uint32_t version, std::uint32_t procedure, ConstBytes args,
                       std::size_t max_results) {
    CallSpec call;
    call.program = program;
    call.version = version;
    call.procedure = procedure;
    call.binding = find_binding(program, version);
    call.args = args;
    call.max_results = max_results;
    return call;
  };
  const CallSpec null = spec(kNfsProgram, kNfsV3, 0, {}, 0);
  CallSpec read_call = spec(kNfsProgram, kNfsV3, 6, read_args, 104);
  read_call.result_items = MutBytes(room_a);
  CallSpec write_call = spec(kNfsProgram, kNfsV3, 7, write_args, 160);
  write_call.items = item;
  CallSpec compound_call = spec(kNfsProgram, kNfsV4, kCompound, compound, 200);
  compound_call.result_items = rooms;
  const CallSpec readdir = spec(kNfsProgram, kNfsV3, 16, read_args, 8192);
  const Octets read_results = Xdr().words({0, 0, 3000, 1, 3000}).octets();
  const Octets compound_results =
      Xdr().u32(0).opaque(5).u32(3).add(ok(kOpPutfh)).add(read_ok(2999)).add(read_ok(500)).octets();
  exchanges = {
      {"NULL", CallStatus::kSuccess, null},
      {"READ", CallStatus::kSuccess, read_call, read_results, {3000}},
      {"READ that fails", CallStatus::kSuccess, read_call, Xdr().words({70, 0}).octets()},
      {"READ and READ", CallStatus::kSuccess, compound_call, compound_results, {2999, 500}},
      {"WRITE", CallStatus::kSuccess, write_call, Xdr().words({0, 0, 0, 3000, 2, 1, 2}).octets()},
      {"READDIR, long", CallStatus::kSuccess, readdir, pattern(5000), {}, AcceptStat::kSuccess, true},
      {"READDIR, short", CallStatus::kSuccess, readdir, pattern(500)},
      {"GETACL",
       CallStatus::kSuccess,
       spec(kNfsAclProgram, kNfsAclV3, 1, getacl, 24600),
       pattern(9000),
       {},
       AcceptStat::kSuccess,
       true},
      {"garbage", CallStatus::kGarbageArgs, read_call, {}, {}, AcceptStat::kGarbageArgs},
      {"mismatch", CallStatus::kProgMismatch, null, {}, {}, AcceptStat::kProgMismatch},
      {"ERR_CHUNK", CallStatus::kTransportError, write_call, {}, {}, AcceptStat::kSuccess, false, v1::Err::kChunk},
      {"ERR_VERS", CallStatus::kVersMismatch, readdir, {}, {}, AcceptStat::kSuccess, false, v1::Err::kVers},
  };
}

Octets MutatedReplies::reply_to(const Octets& call, const Exchange& exchange) const {
  v1::Header header = parse(call);
  header.credit = 4;
  if (exchange.err) {
    header.proc = v1::Proc::kError;
    header.err = *exchange.err;
    header.vers_low = header.vers_high = 1;
    return message(header, {});
  }
  header.proc = v1::Proc::kMsg;
  header.lists.read_list.clear();
  // The memory of an ended Call is gone. Its late Reply has the same lengths as in time.
  const auto write = [this](SegmentArray& chunk, const Octets& octets) {
    std::size_t done = 0;
    for (Segment& segment : chunk) {
      segment.length = static_cast<std::uint32_t>(std::min<std::size_t>(segment.length, octets.size() - done));
      std::uint8_t* to = memory.find(segment.handle, segment.offset, segment.length, verbs::Access::kRemoteWrite);
      if (to != nullptr) std::copy_n(octets.begin() + static_cast<std::ptrdiff_t>(done), segment.length, to);
      done += segment.length;
    }
  };
  for (std::size_t i = 0; i < header.lists.write_list.size(); ++i) {
    write(header.lists.write_list[i], pattern(i < exchange.lens.size() ? exchange.lens[i] : 0));
  }
  Octets payload = rpc_reply(header.xid, exchange.results, exchange.accept);
  if (exchange.is_long) {
    header.proc = v1::Proc::kNomsg;
    write(*header.lists.reply_chunk, payload);
    payload.clear();
  } else if (header.lists.reply_chunk) {
    write(*header.lists.reply_chunk, {});
  }
  return message(header, payload);
}

std::string MutatedReplies::judge(const Octets& call, const Octets& message, CallStatus status) {
  const Read reply(message);
  const v1::Header offered = parse(call);
  if (reply.error != v1::HeaderError::kNone) return "ended by what does not decode";
  if (reply.header.xid != offered.xid) return "ended by another XID";
  if (reply.header.vers != 1) return "ended by another version";
  if (status == CallStatus::kTransportError || status == CallStatus::kVersMismatch) {
    const auto err = status == CallStatus::kTransportError ? v1::Err::kChunk : v1::Err::kVers;
    return reply.header.proc == v1::Proc::kError && reply.header.err == err ? "" : "not that error";
  }
  if (reply.header.proc != v1::Proc::kMsg && reply.header.proc != v1::Proc::kNomsg) return "ended by no Reply";
  const ChunkListsView& lists = reply.header.lists;
  if (!lists.read_list.empty()) return "a Read list was taken";
  if (lists.write_list.size() != offered.lists.write_list.size()) return "another number of Write chunks was taken";
  const auto differ = [](const SegmentArray& back, const SegmentArray& there) {
    if (back.empty()) return false;  // RFC 8267 section 6.4.1
    if (back.size() != there.size()) return true;
    for (std::size_t i = 0; i < back.size(); ++i) {
      if (back[i].handle != there[i].handle || back[i].offset != there[i].offset) return true;
      if (back[i].length > there[i].length) return true;
    }
    return false;
  };
  for (std::size_t i = 0; i < lists.write_list.size(); ++i) {
    if (differ(lists.write_list[i], offered.lists.write_list[i])) return "a changed Write chunk was taken";
  }
  if (lists.reply_chunk && (!offered.lists.reply_chunk || differ(*lists.reply_chunk, *offered.lists.reply_chunk))) {
    return "another Reply chunk was taken";
  }
  return {};
}

// A vector under this Call's XID.
Octets MutatedReplies::foreign(Mutator& mutator, const Octets& call) {
  Octets octets = vectors[mutator.below(vectors.size())].octets;
  const Octets xid(call.begin(), call.begin() + 4);
  const std::size_t header_len = octets.size() - Read(octets).payload.size();
  std::ranges::copy(xid, octets.begin());
  if (octets.size() >= header_len + 4) std::ranges::copy(xid, octets.begin() + static_cast<std::ptrdiff_t>(header_len));
  return octets;
}

// The peer answers all open Calls, `first` and then NULLs, until no more Calls come.
void MutatedReplies::answer_all(const Exchange& first) {
  while (answered < end->qp.sent.size()) {
    const bool is_first = asked[answered] == &first;
    const Exchange& exchange = is_first ? first : exchanges[0];
    ASSERT_TRUE(end->qp.inject(reply_to(end->qp.sent[answered], exchange)));
    ++answered;
    turn();
    asked.resize(end->qp.sent.size(), &exchanges[0]);
  }
}

void MutatedReplies::run_one(const Exchange& exchange, Mutator& mutator, bool as_it_is) {
  struct Ended {
    int times = 0;
    CallStatus status = CallStatus::kLocalError;
  } ends[2];
  end->qp.sent.clear();
  answered = 0;
  const auto call = [&](const CallSpec& spec, Ended& ended, bool alone) {
    const auto called = end->requester->call(spec, [this, &ended, alone](const Reply& reply) {
      ++ended.times;
      ended.status = reply.status;
      if (alone) {
        EXPECT_EQ(memory.num_remote(), 0u);
      }
      // Views are there to be read.
      EXPECT_LE(copy_of(reply.results).size(), copy_of(reply.message).size());
      for (const auto& len : reply.item_lens) EXPECT_LE(len.value_or(0), room_a.size());
    });
    ASSERT_TRUE(called.ok()) << called.error().message;
  };
  call(exchange.spec, ends[0], true);
  call(exchanges[0].spec, ends[1], false);
  ASSERT_GE(end->qp.sent.size(), 1u);
  asked.assign(1, &exchange);
  asked.resize(end->qp.sent.size(), &exchanges[0]);
  const Octets asking = end->qp.sent[0];

  const Octets good = reply_to(asking, exchange);
  const Octets base = mutator.below(8) == 0 ? foreign(mutator, asking) : good;
  const Octets other = vectors[mutator.below(vectors.size())].octets;
  const Octets message = as_it_is ? good : mutator.spoil(base, other, kInline);
  SCOPED_TRACE(hex(message));
  ASSERT_TRUE(end->qp.inject(message));
  turn();
  ASSERT_LE(ends[0].times, 1);
  ASSERT_GE(end->requester->window(), 1u);
  ASSERT_LE(end->requester->window(), 4u);
  if (as_it_is) {
    ASSERT_EQ(ends[0].times, 1) << exchange.name;
    ASSERT_EQ(ends[0].status, exchange.status) << exchange.name;
  }
  if (ends[0].times == 1) {
    ++statuses[ends[0].status];
    ASSERT_EQ(judge(asking, message, ends[0].status), "") << call_status_str(ends[0].status);
  }
  asked.resize(end->qp.sent.size(), &exchanges[0]);
  const bool lapse = !as_it_is && mutator.below(4) == 0;
  if (lapse) {
    num_timeouts += ends[0].times == 0 ? 1 : 0;
    now += std::chrono::seconds(2);
    end->requester->on_time(now);
    ASSERT_EQ(ends[0].times, 1);
    ASSERT_EQ(ends[1].times, 1);
    ASSERT_EQ(memory.num_remote(), 0u);
  }
  answer_all(exchange);
  ASSERT_EQ(ends[0].times, 1);
  ASSERT_EQ(ends[1].times, 1);
  ASSERT_EQ(memory.num_remote(), 0u);
  ASSERT_EQ(end->requester->num_outstanding(), 0u);
  if (!end->endpoint->failure()) {
    ASSERT_EQ(end->qp.num_receives(), end->endpoint->config().num_receives);
  }
  // R1-4.1-01, R1-5.2.4-03: it says Calls and nothing else, and moves nothing itself.
  ASSERT_TRUE(end->qp.rdma.empty());
  // ERR_CHUNK lets some Calls be sent again as others (RFC 8267 section 3.1), three times at most.
  ReplyBound bound;
  const CallSpec& spec = exchange.spec;
  spec.binding->bound_reply(spec.procedure, spec.args, {}, {}, bound);
  ASSERT_LE(end->qp.sent.size(), bound.may_retry ? 5u : bound.may_retry_once ? 3u : 2u);
  for (const Octets& octets : end->qp.sent) {
    ASSERT_EQ(word_at(octets, 4), 1u);
    ASSERT_LE(word_at(octets, 12), 1u);
  }
  if (end->endpoint->failure()) {
    // A peer that is silent about all that it granted for a whole timeout.
    ASSERT_TRUE(lapse) << *end->endpoint->failure();
    open();
  }
}

TEST_F(MutatedReplies, EndEveryCallOnce) {
  RecordProperty("proves", "R1-4.1-01 R1-5.2.4-03 R1-9.3-01");
  std::cout << "WEFT_SEED=" << seed() << "\n";
  open();
  Mutator mutator(seed() + 1);
  for (std::size_t i = 0; i < kRepliesSpoiled; ++i) {
    const bool as_it_is = i % kEachUnspoiled == 0;
    const Exchange& exchange = exchanges[(as_it_is ? i / kEachUnspoiled : mutator.below(1000)) % exchanges.size()];
    SCOPED_TRACE(::testing::Message() << exchange.name << ", number " << i << " of seed " << seed());
    ASSERT_NO_FATAL_FAILURE(run_one(exchange, mutator, as_it_is));
    if (HasFailure()) return;
  }
  for (const CallStatus status : {CallStatus::kSuccess, CallStatus::kGarbageArgs, CallStatus::kProgMismatch,
                                  CallStatus::kTransportError, CallStatus::kVersMismatch, CallStatus::kBadReply}) {
    EXPECT_GT(statuses[status], 50u) << call_status_str(status);
  }
  EXPECT_GT(num_timeouts, 500u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
