// Short Reply chunk retry (RFC 8267 sections 3.1, 5.2 and 6.2.1), and the one retry beyond it: exactly where the
// bindings of the NFS family allow it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "nfsulb/testing/compound.h"
#include "rpcrdma/requester.h"
#include "rpcrdma/testing/engines.h"
#include "rpcrdma/testing/gss.h"

namespace weft::rpcrdma::testing {
namespace {

using nfsulb::testing::compound_args;
using nfsulb::testing::getattr;
using nfsulb::testing::op;
using nfsulb::testing::putfh;
using nfsulb::testing::Xdr;

constexpr std::uint32_t kGetacl = 1;
constexpr std::uint32_t kReadlink = 5, kFsinfo = 19;
constexpr std::uint32_t kCompound = 1;

struct ShortReplyRetryTest : ::testing::Test {
  ShortReplyRetryTest() { open({}); }
  void open(RequesterEnd::Options options) {
    options.call_threshold = options.reply_threshold = 1024;
    end = std::make_unique<RequesterEnd>(memory, options);
  }

  void call(std::uint32_t program, std::uint32_t version, std::uint32_t procedure, const Xdr& args,
            std::size_t max_results, std::optional<std::uint32_t> xid = {}, MutBytes item = {}) {
    const Octets& octets = arguments.emplace_back(args.octets());
    CallSpec spec;
    spec.program = program;
    spec.version = version;
    spec.procedure = procedure;
    spec.binding = nfsulb::find_binding(program, version);
    spec.args = octets;
    spec.max_results = max_results;
    spec.xid = xid;
    spec.cred = &cred;
    if (!item.empty()) spec.result_items = ScatteredBytes(item);
    const auto called = end->requester->call(spec, [this](const Reply& reply) {
      ended.push_back(reply.status);
      remote_at_end = memory.num_remote();
      results = copy_of(reply.results);
      message_xid = reply.message.size() >= 4 ? word_at(reply.message, 0) : 0;
    });
    ASSERT_TRUE(called.ok()) << called.error().message;
    run();
  }
  void compound(std::uint32_t minor_version, const std::vector<Xdr>& operations) {
    call(nfsulb::kNfsProgram, nfsulb::kNfsV4, kCompound, compound_args(minor_version, operations), 2000);
  }
  void run() {
    end->pump();
    end->requester->on_time(at(++ms));
  }
  // The server answers the last Call with ERR_CHUNK, or the one with this XID.
  void answer_err_chunk(std::uint32_t credit = 1, std::optional<std::uint32_t> xid = {}) {
    answer_error(v1::Err::kChunk, credit, xid);
  }
  void answer_error(v1::Err err, std::uint32_t credit = 1, std::optional<std::uint32_t> xid = {}) {
    v1::Header header;
    header.xid = xid.value_or(last().xid);
    header.credit = credit;
    header.proc = v1::Proc::kError;
    header.err = err;
    header.vers_low = header.vers_high = 2;
    ASSERT_TRUE(end->qp.inject(message(header, {})));
    run();
  }
  // The server answers the last Call through its Reply chunk.
  void answer_long(const Octets& wanted) {
    v1::Header header = last();
    header.proc = v1::Proc::kNomsg;
    header.lists.write_list.clear();
    ASSERT_TRUE(header.lists.reply_chunk);
    const Octets reply = rpc_reply(header.xid, wanted);
    auto& segment = header.lists.reply_chunk->front();
    std::uint8_t* into = memory.find(segment.handle, segment.offset, reply.size(), verbs::Access::kRemoteWrite);
    ASSERT_NE(into, nullptr);
    std::copy(reply.begin(), reply.end(), into);
    segment.length = static_cast<std::uint32_t>(reply.size());
    ASSERT_TRUE(end->qp.inject(message(header, {})));
    run();
  }
  static std::uint32_t word_at(ConstBytes octets, std::size_t place) {
    xdr::XdrReader in(octets.subspan(place));
    std::uint32_t word = 0;
    EXPECT_TRUE(in.u32(word));
    return word;
  }
  v1::Header last() const { return parse(end->qp.sent.back()); }
  std::size_t reply_chunk() const {
    const auto chunk = last().lists.reply_chunk;
    return chunk ? total_length(*chunk) : 0;
  }
  void expect_one_error() {
    answer_err_chunk();
    EXPECT_EQ(end->qp.sent.size(), 1u);
    EXPECT_THAT(ended, ::testing::ElementsAre(CallStatus::kTransportError));
    EXPECT_EQ(remote_at_end, 0u);
  }

