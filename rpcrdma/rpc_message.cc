#include "rpcrdma/rpc_message.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "requirements/violates.h"

namespace weft::rpcrdma {

namespace {

constexpr std::uint32_t kMaxMachineName = 255;
constexpr std::uint32_t kMaxGids = 16;
constexpr std::uint32_t kMsgAccepted = 0;
constexpr std::uint32_t kMsgDenied = 1;

// Most bodies are empty.
[[nodiscard]] bool parse_auth(xdr::XdrReader& in, AuthView& auth) {
  std::uint32_t len = 0;
  if (!in.u32(auth.flavor) || !in.u32(len) || len > kMaxAuthBody) return false;
  auth.body = {};
  return len == 0 || in.opaque_fixed(len, auth.body);
}

[[nodiscard]] bool parse_auth(xdr::XdrReader& in, OpaqueAuth& auth) {
  AuthView view;
  if (!parse_auth(in, view)) return false;
  auth.flavor = view.flavor;
  auth.body.assign(view.body.begin(), view.body.end());
  return true;
}

void emit_auth(xdr::XdrWriter& out, const AuthView& auth) {
  out.u32(auth.flavor);
  out.opaque(auth.body);
}

[[nodiscard]] bool parse_accepted(xdr::XdrReader& in, ReplyHeader& reply) {
  std::uint32_t stat = 0;
  if (!parse_auth(in, reply.verf) || !in.u32(stat)) return false;
  if (stat > static_cast<std::uint32_t>(AcceptStat::kSystemErr)) return false;
  reply.accept = static_cast<AcceptStat>(stat);
  if (reply.accept != AcceptStat::kProgMismatch) return true;
  return in.u32(reply.low) && in.u32(reply.high);
}

[[nodiscard]] bool parse_denied(xdr::XdrReader& in, ReplyHeader& reply) {
  std::uint32_t stat = 0;
  if (!in.u32(stat)) return false;
  if (stat == static_cast<std::uint32_t>(RejectStat::kRpcMismatch)) {
    reply.reject = RejectStat::kRpcMismatch;
    return in.u32(reply.low) && in.u32(reply.high);
  }
  if (stat != static_cast<std::uint32_t>(RejectStat::kAuthError)) return false;
  reply.reject = RejectStat::kAuthError;
  std::uint32_t auth = 0;
  if (!in.u32(auth)) return false;
  reply.auth = static_cast<AuthStat>(auth);
  return true;
}

}  // namespace

const char* accept_stat_str(AcceptStat stat) {
  switch (stat) {
    case AcceptStat::kSuccess: return "SUCCESS";
    case AcceptStat::kProgUnavail: return "PROG_UNAVAIL";
    case AcceptStat::kProgMismatch: return "PROG_MISMATCH";
    case AcceptStat::kProcUnavail: return "PROC_UNAVAIL";
    case AcceptStat::kGarbageArgs: return "GARBAGE_ARGS";
    case AcceptStat::kSystemErr: return "SYSTEM_ERR";
  }
  return "unknown accept_stat";
}

std::string auth_stat_str(AuthStat stat) {
  switch (stat) {
    case AuthStat::kOk: return "AUTH_OK";
    case AuthStat::kBadCred: return "AUTH_BADCRED";
    case AuthStat::kRejectedCred: return "AUTH_REJECTEDCRED";
    case AuthStat::kBadVerf: return "AUTH_BADVERF";
    case AuthStat::kRejectedVerf: return "AUTH_REJECTEDVERF";
    case AuthStat::kTooWeak: return "AUTH_TOOWEAK";
    case AuthStat::kInvalidResp: return "AUTH_INVALIDRESP";
    case AuthStat::kFailed: return "AUTH_FAILED";
  }
  return "auth_stat " + std::to_string(static_cast<std::uint32_t>(stat));
}

std::optional<AuthSys> parse_auth_sys(ConstBytes body) {
  xdr::XdrReader in(body);
  AuthSys auth;
  std::string_view name;
  std::uint32_t num_gids = 0;
  if (!in.u32(auth.stamp) || !in.string(name, kMaxMachineName) || !in.u32(auth.uid) || !in.u32(auth.gid)) return {};
  if (!in.u32(num_gids) || num_gids > kMaxGids) return {};
  auth.machine_name = name;
  auth.gids.resize(num_gids);
  for (auto& gid : auth.gids) {
    if (!in.u32(gid)) return {};
  }
  if (!in.at_end()) return {};
  return auth;
}

OpaqueAuth emit_auth_sys(const AuthSys& auth) {
  OpaqueAuth cred{static_cast<std::uint32_t>(AuthFlavor::kSys), {}};
  xdr::XdrWriter out(cred.body);
  out.u32(auth.stamp);
  out.string(std::string_view(auth.machine_name).substr(0, kMaxMachineName));
  out.u32(auth.uid);
  out.u32(auth.gid);
  const auto num_gids = static_cast<std::uint32_t>(std::min<std::size_t>(auth.gids.size(), kMaxGids));
  out.u32(num_gids);
  for (std::uint32_t i = 0; i < num_gids; ++i) out.u32(auth.gids[i]);
  return cred;
}

OpaqueAuth auth_sys_of_this_process() {
  AuthSys auth;
  std::array<char, kMaxMachineName + 1> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) auth.machine_name = name.data();
  auth.uid = geteuid();
  auth.gid = getegid();
  const int num_gids = getgroups(0, nullptr);
  if (num_gids > 0) {
    std::vector<gid_t> gids(static_cast<std::size_t>(num_gids));
    const int got = getgroups(num_gids, gids.data());
    for (int i = 0; i < got && auth.gids.size() < kMaxGids; ++i) auth.gids.push_back(gids[static_cast<std::size_t>(i)]);
  }
  return emit_auth_sys(auth);
}

