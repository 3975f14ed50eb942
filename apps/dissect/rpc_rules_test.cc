// Rules of one message, and of a Reply beside its Call: RPCSEC_GSS, XDR padding, options, versions.
#include "apps/dissect/rpc_rules.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "apps/dissect/testing/rpc2.h"

namespace weft::apps::dissect {
namespace {

namespace cel05 = rpcrdma::v2_cel05;
namespace wg07 = rpcrdma::v2_wg07;
namespace v1 = rpcrdma::v1;
using testing::Cel05;
using testing::cel05_message;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Octets;
using testing::pattern;
using testing::read_args;
using testing::read_chunk;
using testing::rpc_call;
using testing::rpc_reply;
using testing::Talk;
using testing::Wg07;
using testing::Wire;
using testing::write_chunk;

// ---- RPCSEC_GSS

constexpr std::uint32_t kData = 0, kInit = 1, kPlain = 1, kIntegrity = 2, kPrivacy = 3;

// The findings of a Call with this credential and these lists, and of its Reply.
std::vector<std::string> findings_of_gss(std::uint32_t procedure, std::uint32_t service, rpcrdma::ChunkListsView lists,
                                         rpcrdma::ChunkListsView returned = {}) {
  Octets body;
  rpcrdma::xdr::XdrWriter credential(body);
  for (const std::uint32_t word : {1u, procedure, 1u, service, 0u}) credential.u32(word);
  Octets rpc;
  rpcrdma::xdr::XdrWriter out(rpc);
  rpcrdma::emit_call(out, {1, 200000, 3, 7, {.flavor = 6, .body = body}, {}});
  out.raw(pattern(40));
  Talk talk;
  talk.wire.open();
  v1::Header header;
  header.xid = 1;
  header.credit = Talk::kCredits;
  header.lists = std::move(lists);
  talk.send(Wire::kClient, testing::message(header, rpc));
  for (const auto& chunk : returned.write_list) talk.write(chunk[0].handle, 0, chunk[0].length);
  if (!returned.write_list.empty()) talk.reply(1, returned);
  return talk.told.findings;
}

TEST(RpcRules, WhatRpcsecGssWrapsIsNotReduced) {
  EXPECT_THAT(findings_of_gss(kData, kPlain, read_chunk(100)), IsEmpty());
  EXPECT_THAT(findings_of_gss(kData, kIntegrity, read_chunk(100)), ElementsAre("R1-10.2.2.3-01"));
  EXPECT_THAT(findings_of_gss(kData, kPrivacy, read_chunk(100)), ElementsAre("R1-10.2.2.3-01"));
  EXPECT_THAT(findings_of_gss(kInit, kPlain, read_chunk(100)), ElementsAre("R1-10.2.2-01"));
}
// An unused Write chunk reduces nothing.
TEST(RpcRules, ResultsThatRpcsecGssWrapsAreNotReduced) {
  EXPECT_THAT(findings_of_gss(kData, kPrivacy, write_chunk(5, 400), write_chunk(5, 0)), IsEmpty());
  EXPECT_THAT(findings_of_gss(kData, kPrivacy, write_chunk(5, 400), write_chunk(5, 400)),
              ElementsAre("R1-10.2.2.3-01"));
  EXPECT_THAT(findings_of_gss(kInit, kPlain, write_chunk(5, 400), write_chunk(5, 400)), ElementsAre("R1-10.2.2-01"));
}

// ---- XDR padding

std::vector<std::string> findings_of_long_call(std::uint32_t len) {
  Talk talk;
  talk.wire.open();
  v1::Header header;
  header.xid = 1;
  header.credit = Talk::kCredits;
  header.proc = v1::Proc::kNomsg;
  header.lists.read_list.push_back({.position = 0, .target = {.handle = 7, .length = len}});
  talk.send(Wire::kClient, testing::message(header, {}));
  return talk.told.findings;
}
TEST(RpcRules, ALongCallHasItsPadding) {
  EXPECT_THAT(findings_of_long_call(400), IsEmpty());
  EXPECT_THAT(findings_of_long_call(398), ElementsAre("R1-4.5.3-09"));
}

// ---- the Read list of a Reply

// A Reply with a segment of a Read list: of a message in the Send, or in a chunk.
std::vector<std::string> findings_of_reply_that_reads(std::uint32_t position, v1::Proc proc) {
  Talk talk;
  talk.wire.open();
  rpcrdma::ChunkListsView lists;
  lists.reply_chunk = {{.handle = 7, .length = 400}};
  talk.call(1, 0, lists);
  v1::Header header;
  header.xid = 1;
  header.credit = Talk::kCredits;
  header.proc = proc;
  header.lists.reply_chunk = {{.handle = 7, .length = 0}};
  header.lists.read_list.push_back({.position = position, .target = {.handle = 8, .length = 40}});
  talk.send(Wire::kServer, testing::message(header, proc == v1::Proc::kMsg ? rpc_reply(1, {}) : Octets()));
  return talk.told.findings;
}
TEST(RpcRules, AReplyHasNoReadList) {
  EXPECT_THAT(findings_of_reply_that_reads(0, v1::Proc::kMsg), ElementsAre("R1-5.3.1-02"));
  EXPECT_THAT(findings_of_reply_that_reads(4, v1::Proc::kMsg), ElementsAre("R1-5.3.1-02"));
  EXPECT_THAT(findings_of_reply_that_reads(0, v1::Proc::kNomsg), ElementsAre("R1-5.2.4-02", "R1-5.3.1-02"));
}

// ---- XDR padding of results

// The results of an NFSv3 READ of `len` octets that are in a Write chunk, with `padding` octets behind the count.
std::vector<std::string> findings_of_read(std::uint32_t len, std::size_t padding) {
  Talk talk;
  talk.wire.open();
  talk.call(1, 6, write_chunk(5, 4096), read_args());
  talk.write(5, 0, len);
  Octets results;
  rpcrdma::xdr::XdrWriter out(results);
  for (const std::uint32_t word : {0u, 0u, len, 1u, len}) out.u32(word);
  results.resize(results.size() + padding);
  talk.reply(1, write_chunk(5, len), Talk::kCredits, results);
  return talk.told.findings;
}
TEST(RpcRules, ThePaddingOfAReducedResultIsNotInline) {
  EXPECT_THAT(findings_of_read(3001, 0), IsEmpty());
  EXPECT_THAT(findings_of_read(3000, 0), IsEmpty());
  EXPECT_THAT(findings_of_read(3001, 3), ElementsAre("R1-4.4.6.1-04"));
}

// ---- octets of a Write chunk

// Write: one into the chunk.
struct Write {
  std::uint64_t to;
  std::size_t len;
};
// The findings of an NFSv3 READ with the count word `count` and a Write chunk that comes back with `returned` octets.
std::vector<std::string> findings_of_chunk(const std::vector<Write>& writes, std::uint32_t count,
                                           std::uint32_t returned, std::uint64_t offset = 0) {
  Talk talk;
  talk.wire.open();
  const auto chunk = [offset](std::uint32_t len) {
    rpcrdma::ChunkListsView lists;
    lists.write_list.push_back({{.handle = 5, .length = len, .offset = offset}});
    return lists;
  };
  talk.call(1, 6, chunk(4096), read_args());
  for (const Write& write : writes) talk.write(5, offset + write.to, write.len);
  Octets results;
  rpcrdma::xdr::XdrWriter out(results);
  for (const std::uint32_t word : {0u, 0u, count, 1u, count}) out.u32(word);
  talk.reply(1, chunk(returned), Talk::kCredits, results);
  return talk.told.findings;
}

TEST(RpcRules, AChunkComesBackWithTheLengthOfItsResult) {
  EXPECT_THAT(findings_of_chunk({{0, 90}}, 90, 90), IsEmpty());
  EXPECT_THAT(findings_of_chunk({{0, 90}}, 97, 90), ElementsAre("R1-4.4.6.1-03"));
  EXPECT_THAT(findings_of_chunk({{0, 90}}, 80, 90), ElementsAre("R1-4.4.6.1-03"));
  EXPECT_THAT(findings_of_chunk({{0, 4096}}, 4000, 4096), ElementsAre("R1-4.4.6.1-03"));
}

TEST(RpcRules, AChunkComesBackWithTheOctetsThatWereWritten) {
  const auto is_named = ElementsAre("R1-4.4.6.1-03");
  EXPECT_THAT(findings_of_chunk({{4095, 1}}, 4096, 4096), is_named);
  EXPECT_THAT(findings_of_chunk({{2048, 2048}}, 4096, 4096), is_named);
  EXPECT_THAT(findings_of_chunk({{0, 1024}, {2048, 2048}}, 4096, 4096), is_named);
  EXPECT_THAT(findings_of_chunk({{0, 100}}, 90, 90), is_named);
  EXPECT_THAT(findings_of_chunk({{4, 86}}, 90, 90), is_named);
  EXPECT_THAT(findings_of_chunk({}, 90, 90), is_named);
}
// Writes come in any order, and may write octets again.
// A chunk that comes back longer than it was offered has one fault: no RDMA Write can fill it.
TEST(RpcRules, AChunkThatComesBackTooLongHasOneFault) {
  Talk talk;
  talk.wire.open();
  talk.call(1, 6, write_chunk(5, 256), read_args());
  talk.write(5, 0, 256);
  talk.reply(1, write_chunk(5, 257));
  EXPECT_THAT(talk.told.findings, ElementsAre("R1-4.4.6-04"));
}

TEST(RpcRules, TheOctetsOfAChunkAreWrittenInAnyOrder) {
  EXPECT_THAT(findings_of_chunk({{2048, 2048}, {0, 2048}}, 4096, 4096), IsEmpty());
  EXPECT_THAT(findings_of_chunk({{3072, 1024}, {1024, 1024}, {0, 1024}, {2048, 1024}}, 4096, 4096), IsEmpty());
  EXPECT_THAT(findings_of_chunk({{0, 3000}, {2000, 2096}, {0, 3000}}, 4096, 4096), IsEmpty());
}
// The same for the segments of one Write.
TEST(RpcRules, TheSegmentsOfAWriteComeInAnyOrder) {
  Talk talk;
  talk.wire.open();
  talk.call(1, 6, write_chunk(5, 4096), read_args());
  const auto write = [&talk](std::uint64_t to, bool last) {
    const Octets ulpdu = testing::tagged(rdmap::Opcode::kWrite, 5, to, pattern(2048), last);
    talk.wire.send(Wire::kServer, talk.wire.fpdu(Wire::kServer, ulpdu), 60000);
  };
  write(2048, false);
  write(0, true);
  talk.reply(1, write_chunk(5, 4096));
  EXPECT_THAT(talk.told.findings, IsEmpty());
}
// Two Calls offer the same memory: the octets may be the other one's.
TEST(RpcRules, OctetsInSharedMemoryAreNotCountedAgainstAReply) {
  Talk talk;
  talk.wire.open();
  talk.call(9);
  talk.reply(9);
  for (const std::uint32_t xid : {1u, 2u}) talk.call(xid, 6, write_chunk(5, 4096), read_args());
  talk.write(5, 0, 100);
  talk.reply(1, write_chunk(5, 90));
  EXPECT_THAT(talk.told.findings, IsEmpty());
}
// More runs of octets than are remembered: nothing is said.
TEST(RpcRules, WritesInManyPiecesAreNotJudged) {
  std::vector<Write> writes;
  for (std::uint64_t at = 4088; at != 0; at -= 8) writes.push_back({at, 4});
  EXPECT_THAT(findings_of_chunk(writes, 4096, 4096), IsEmpty());
}

// Every chunk against every word would be 10^9 looks, and every chunk breaks the same rule.
TEST(RpcRules, ManyChunksAndManyWordsTakeLittle) {
  constexpr std::size_t kNumChunks = 18000, kNumWords = 120000;
  Talk talk;
  talk.wire.open();
  v1::Header header;
  header.credit = Talk::kCredits;
  header.lists.write_list.assign(kNumChunks, {{.handle = 5, .length = 90}});
  for (header.xid = 1; header.xid <= 2; ++header.xid) {
    talk.call(header.xid, 6, write_chunk(5, 4096), read_args());
    talk.send_long(Wire::kServer, testing::message(header, rpc_reply(header.xid, Octets(4 * kNumWords))));
  }
  EXPECT_THAT(talk.told.findings, Contains("R1-4.4.6.1-03"));
  EXPECT_LT(talk.told.findings.size(), 10u);
}

// ---- memory up to 2^64

TEST(RpcRules, MemoryMayEndAt2To64) {
  EXPECT_THAT(findings_of_chunk({{0, 4095}}, 4095, 4095, UINT64_MAX - 4095), IsEmpty());
  EXPECT_THAT(findings_of_chunk({{0, 4096}}, 4096, 4096, UINT64_MAX - 4095), ElementsAre("DDP-7.1-15"));
}

// ---- version 2

TEST(RpcRules, AnOptionHasTheDirectionOfItsMessage) {
  using enum cel05::Direction;
  const auto findings_of = [](cel05::Direction direction, const Octets& rpc) {
    Talk talk;
    talk.wire.open();
    talk.send(Wire::kClient, Cel05::call(1));
    talk.send(Wire::kServer, Cel05::reply(1));
    talk.send(Wire::kClient, cel05_message(2, cel05::Optional{.optdir = direction}, rpc));
    return talk.told.findings;
  };
  EXPECT_THAT(findings_of(kCall, rpc_call(2, 0, {})), IsEmpty());
  EXPECT_THAT(findings_of(kReply, rpc_call(2, 0, {})), ElementsAre("R2-7.2.2-5"));
  EXPECT_THAT(findings_of(kReply, rpc_reply(2, {})), IsEmpty());
  EXPECT_THAT(findings_of(kCall, rpc_reply(2, {})), ElementsAre("R2-7.2.2-5"));
  // Octets of the option.
  EXPECT_THAT(findings_of(kReply, rpc_call(3, 0, {})), IsEmpty());
  EXPECT_THAT(findings_of(kReply, {}), IsEmpty());
}

TEST(RpcRules, AReplyHasTheVersionOfItsCall) {
  Talk talk;
  talk.wire.open();
  talk.call(1);
  talk.send(Wire::kServer, Cel05::reply(1));
  EXPECT_THAT(talk.told.findings, Contains("R2-8.3-1"));
}

TEST(RpcRules, AGrantHasNoXid) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, Wg07::call(1));
  talk.send(Wire::kServer, testing::wg07_message(1, wg07::Grant{}));
  EXPECT_THAT(talk.told.findings, ElementsAre("W2-6.3.2-1"));
}

TEST(RpcRules, ALimitOfMessagesIsBounded) {
  for (const std::uint32_t word : {0x7fffffffu, 0x80000000u, 0xfffffffeu}) {
    Talk talk;
    talk.wire.open();
    talk.send(Wire::kClient, Wg07::call(1));
    talk.send(Wire::kServer, Wg07::reply(1, {}, word));
    if (word == 0x80000000) {
      EXPECT_THAT(talk.told.findings, ElementsAre("W2-4.2.1-10"));
    } else {
      EXPECT_THAT(talk.told.findings, IsEmpty());
    }
  }
}

}  // namespace
}  // namespace weft::apps::dissect
