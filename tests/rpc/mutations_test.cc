// 100,000 spoiled messages against both engines: no crash, no octet outside what was advertised, an answer that RFC
// 8166 allows, and every Call ends once.
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "nfsulb/bindings.h"
#include "nfsulb/testing/compound.h"
#include "rpcrdma/testing/vectors.h"
#include "tests/rpc/good_messages.h"

namespace weft::rpcrdma::testing {
namespace {

constexpr std::size_t kInline = 4096;
constexpr std::size_t kCallsSpoiled = 60000;
constexpr std::size_t kRepliesSpoiled = 40000;
constexpr std::size_t kEachUnspoiled = 50;  // how often one is delivered as it is

std::uint32_t word_at(const Octets& octets, std::size_t offset) {
  std::uint32_t value = 0;
  if (offset + 4 > octets.size()) return 0;
  return xdr::XdrReader(ConstBytes(octets).subspan(offset)).u32(value) ? value : 0;
}

std::string hex(const Octets& octets) {
  return to_hex(
      Octets(octets.begin(), octets.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(octets.size(), 400))));
}

// The lists of a message as a peer would read them, as far as they decode.
struct Read {
  explicit Read(const Octets& message) {
    xdr::XdrReader in(message);
    error = v1::parse_header(in, header);
    if (error == v1::HeaderError::kNone) payload = copy_of(in.rest());
  }
  v1::Header header;
  v1::HeaderError error = v1::HeaderError::kNone;
  Octets payload;
};

// ---- Calls to a responder -------------------------------------------------------------------------------------------

// SpoiledCalls judges what a responder does with whatever arrives.
class SpoiledCalls {
 public:
  explicit SpoiledCalls(FakeMemory& memory) : memory_(memory) { open(); }

  // Delivers a message; says what is wrong with the outcome, nothing where it is allowed.
  std::string deliver(const Octets& message);
  // The outcome of the last message, in a word.
  const std::string& outcome() const { return outcome_; }
  const std::map<std::string, std::size_t>& outcomes() const { return outcomes_; }

 private:
  void open() {
    nfs_.reset();
    nfs_ = std::make_unique<NfsResponder>(
        memory_, ResponderEnd::Options{.credits = 4, .inline_threshold = kInline, .reply_threshold = 1024});
  }
  bool is_honest(const ChunkListsView& lists) const;
  std::string judge_access(const ChunkListsView& lists) const;
  std::string judge_answer(const Octets& message, const Octets& answer);
  std::string judge_reply(const Read& call, const Read& reply);
  std::string judge_rest() const;