  FakeMemory memory;
  std::deque<Octets> arguments;  // of all Calls
  OpaqueAuth cred;
  std::uint32_t message_xid = 0;
  int ms = 0;
  std::vector<CallStatus> ended;
  std::size_t remote_at_end = 99;
  Octets results;
  std::unique_ptr<RequesterEnd> end;
};

TEST_F(ShortReplyRetryTest, GetaclIsAskedAgainWithMoreRoom) {
  RecordProperty("proves", "U1-3.1-03 U1-3.1-04 U1-5.2-06");
  call(nfsulb::kNfsAclProgram, nfsulb::kNfsAclV3, kGetacl, Xdr().opaque(32).u32(0xf), 2000);
  const std::uint32_t first_xid = last().xid;
  const std::size_t first = reply_chunk();
  ASSERT_GE(first, 2000u);
  answer_err_chunk();
  ASSERT_EQ(end->qp.sent.size(), 2u);
  EXPECT_TRUE(ended.empty());
  EXPECT_NE(last().xid, first_xid);
  EXPECT_EQ(reply_chunk(), 2 * first);
  EXPECT_EQ(memory.num_remote(), 1u);
  // It is answered in the larger chunk.
  const Octets wanted = pattern(3000);
  answer_long(wanted);
  EXPECT_THAT(ended, ::testing::ElementsAre(CallStatus::kSuccess));
  EXPECT_EQ(results, wanted);
  EXPECT_EQ(remote_at_end, 0u);
}

TEST_F(ShortReplyRetryTest, ThreeTimesAndNoMore) {
  RecordProperty("proves", "U1-3.1-05");
  call(nfsulb::kNfsAclProgram, nfsulb::kNfsAclV3, kGetacl, Xdr().opaque(32).u32(0xf), 100);  // no Reply chunk at first
  std::vector<std::size_t> chunks;
  for (int i = 0; i < 20 && ended.empty(); ++i) {
    chunks.push_back(reply_chunk());
    answer_err_chunk();
  }
  EXPECT_THAT(chunks, ::testing::ElementsAre(0, 2048, 4096, 8192));
  EXPECT_THAT(ended, ::testing::ElementsAre(CallStatus::kTransportError));
  EXPECT_EQ(remote_at_end, 0u);
  EXPECT_EQ(end->requester->counters().short_reply_retries, 3u);
}

TEST_F(ShortReplyRetryTest, GetattrOfVersion40IsAskedAgain) {
  RecordProperty("proves", "U1-6.2.1-03 U1-6.2.1-02");
  compound(0, {putfh(), getattr({1u << 12})});
  answer_err_chunk();
  EXPECT_EQ(end->qp.sent.size(), 2u);
  EXPECT_TRUE(ended.empty());
}

TEST_F(ShortReplyRetryTest, NotWithWhatMustNotRunTwice) {
  RecordProperty("proves", "U1-6.2.1-04");
  compound(0, {putfh(), op(nfsulb::testing::kOpRemove, Xdr().opaque(3)), getattr({1u << 12})});
  expect_one_error();
}

TEST_F(ShortReplyRetryTest, NotInASession) {
  compound(1, {nfsulb::testing::sequence(), putfh(), getattr({1u << 12})});
  expect_one_error();
}

// READDIR of NFSv3: handle, cookie, verifier, count. Linux sends more than the count.
TEST_F(ShortReplyRetryTest, AListingIsAskedForOnceMore) {
  call(nfsulb::kNfsProgram, nfsulb::kNfsV3, kReaddir, Xdr().opaque(32).u64(0).u64(0).u32(1000), 2000);
  const std::uint32_t first_xid = last().xid;
  const std::size_t first = reply_chunk();
  answer_err_chunk();
  ASSERT_EQ(end->qp.sent.size(), 2u);
  EXPECT_TRUE(ended.empty());
  EXPECT_NE(last().xid, first_xid);
  EXPECT_EQ(reply_chunk(), 2 * first);
  const Octets wanted = pattern(3000);
  answer_long(wanted);
  EXPECT_THAT(ended, ::testing::ElementsAre(CallStatus::kSuccess));
  EXPECT_EQ(results, wanted);
  EXPECT_EQ(remote_at_end, 0u);
}

TEST_F(ShortReplyRetryTest, AListingThatWasInlineGetsAReplyChunk) {
  call(nfsulb::kNfsProgram, nfsulb::kNfsV3, kReaddir, Xdr().opaque(32).u64(0).u64(0).u32(100), 100);
  EXPECT_EQ(reply_chunk(), 0u);
  answer_err_chunk();
  EXPECT_EQ(reply_chunk(), 2048u) << "twice the threshold";
}

TEST_F(ShortReplyRetryTest, ASecondErrorEndsIt) {
  call(nfsulb::kNfsProgram, nfsulb::kNfsV3, kReaddir, Xdr().opaque(32).u64(0).u64(0).u32(1000), 2000);
  answer_err_chunk();
  answer_err_chunk();
  EXPECT_EQ(end->qp.sent.size(), 2u);
  EXPECT_THAT(ended, ::testing::ElementsAre(CallStatus::kTransportError));
  EXPECT_EQ(remote_at_end, 0u);
  EXPECT_FALSE(end->endpoint->failure());
}

// The Linux kernel's server ignores a Write list beside a Reply chunk.
TEST_F(ShortReplyRetryTest, ATextThatWasTooLongComesInTheReplyChunk) {
  Octets text(1000);
  call(nfsulb::kNfsProgram, nfsulb::kNfsV3, kReadlink, Xdr().opaque(32), 600, {}, text);
  ASSERT_EQ(last().lists.write_list.size(), 1u);
  ASSERT_FALSE(last().lists.reply_chunk);
  answer_err_chunk();
  ASSERT_EQ(end->qp.sent.size(), 2u);
  EXPECT_TRUE(last().lists.write_list.empty());
  EXPECT_EQ(reply_chunk(), 2048u);
  const Octets wanted = Xdr().u32(0).u32(0).opaque(900).octets();
  answer_long(wanted);
  EXPECT_THAT(ended, ::testing::ElementsAre(CallStatus::kSuccess));
  EXPECT_EQ(Octets(text.begin(), text.begin() + 900), Octets(900, 0x11));
}

TEST_F(ShortReplyRetryTest, NotForOtherProcedures) {
  RecordProperty("proves", "U1-3.1-02 U1-6.6-04");
  // FSINFO: its results have no more octets than XDR gives them.
  call(nfsulb::kNfsProgram, nfsulb::kNfsV3, kFsinfo, Xdr().opaque(32), 2000);
  expect_one_error();
  // The connection goes on.
  EXPECT_FALSE(end->endpoint->failure());
  call(nfsulb::kNfsProgram, nfsulb::kNfsV3, 0, Xdr(), 0);
  EXPECT_EQ(end->qp.sent.size(), 2u);
}

TEST_F(ShortReplyRetryTest, ARequestThatMustNotRunTwiceIsNotSentTwice) {
  // RENAME, with room beyond its results as a gateway's caller may give it.
  call(nfsulb::kNfsProgram, nfsulb::kNfsV3, 14, Xdr().opaque(32).opaque(1).opaque(32).opaque(1), 2000);
  expect_one_error();
}

TEST_F(ShortReplyRetryTest, ACallersOwnXidIsThatOfTheFirstCallAlone) {
  call(nfsulb::kNfsAclProgram, nfsulb::kNfsAclV3, kGetacl, Xdr().opaque(32).u32(0xf), 2000, 0x4711);
  EXPECT_EQ(last().xid, 0x4711u);
  answer_err_chunk();
  ASSERT_EQ(end->qp.sent.size(), 2u);
  const std::uint32_t second = last().xid;
  EXPECT_NE(second, 0x4711u);
  answer_long(pattern(3000));
  EXPECT_THAT(ended, ::testing::ElementsAre(CallStatus::kSuccess));
  EXPECT_EQ(message_xid, second) << "for the caller to replace";
}

// A larger Reply chunk is of no use to a server of another version.
TEST_F(ShortReplyRetryTest, NotAfterErrVers) {
  call(nfsulb::kNfsAclProgram, nfsulb::kNfsAclV3, kGetacl, Xdr().opaque(32).u32(0xf), 2000);
  answer_error(v1::Err::kVers);
  EXPECT_EQ(end->qp.sent.size(), 1u);
  EXPECT_THAT(ended, ::testing::ElementsAre(CallStatus::kVersMismatch));
}

// A connection without chunks has no larger chunk.
TEST_F(ShortReplyRetryTest, NotWhereNoChunksAreOffered) {
  RecordProperty("proves", "U1-3.1-05");
  open({.short_only = true});
  call(nfsulb::kNfsAclProgram, nfsulb::kNfsAclV3, kGetacl, Xdr().opaque(32).u32(0xf), 100);
  expect_one_error();
}

// An operation that the binding does not know may be one that must not run twice.
TEST_F(ShortReplyRetryTest, NotWhereTheBindingDoesNotKnowAllOfTheCall) {
  RecordProperty("proves", "U1-6.2.1-04");
  static constexpr Binding kBinding{
      kTestProgram, kTestVersion, nullptr, nullptr,
      [](std::uint32_t, ConstBytes, std::span<const std::size_t>, const ReplyLimits&, ReplyBound& bound) {
        bound.may_retry = bound.may_retry_once = true;
        return Walked::kUnknown;
      }};
  const auto called = end->requester->call(call_of(kBinding), [this](const Reply& reply) {
    ended.push_back(reply.status);
    remote_at_end = memory.num_remote();
  });
  ASSERT_TRUE(called.ok());
  run();
  expect_one_error();
}

// The credential's verifier covers the XID (RFC 2203 section 5.3.1).
TEST_F(ShortReplyRetryTest, NotWithRpcsecGss) {
  cred = gss_cred(GssService::kNone);
  call(nfsulb::kNfsAclProgram, nfsulb::kNfsAclV3, kGetacl, Xdr().opaque(32).u32(0xf), 2000, 0x4711);
  expect_one_error();
}

// 64 MiB is the most, for every answer of a server.
TEST_F(ShortReplyRetryTest, NoFurtherThanALargeReplyChunk) {
  call(nfsulb::kNfsAclProgram, nfsulb::kNfsAclV3, kGetacl, Xdr().opaque(32).u32(0xf), 40 << 20);
  ASSERT_GE(reply_chunk(), std::size_t{40} << 20);
  expect_one_error();
}

// It went out after the other Call, and its time is over before.
TEST_F(ShortReplyRetryTest, KeepsItsTimeAlsoBehindLaterCalls) {
  call(nfsulb::kNfsProgram, nfsulb::kNfsV3, kFsinfo, Xdr().opaque(32), 2000);
  answer_err_chunk(8);
  ended.clear();
  call(nfsulb::kNfsAclProgram, nfsulb::kNfsAclV3, kGetacl, Xdr().opaque(32).u32(0xf), 2000);
  const std::uint32_t xid = last().xid;
  ms = 500;
  call(nfsulb::kNfsProgram, nfsulb::kNfsV3, 0, Xdr(), 0);
  answer_err_chunk(8, xid);
  ASSERT_EQ(end->qp.sent.size(), 4u);
  ms = 1100;
  run();
  EXPECT_THAT(ended, ::testing::ElementsAre(CallStatus::kTimeout));
}

TEST_F(ShortReplyRetryTest, WaitsForACreditAndKeepsItsTime) {
  call(nfsulb::kNfsAclProgram, nfsulb::kNfsAclV3, kGetacl, Xdr().opaque(32).u32(0xf), 2000);
  run();
  answer_err_chunk();
  end->requester->on_time(at(1001));  // a second after it was called
  EXPECT_THAT(ended, ::testing::ElementsAre(CallStatus::kTimeout));
  EXPECT_EQ(remote_at_end, 0u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