CallParse parse_call(xdr::XdrReader& in, CallHeaderView& call) {
  std::uint32_t type = 0;
  std::uint32_t rpcvers = 0;
  if (!in.u32(call.xid) || !in.u32(type) ||
      violates("R1-3.1.2-01", type != static_cast<std::uint32_t>(MsgType::kCall))) {
    return CallParse::kNotACall;
  }
  if (!in.u32(rpcvers)) return CallParse::kGarbage;
  if (rpcvers != kRpcVersion) return CallParse::kRpcMismatch;
  if (!in.u32(call.program) || !in.u32(call.version) || !in.u32(call.procedure)) return CallParse::kGarbage;
  if (!parse_auth(in, call.cred) || !parse_auth(in, call.verf)) return CallParse::kGarbage;
  return CallParse::kOk;
}

CallParse parse_call(xdr::XdrReader& in, CallHeader& call) {
  CallHeaderView view;
  const CallParse parsed = parse_call(in, view);
  call = CallHeader{view.xid, view.program, view.version, view.procedure, view.cred.copy(), view.verf.copy()};
  return parsed;
}

void emit_call_view(xdr::XdrWriter& out, const CallHeaderView& call) {
  out.u32(call.xid);
  out.u32(static_cast<std::uint32_t>(MsgType::kCall));
  out.u32(kRpcVersion);
  out.u32(call.program);
  out.u32(call.version);
  out.u32(call.procedure);
  emit_auth(out, call.cred);
  emit_auth(out, call.verf);
}

void emit_call(xdr::XdrWriter& out, const CallHeader& call) {
  emit_call_view(out, CallHeaderView{call.xid, call.program, call.version, call.procedure, call.cred, call.verf});
}

std::size_t call_header_len(std::size_t cred_body_len, std::size_t verf_body_len) {
  return 40 + xdr::round_up(cred_body_len) + xdr::round_up(verf_body_len);
}

bool parse_reply(xdr::XdrReader& in, ReplyHeader& reply) {
  std::uint32_t type = 0;
  std::uint32_t stat = 0;
  if (!in.u32(reply.xid) || !in.u32(type)) return false;
  if (violates("R1-3.1.2-01", type != static_cast<std::uint32_t>(MsgType::kReply))) return false;
  if (!in.u32(stat)) return false;
  if (stat != kMsgAccepted && stat != kMsgDenied) return false;
  reply.denied = stat == kMsgDenied;
  return reply.denied ? parse_denied(in, reply) : parse_accepted(in, reply);
}

void emit_reply(xdr::XdrWriter& out, const ReplyHeader& reply) {
  out.u32(reply.xid);
  out.u32(static_cast<std::uint32_t>(MsgType::kReply));
  out.u32(reply.denied ? kMsgDenied : kMsgAccepted);
  if (!reply.denied) {
    emit_auth(out, reply.verf);
    out.u32(static_cast<std::uint32_t>(reply.accept));
    if (reply.accept != AcceptStat::kProgMismatch) return;
  } else {
    out.u32(static_cast<std::uint32_t>(reply.reject));
    if (reply.reject == RejectStat::kAuthError) {
      out.u32(static_cast<std::uint32_t>(reply.auth));
      return;
    }
  }
  out.u32(reply.low);
  out.u32(reply.high);
}

std::size_t reply_header_len(const ReplyHeader& reply) {
  if (reply.denied) return reply.reject == RejectStat::kAuthError ? 20 : 24;
  return kPlainReplyHeader + xdr::round_up(reply.verf.body.size()) +
         (reply.accept == AcceptStat::kProgMismatch ? 8 : 0);
}

std::string describe(const ReplyHeader& reply) {
  const std::string range = std::to_string(reply.low) + " to " + std::to_string(reply.high);
  if (!reply.denied) {
    std::string text = accept_stat_str(reply.accept);
    if (reply.accept == AcceptStat::kProgMismatch) text += ": the peer offers versions " + range;
    return text;
  }
  if (reply.reject == RejectStat::kAuthError) return "MSG_DENIED: " + auth_stat_str(reply.auth);
  return "MSG_DENIED: RPC_MISMATCH, the peer speaks RPC versions " + range;
}

}  // namespace weft::rpcrdma
