#include "rpcrdma/rpc_message.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::rpcrdma {
namespace {

using Octets = std::vector<std::uint8_t>;

CallHeader sample_call() {
  CallHeader call{0x11110001, 100003, 3, 6, {}, {}};
  call.cred = emit_auth_sys({7, "host.example", 1000, 100, {4, 24}});
  return call;
}

TEST(RpcCall, EmitsAndParses) {
  RecordProperty("proves", "R1-3.1.2-01");
  const CallHeader call = sample_call();
  Octets octets;
  xdr::XdrWriter out(octets);
  emit_call(out, call);
  EXPECT_EQ(octets.size(), call_header_len(call.cred.body.size()));
  EXPECT_EQ(Octets(octets.begin() + 4, octets.begin() + 12), (Octets{0, 0, 0, 0, 0, 0, 0, 2}));
  octets.push_back(0xee);
  xdr::XdrReader in(octets);
  CallHeader back;
  ASSERT_EQ(parse_call(in, back), CallParse::kOk);
  EXPECT_EQ(back, call);
  EXPECT_EQ(in.remaining(), 1u);
}

TEST(RpcCall, AViewShowsWhatStandsInTheOctets) {
  const CallHeader call = sample_call();
  Octets octets;
  xdr::XdrWriter out(octets);
  emit_call(out, call);
  EXPECT_EQ(octets.size(), call_header_len(call.cred.body.size(), call.verf.body.size()));
  xdr::XdrReader in(octets);
  CallHeaderView view;
  ASSERT_EQ(parse_call(in, view), CallParse::kOk);
  EXPECT_TRUE(in.at_end());
  EXPECT_EQ(view.procedure, call.procedure);
  EXPECT_EQ(view.cred.flavor, call.cred.flavor);
  EXPECT_EQ(Octets(view.cred.body.begin(), view.cred.body.end()), call.cred.body);
  EXPECT_EQ(view.cred.body.data(), octets.data() + 32);
  Octets again;
  xdr::XdrWriter copy(again);
  emit_call_view(copy, view);
  EXPECT_EQ(again, octets);
}

TEST(RpcCall, SaysWhatIsWrong) {
  Octets octets;
  xdr::XdrWriter out(octets);
  emit_call(out, sample_call());
  CallHeader back;
  for (std::size_t len = 0; len < octets.size(); ++len) {
    const Octets cut(octets.begin(), octets.begin() + static_cast<std::ptrdiff_t>(len));
    xdr::XdrReader in{ConstBytes(cut)};
    EXPECT_EQ(parse_call(in, back), len < 8 ? CallParse::kNotACall : CallParse::kGarbage) << len;
  }
  out.patch_u32(8, 3);
  xdr::XdrReader other_version(octets);
  EXPECT_EQ(parse_call(other_version, back), CallParse::kRpcMismatch);
  EXPECT_EQ(back.xid, 0x11110001u);
  out.patch_u32(4, 1);
  xdr::XdrReader reply(octets);
  EXPECT_EQ(parse_call(reply, back), CallParse::kNotACall);
}

TEST(RpcCall, RefusesCredentialsOver400Octets) {
  CallHeader call = sample_call();
  call.cred.body.assign(404, 1);
  Octets octets;
  xdr::XdrWriter out(octets);
  emit_call(out, call);
  xdr::XdrReader in(octets);
  CallHeader back;
  EXPECT_EQ(parse_call(in, back), CallParse::kGarbage);
}

std::vector<ReplyHeader> all_replies() {
  std::vector<ReplyHeader> all;
  for (std::uint32_t stat = 0; stat <= 5; ++stat) {
    ReplyHeader reply{.xid = 9, .verf = {2, {1, 2, 3}}, .accept = static_cast<AcceptStat>(stat)};
    if (reply.accept == AcceptStat::kProgMismatch) reply.low = 2, reply.high = 4;
    all.push_back(reply);
  }
  all.push_back({.xid = 9, .denied = true, .verf = {}, .reject = RejectStat::kRpcMismatch, .low = 2, .high = 2});
  for (const std::uint32_t auth : {1u, 5u, 13u, 99u}) {
    all.push_back(
        {.xid = 9, .denied = true, .verf = {}, .reject = RejectStat::kAuthError, .auth = static_cast<AuthStat>(auth)});
  }
  return all;
}

TEST(RpcReply, EveryFormEmitsAndParses) {
  for (const ReplyHeader& reply : all_replies()) {
    Octets octets;
    xdr::XdrWriter out(octets);
    emit_reply(out, reply);
    xdr::XdrReader in(octets);
    ReplyHeader back;
    ASSERT_TRUE(parse_reply(in, back)) << describe(reply);
    EXPECT_EQ(back, reply) << describe(reply);
    EXPECT_TRUE(in.at_end());
    EXPECT_EQ(reply_header_len(reply), octets.size()) << describe(reply);
    for (std::size_t len = 0; len < octets.size(); ++len) {
      const Octets cut(octets.begin(), octets.begin() + static_cast<std::ptrdiff_t>(len));
      xdr::XdrReader short_in{ConstBytes(cut)};
      EXPECT_FALSE(parse_reply(short_in, back)) << describe(reply) << " cut at " << len;
    }
  }
}

TEST(RpcReply, PlainHeaderIs24Octets) {
  Octets octets;
  xdr::XdrWriter out(octets);
  emit_reply(out, {.xid = 0x11110001, .verf = {}});
  EXPECT_EQ(octets, (Octets{0x11, 0x11, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(octets.size(), kPlainReplyHeader);
}

TEST(RpcReply, RefusesUnknownDiscriminants) {
  for (const std::size_t word : {1u, 2u, 5u}) {
    Octets octets;
    xdr::XdrWriter out(octets);
    emit_reply(out, {.xid = 1, .verf = {}});
    out.patch_u32(4 * word, 6);
    xdr::XdrReader in(octets);
    ReplyHeader back;
    EXPECT_FALSE(parse_reply(in, back)) << word;
  }
}

TEST(RpcReply, DescribesInOneLine) {
  EXPECT_EQ(describe({.verf = {}, .accept = AcceptStat::kProgMismatch, .low = 2, .high = 3}),
            "PROG_MISMATCH: the peer offers versions 2 to 3");
  EXPECT_EQ(describe({.denied = true, .verf = {}, .reject = RejectStat::kAuthError, .auth = AuthStat::kTooWeak}),
            "MSG_DENIED: AUTH_TOOWEAK");
}

TEST(AuthSys, EmitsAndParsesAndRefuses) {
  const AuthSys auth{1, "machine", 2, 3, {4, 5, 6}};
  const OpaqueAuth cred = emit_auth_sys(auth);
  EXPECT_EQ(cred.flavor, 1u);
  ASSERT_TRUE(parse_auth_sys(cred.body));
  EXPECT_EQ(*parse_auth_sys(cred.body), auth);
  for (std::size_t len = 0; len < cred.body.size(); ++len) {
    EXPECT_FALSE(parse_auth_sys(ConstBytes(cred.body).first(len))) << len;
  }
  Octets longer = cred.body;
  longer.push_back(0);
  EXPECT_FALSE(parse_auth_sys(longer));
  AuthSys many = auth;
  many.gids.assign(40, 1);
  EXPECT_EQ(parse_auth_sys(emit_auth_sys(many).body)->gids.size(), 16u);
  EXPECT_LE(emit_auth_sys({0, std::string(1000, 'x'), 0, 0, many.gids}).body.size(), kMaxAuthBody);
  EXPECT_TRUE(parse_auth_sys(auth_sys_of_this_process().body));
}

}  // namespace
}  // namespace weft::rpcrdma
