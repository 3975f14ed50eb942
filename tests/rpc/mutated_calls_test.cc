// 60,000 spoiled Calls against a responder: no crash, no octet outside the advertised memory, and an answer that RFC
// 8166 allows.
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "tests/rpc/good_messages.h"
#include "tests/rpc/mutations.h"

namespace weft::rpcrdma::testing {
namespace {

constexpr std::size_t kCallsSpoiled = 60000;

// SpoiledCalls delivers spoiled messages to a responder and judges the outcome.
class SpoiledCalls {
 public:
  explicit SpoiledCalls(FakeMemory& memory) : memory_(memory) { open(); }

  // Delivers a message. Returns the fault of the outcome, "" where the outcome is allowed.
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

// Whether the peer has the memory that its chunks name.
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

// Reads stay within the Read list, Writes within the other chunks, whether the peer has the memory or not.
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

// The lengths in a Reply are the lengths of the Writes, and its lists are the lists of the Call.
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

// Nothing is left behind.
std::string SpoiledCalls::judge_rest() const {
  const ResponderEnd& end = nfs_->end;
  if (end.budget.used() != 0) return "octets of the budget are still taken";
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
    // A peer loses its connection only if it names memory that it does not have, or that cannot be read.
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
    // The contents of a Position Zero chunk are spoiled, too.
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

}  // namespace
}  // namespace weft::rpcrdma::testing
