// Fields of -v: the words of headers that have no line of their own.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/dissect/testing/rpc.h"
#include "rpcrdma/v2_cel05/header.h"
#include "rpcrdma/v2_wg07/header.h"

namespace weft::apps::dissect {
namespace {

namespace cel05 = rpcrdma::v2_cel05;
namespace wg07 = rpcrdma::v2_wg07;
using ::testing::Contains;
using ::testing::IsSupersetOf;
using testing::Octets;
using testing::pattern;
using testing::rpc_call;
using testing::untagged;
using testing::Wire;

// Fields collects the fields of the RPC-over-RDMA and RPC layers, as "NAME: VALUE HEX".
struct Fields final : Listener {
  std::vector<std::string> told;

  void on_connection(const Connection&) override {}
  void on_frame(const Frame& frame) override {
    for (const Layer& layer : frame.layers) {
      if (layer.kind != LayerKind::kRpcRdma && layer.kind != LayerKind::kRpc) continue;
      for (const Field& field : layer.fields) {
        std::string text = std::string(field.name) + ": " + field.value;
        const Place place{field.source, field.at, field.len};
        for (const std::uint8_t octet : octets_at(frame, place)) {
          text += fmt::format(" {:02x}", octet);
        }
        told.push_back(text);
      }
    }
  }
  void on_connection_end(std::uint32_t, const TcpCounters&) override {}
};

struct FieldsTest : ::testing::Test {
  FieldsTest() { wire.open(); }
  void send(Wire::End from, const Octets& octets) {
    wire.send(from, wire.fpdu(from, untagged(rdmap::Opcode::kSend, ++msn[from], octets)), 60000);
  }
  std::vector<std::string> fields() {
    dissector.finish();
    return told.told;
  }