  FakeMemory& memory_;
  std::unique_ptr<NfsResponder> nfs_;
  std::string outcome_;
  std::map<std::string, std::size_t> outcomes_;
};

// Whether the peer has what it names.
bool SpoiledCalls::is_honest(const ChunkListsView& lists) const {
  const auto has = [this](const Segment& segment, verbs::Access access) {
    return memory_.find(segment.handle, segment.offset, segment.length, access) != nullptr;
  };
  for (const ReadSegment& segment : lists.read_list) {
    if (!has(segment.target, verbs::Access::kRemoteRead)) return false;
  }
  for (const SegmentArray& chunk : lists.write_list) {
    for (const Segment& segment : chunk) {
      if (!has(segment, verbs::Access::kRemoteWrite)) return false;
    }
  }
  for (const Segment& segment : lists.reply_chunk.value_or(SegmentArray{})) {
    if (!has(segment, verbs::Access::kRemoteWrite)) return false;
  }
  return true;
}

// Reads stay within the Read list, Writes within the others, whether the peer has that memory or not.
std::string SpoiledCalls::judge_access(const ChunkListsView& lists) const {
  for (const FakeQp::Rdma& rdma : nfs_->end.qp.rdma) {
    bool inside = false;
    const auto look = [&](const Segment& segment) {
      inside |= segment.handle == rdma.rkey && rdma.remote_addr >= segment.offset &&
                rdma.remote_addr - segment.offset <= segment.length &&
                rdma.len <= segment.length - (rdma.remote_addr - segment.offset);
    };
    if (rdma.opcode == verbs::WrOpcode::kRdmaRead) {
      for (const ReadSegment& segment : lists.read_list) look(segment.target);
    } else {
      for (const SegmentArray& chunk : lists.write_list) std::ranges::for_each(chunk, look);
      for (const Segment& segment : lists.reply_chunk.value_or(SegmentArray{})) look(segment);
    }
    if (!inside) return "reads or writes what was not offered";
  }
  return {};
}

// That the lengths in a Reply are those of the Writes, and its lists those of the Call.
std::string SpoiledCalls::judge_reply(const Read& call, const Read& reply) {
  const ChunkListsView& offered = call.header.lists;
  const ChunkListsView& returned = reply.header.lists;
  if (!returned.read_list.empty()) return "a Read list in a Reply";
  if (returned.write_list.size() != offered.write_list.size()) return "another number of Write chunks";
  if (returned.reply_chunk.has_value() != offered.reply_chunk.has_value()) return "a Reply chunk gained or lost";
  std::uint64_t said = 0;
  const auto agree = [&said](const SegmentArray& back, const SegmentArray& there) {
    if (back.size() != there.size()) return false;
    for (std::size_t i = 0; i < back.size(); ++i) {
      if (back[i].handle != there[i].handle || back[i].offset != there[i].offset) return false;
      if (back[i].length > there[i].length) return false;
      said += back[i].length;
    }
    return true;
  };
  for (std::size_t i = 0; i < returned.write_list.size(); ++i) {
    if (!agree(returned.write_list[i], offered.write_list[i])) return "a Write chunk changed";
  }
  const std::uint64_t by_write_list = said;
  if (returned.reply_chunk && !agree(*returned.reply_chunk, *offered.reply_chunk)) return "the Reply chunk changed";
  std::uint64_t written = 0;
  for (const FakeQp::Rdma& rdma : nfs_->end.qp.rdma) {
    if (rdma.opcode == verbs::WrOpcode::kRdmaWrite) written += rdma.len;
    if (rdma.sends_before != nfs_->end.qp.num_sends - 1) return "reads or writes behind its Reply";
  }
  if (written != said) return "lengths that are not those written";
  if ((reply.header.proc == v1::Proc::kNomsg) != (said != by_write_list))
    return "a Reply chunk filled, or not, for this form";

  Octets payload = reply.payload;
  if (reply.header.proc == v1::Proc::kNomsg) {
    if (!payload.empty()) return "RDMA_NOMSG with a Payload stream";
    for (const Segment& segment : *returned.reply_chunk) {
      if (segment.length == 0) continue;
      const std::uint8_t* from =
          memory_.find(segment.handle, segment.offset, segment.length, verbs::Access::kRemoteWrite);
      if (from == nullptr) return "a Reply chunk that the peer does not have";
      payload.insert(payload.end(), from, from + segment.length);
    }
  }
  xdr::XdrReader in(payload);
  ReplyHeader rpc;
  if (!parse_reply(in, rpc) || rpc.xid != call.header.xid) return "no RPC Reply to that XID";
  outcome_ = std::string(reply.header.proc == v1::Proc::kNomsg ? "long " : "") +
             (rpc.denied ? "MSG_DENIED" : accept_stat_str(rpc.accept));
  return {};
}

std::string SpoiledCalls::judge_answer(const Octets& message, const Octets& answer) {
  const Read call(message);
  const Read reply(answer);
  if (reply.error != v1::HeaderError::kNone) return "an answer that does not decode";
  if (reply.header.xid != word_at(message, 0)) return "another XID";
  if (reply.header.credit == 0) return "a grant of 0";
  if (answer.size() > 1024) return "more than the reply inline threshold";
  if (reply.header.proc != v1::Proc::kError) {
    if (call.error != v1::HeaderError::kNone) return "a Reply to a header that does not decode";
    if (word_at(message, 4) != 1 || reply.header.vers != 1) return "another version";
    if (call.header.proc == v1::Proc::kMsg && word_at(call.payload, 0) != call.header.xid)
      return "two XIDs in one Call";
    if (call.header.proc != v1::Proc::kMsg && call.header.proc != v1::Proc::kNomsg) return "a Reply to what is no Call";
    if (reply.header.proc != v1::Proc::kMsg && reply.header.proc != v1::Proc::kNomsg) return "not a Reply";
    return judge_reply(call, reply);
  }
  if (reply.header.vers != word_at(message, 4)) return "RDMA_ERROR without the version that came";
  const bool is_vers = reply.header.err == v1::Err::kVers;
  if (is_vers != (word_at(message, 4) != 1)) return "the wrong RDMA_ERROR";
  if (answer.size() != (is_vers ? 28u : 20u)) return "RDMA_ERROR of another length";
  if (is_vers && (reply.header.vers_low != 1 || reply.header.vers_high != 1)) return "another range of versions";
  outcome_ = is_vers ? "ERR_VERS" : "ERR_CHUNK";
  return {};
}

// That nothing is left behind.
std::string SpoiledCalls::judge_rest() const {
  const ResponderEnd& end = nfs_->end;
  if (end.budget.used != 0) return "octets of the budget are still taken";
  if (end.pool.in_use() != 0) return "Buffers are still taken";
  if (end.responder->has_work()) return "work is left";
  if (end.qp.num_receives() != end.endpoint->config().num_receives) return "a Receive was not posted again";
  return {};
}

std::string SpoiledCalls::deliver(const Octets& message) {
  nfs_->end.qp.rdma.clear();
  nfs_->end.qp.sent.clear();
  outcome_ = "silence";
  if (!nfs_->end.qp.inject(message)) return "the message was not taken";
  nfs_->end.pump();
  const Read call(message);
  const std::uint32_t proc = word_at(message, 12);
  std::string fault = judge_access(call.header.lists);
  const auto& sent = nfs_->end.qp.sent;
  if (fault.empty() && sent.size() > 1) fault = "more than one answer";
  if (fault.empty() && sent.size() == 1) {
    fault = message.size() < 28 ? "an answer to less than 28 octets" : judge_answer(message, sent[0]);
  }
  if (nfs_->end.endpoint->failure()) {
    // Only a peer that names what it does not have, or cannot be read from, loses its connection.
    if (fault.empty() && is_honest(call.header.lists)) fault = "lost the connection: " + *nfs_->end.endpoint->failure();
    outcome_ = "end of the connection";
    open();
  } else {
    if (fault.empty()) fault = judge_rest();
    const bool is_call = message.size() >= 28 && word_at(message, 4) == 1 && proc != 3 && proc != 4;
    const bool is_reply = proc == 0 && call.error == v1::HeaderError::kNone && word_at(call.payload, 4) == 1;
    const bool is_foreign = message.size() >= 28 && word_at(message, 4) != 1;
    if (fault.empty() && sent.empty() && (is_foreign || (is_call && !is_reply))) fault = "no answer";
    if (fault.empty() && !sent.empty() && !is_foreign && !is_call) fault = "an answer to what is no Call";
  }
  ++outcomes_[outcome_];
  return fault;
}

TEST(Mutations, OfCallsReachARespondersPeerAsAnAnswerThatIsAllowed) {
  RecordProperty("proves", "R1-9.3-01 R1-10.1-01 R1-5.6.1-01 R1-5.6.2-01");
  std::cout << "WEFT_SEED=" << seed() << "\n";
  FakeMemory memory;
  const std::vector<GoodMessage> all = good_messages(memory);
  ASSERT_GT(all.size(), 70u);
  SpoiledCalls calls(memory);
  std::map<std::string, std::string> unspoiled;
  for (const GoodMessage& message : all) {
    ASSERT_EQ(calls.deliver(message.octets), "") << message.name;
    unspoiled[message.name] = calls.outcome();
    const bool is_nfs = message.name[0] == 'v';
    if (is_nfs) {
      EXPECT_TRUE(calls.outcome() == "SUCCESS" || calls.outcome() == "long SUCCESS") << message.name << calls.outcome();
    }
  }
  Mutator mutator(seed());
  for (std::size_t i = 0; i < kCallsSpoiled; ++i) {
    const GoodMessage& good = all[mutator.below(all.size())];
    const Octets& other = all[mutator.below(all.size())].octets;
    Octets message = good.octets;
    // What a Position Zero chunk holds is spoiled, too.
    Octets* held = good.readable.empty() ? nullptr : good.readable[mutator.below(good.readable.size())].get();
    const Octets before = held != nullptr ? *held : Octets{};
    const bool as_it_is = i % kEachUnspoiled == 0;
    const bool spoil_memory = !as_it_is && held != nullptr && mutator.below(3) == 0;
    if (spoil_memory) {
      Octets spoiled = mutator.spoil(before, other, before.size());
      spoiled.resize(before.size());
      std::ranges::copy(spoiled, held->begin());
    }
    if (!as_it_is && !(spoil_memory && mutator.below(2) == 0)) message = mutator.spoil(good.octets, other, kInline);
    ASSERT_EQ(calls.deliver(message), "")
        << good.name << ", number " << i << " of seed " << seed() << ": " << hex(message);
    if (as_it_is) {
      ASSERT_EQ(calls.outcome(), unspoiled[good.name]) << good.name << ", number " << i;
    }
    if (spoil_memory) std::ranges::copy(before, held->begin());
  }
  // Every kind of outcome was there, so that the rules above were asked.
  for (const char* what : {"silence", "ERR_VERS", "ERR_CHUNK", "GARBAGE_ARGS", "SUCCESS", "long SUCCESS",
                           "PROG_UNAVAIL", "MSG_DENIED", "end of the connection"}) {
    EXPECT_GT(calls.outcomes().contains(what) ? calls.outcomes().at(what) : 0, 50u) << what;
  }
}

// ---- Replies to a requester -----------------------------------------------------------------------------------------

// What a Call asks for and what its peer answers.
struct Exchange {
  const char* name;
  CallStatus status;  // how it ends if nothing is spoiled
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
  // What its peer says to this Call, item octets written.
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
      {"ERR_CHUNK", CallStatus::kErrChunk, write_call, {}, {}, AcceptStat::kSuccess, false, v1::Err::kChunk},
      {"ERR_VERS", CallStatus::kErrVers, readdir, {}, {}, AcceptStat::kSuccess, false, v1::Err::kVers},
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
  // Memory of a Call that has ended is there no more; its late Reply says what it would have said.
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
  if (status == CallStatus::kErrChunk || status == CallStatus::kErrVers) {
    const auto err = status == CallStatus::kErrChunk ? v1::Err::kChunk : v1::Err::kVers;
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

// The peer answers what it has not answered, `first` and then NULLs; until nothing more is asked.
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
                                  CallStatus::kErrChunk, CallStatus::kErrVers, CallStatus::kBadReply}) {
    EXPECT_GT(statuses[status], 50u) << call_status_str(status);
  }
  EXPECT_GT(num_timeouts, 500u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