  Fields told;
  Dissector dissector{{.fields = true}, told};
  Wire wire{dissector};
  std::uint32_t msn[2] = {};
};

Octets message_of(cel05::Body body, const Octets& payload = {}) {
  Octets octets;
  rpcrdma::xdr::XdrWriter out(octets);
  emit_header(out, cel05::Header{.xid = 1, .credit = 8, .body = std::move(body)});
  out.raw(payload);
  return octets;
}
Octets message_of(wg07::Body body, const Octets& payload = {}) {
  Octets octets;
  rpcrdma::xdr::XdrWriter out(octets);
  emit_header(out, wg07::Header{.xid = 1, .credit = 8, .body = std::move(body)});
  out.raw(payload);
  return octets;
}

TEST_F(FieldsTest, PropertiesOfCel05) {
  const rpcrdma::v2::Propset set{{1, {0, 0, 16, 0}}, {77, {1, 2, 3, 4, 5}}, {2, {}}};
  const rpcrdma::v2::Propsubset first{{1}};
  send(Wire::kClient, message_of(cel05::Msg{}, rpc_call(1, 0, {})));
  send(Wire::kClient, message_of(cel05::Connprop{.start = set, .nochg = first}));
  send(Wire::kClient, message_of(cel05::Reqprop{.want = set}));
  send(Wire::kServer, message_of(cel05::Resprop{.done = first, .rejected = {}, .other = set}));
  send(Wire::kClient, message_of(cel05::Updprop{.now = set}));
  send(Wire::kClient, message_of(cel05::Optional{.opttype = 9, .optinfo = {1, 2, 3}}));
  const auto all = fields();
  EXPECT_THAT(
      all,
      IsSupersetOf({"rdma_start: 3 00 00 00 03", "property: 1 (receive size): 4096 00 00 00 01 00 00 00 04 00 00 10 00",
                    "property: 77 (unknown): 5 bytes 00 00 00 4d 00 00 00 05 01 02 03 04 05 00 00 00",
                    "property: 2 (reverse direction): the default 00 00 00 02 00 00 00 00",
                    "rdma_nochg: 1 words 0x00000001 00 00 00 01 00 00 00 01", "rdma_want: 3 00 00 00 03",
                    "rdma_done: 1 words 0x00000001 00 00 00 01 00 00 00 01", "rdma_rejected: 0 words 00 00 00 00",
                    "rdma_other: 3 00 00 00 03", "rdma_now: 3 00 00 00 03", "rdma_optdir: 0 00 00 00 00",
                    "rdma_opttype: 9 00 00 00 09", "rdma_optinfo: 3 bytes 01 02 03"}));
}

TEST_F(FieldsTest, PropertiesOfWg07) {
  send(Wire::kClient, message_of(wg07::CallInline{}, rpc_call(1, 0, {})));
  send(Wire::kClient, message_of(wg07::ConnpropMiddle{.props = {{1, {0, 0, 16, 0}}}}));
  send(Wire::kClient, message_of(wg07::ConnpropFinal{.props = {{4, {0, 0, 0, 9}}}}));
  EXPECT_THAT(fields(), IsSupersetOf({"rdma_props: 1 00 00 00 01",
                                      "property: 1 (send size): 4096 00 00 00 01 00 00 00 04 00 00 10 00",
                                      "property: 4 (segment count): 9 00 00 00 04 00 00 00 04 00 00 00 09"}));
}

TEST_F(FieldsTest, ArmsOfErrors) {
  send(Wire::kClient, message_of(wg07::CallInline{}, rpc_call(1, 0, {})));
  using wg07::Err;
  const rpcrdma::v2::ErrorArm arm{.max_chunks = 3, .max_segments = 4, .chunk_index = 5, .length_needed = 6};
  for (const Err err : {Err::kReadChunks, Err::kSegments, Err::kWriteResource, Err::kReplyResource}) {
    send(Wire::kServer, message_of(wg07::Error{.err = err, .arm = arm}));
  }
  EXPECT_THAT(fields(), IsSupersetOf({"rdma_max_chunks: 3 00 00 00 03", "rdma_max_segments: 4 00 00 00 04",
                                      "rdma_chunk_index: 5 00 00 00 05", "rdma_length_needed: 6 00 00 00 06",
                                      "rdma_length_needed: 6 00 00 00 06"}));
}

TEST_F(FieldsTest, ArmsOfErrorsOfCel05) {
  send(Wire::kClient, message_of(cel05::Msg{}, rpc_call(1, 0, {})));
  using cel05::Err;
  const rpcrdma::v2::ErrorArm arm{.vers_low = 1, .vers_high = 2, .max_chunks = 3, .max_segments = 4};
  for (const Err err : {Err::kWriteChunks, Err::kSegments, Err::kVers}) {
    send(Wire::kServer, message_of(cel05::Error{.err = err, .arm = arm}));
  }
  EXPECT_THAT(fields(), IsSupersetOf({"rdma_max_chunks: 3 00 00 00 03", "rdma_max_segments: 4 00 00 00 04",
                                      "rdma_vers_low: 1 00 00 00 01", "rdma_vers_high: 2 00 00 00 02"}));
}

Octets with_header(std::uint32_t xid, const Octets& rpc) {
  rpcrdma::v1::Header header;
  header.xid = xid;
  header.credit = 8;
  return testing::message(header, rpc);
}

Octets call_with(std::uint32_t xid, std::uint32_t version, std::uint32_t procedure, const rpcrdma::OpaqueAuth& cred,
                 const Octets& args) {
  Octets octets;
  rpcrdma::xdr::XdrWriter out(octets);
  rpcrdma::emit_call(out, {xid, 100003, version, procedure, cred, {}});
  out.raw(args);
  return octets;
}

TEST_F(FieldsTest, CredentialsOfCalls) {
  const auto sys = rpcrdma::emit_auth_sys({.machine_name = "h\x1bst", .uid = 7, .gid = 8, .gids = {9, 10}});
  send(Wire::kClient, with_header(1, call_with(1, 3, 0, sys, {})));
  Octets gss;
  rpcrdma::xdr::XdrWriter out(gss);
  for (const std::uint32_t word : {1u, 0u, 44u, 1u}) out.u32(word);
  out.opaque(pattern(4));
  send(Wire::kClient, with_header(2, call_with(2, 3, 0, {6, gss}, {})));
  send(Wire::kClient, with_header(3, call_with(3, 3, 0, {99, {1, 2, 3, 4}}, {})));
  const auto all = fields();
  EXPECT_THAT(all,
              IsSupersetOf({"credential flavor: 1 (AUTH_SYS) 00 00 00 01", "verifier flavor: 0 (AUTH_NONE) 00 00 00 00",
                            "credential flavor: 6 (RPCSEC_GSS) 00 00 00 06", "credential flavor: 99 00 00 00 63",
                            "credential: 4 bytes 01 02 03 04"}));
  EXPECT_THAT(all, Contains(::testing::StartsWith(
                       "credential: machine 'h\\x1bst', uid 7, gid 8, groups 9 10 00 00 00 00 00 00 00 04 68 1b")));
  EXPECT_THAT(all, Contains(::testing::StartsWith("credential: version 1, procedure 0, sequence number 44, service 1, "
                                                  "handle of 4 bytes 00 00 00 01")));
}

TEST_F(FieldsTest, WhatADeniedOrMismatchedReplyHas) {
  const auto reply = [&](std::uint32_t xid, rpcrdma::ReplyHeader header) {
    send(Wire::kClient, with_header(xid, rpc_call(xid, 0, {})));
    header.xid = xid;
    Octets octets;
    rpcrdma::xdr::XdrWriter out(octets);
    rpcrdma::emit_reply(out, header);
    send(Wire::kServer, with_header(xid, octets));
  };
  const auto too_weak = rpcrdma::AuthStat::kTooWeak;
  rpcrdma::ReplyHeader refused, mismatch, program;
  refused.denied = mismatch.denied = true;
  refused.reject = rpcrdma::RejectStat::kAuthError;
  refused.auth = too_weak;
  mismatch.low = 2;
  mismatch.high = 3;
  program.verf.body = {1, 2, 3, 4};
  program.accept = rpcrdma::AcceptStat::kProgMismatch;
  program.low = 4;
  program.high = 5;
  reply(1, refused);
  reply(2, mismatch);
  reply(3, program);
  const std::vector<std::string> due = {
      "reject_stat: 1 (AUTH_ERROR) 00 00 00 01",
      "auth_stat: 5 (" + rpcrdma::auth_stat_str(too_weak) + ") 00 00 00 05",
      "reject_stat: 0 (RPC_MISMATCH) 00 00 00 00",
      "lowest version: 2 00 00 00 02",
      "highest version: 3 00 00 00 03",
      "verifier: 4 bytes 01 02 03 04",
      "accept_stat: 2 00 00 00 02",
      "lowest version: 4 00 00 00 04",
      "highest version: 5 00 00 00 05",
  };
  EXPECT_THAT(fields(), IsSupersetOf(due));
}

// COMPOUND with a tag, minor version 1: PUTROOTFH, and READ with a stateid.
TEST_F(FieldsTest, TheHeadOfACompoundAndItsStateids) {
  Octets args;
  rpcrdma::xdr::XdrWriter out(args);
  out.string("tag!");
  out.u32(1);
  out.u32(2);
  out.u32(24);
  out.u32(25);
  out.u32(5);
  out.raw(Octets{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  out.u64(4096);
  out.u32(100);
  send(Wire::kClient, with_header(1, call_with(1, 4, 1, {}, args)));
  EXPECT_THAT(fields(), IsSupersetOf({"tag: 'tag!' 74 61 67 21", "minorversion: 1 00 00 00 01",
                                      "operation: 25 (READ) 00 00 00 19",
                                      "stateid: seqid 5, other 0x000102030405060708090a0b 00 00 00 05 00 01 02 03 04 "
                                      "05 06 07 08 09 0a 0b",
                                      "offset: 4096 00 00 00 00 00 00 10 00"}));
}

}  // namespace
}  // namespace weft::apps::dissect
