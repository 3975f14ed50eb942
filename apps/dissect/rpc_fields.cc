#include "apps/dissect/rpc_fields.h"

#include <fmt/ranges.h>

#include <string>

#include "apps/common/printable.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::apps::dissect {

namespace {

using rpcrdma::AuthFlavor;

std::string_view flavor_str(std::uint32_t flavor) {
  switch (AuthFlavor{flavor}) {
    case AuthFlavor::kNone: return " (AUTH_NONE)";
    case AuthFlavor::kSys: return " (AUTH_SYS)";
    case AuthFlavor::kShort: return " (AUTH_SHORT)";
    case AuthFlavor::kRpcsecGss: return " (RPCSEC_GSS)";
  }
  return "";
}

std::string auth_sys_str(const rpcrdma::AuthSys& auth) {
  std::string text = fmt::format("machine '{}', uid {}, gid {}", printable(auth.machine_name), auth.uid, auth.gid);
  if (!auth.gids.empty()) text += fmt::format(", groups {}", fmt::join(auth.gids, " "));
  return text;
}

// rpc_gss_cred_t of RFC 2203 section 5.
std::string gss_str(ConstBytes body) {
  rpcrdma::xdr::XdrReader in(body);
  std::uint32_t version = 0, procedure = 0, sequence = 0, service = 0;
  ConstBytes handle;
  const bool is_whole =
      in.u32(version) && in.u32(procedure) && in.u32(sequence) && in.u32(service) && in.opaque(handle);
  if (!is_whole) return fmt::format("{} bytes", body.size());
  return fmt::format("version {}, procedure {}, sequence number {}, service {}, handle of {} bytes", version, procedure,
                     sequence, service, handle.size());
}

std::string body_str(const rpcrdma::AuthView& auth) {
  if (auth.flavor == static_cast<std::uint32_t>(AuthFlavor::kSys)) {
    if (const auto sys = rpcrdma::parse_auth_sys(auth.body)) return auth_sys_str(*sys);
  }
  if (auth.flavor == static_cast<std::uint32_t>(AuthFlavor::kRpcsecGss)) return gss_str(auth.body);
  return fmt::format("{} bytes", auth.body.size());
}

// Octets of an opaque_auth.
std::size_t len_of(std::size_t body_len) {
  return 8 + rpcrdma::xdr::round_up(body_len);
}

void tell_verifier(const rpcrdma::AuthView& verifier, std::size_t at, RpcLayer& layer) {
  layer.field("verifier flavor", at, 4, "{}{}", verifier.flavor, flavor_str(verifier.flavor));
  if (!verifier.body.empty()) {
    layer.field("verifier", at + 8, verifier.body.size(), "{} bytes", verifier.body.size());
  }
}

// The credential and the verifier.
void tell_auths(const rpcrdma::CallHeaderView& call, RpcLayer& layer) {
  constexpr std::size_t kCredentialAt = 24;
  layer.field("credential flavor", kCredentialAt, 4, "{}{}", call.cred.flavor, flavor_str(call.cred.flavor));
  if (!call.cred.body.empty()) {
    layer.field("credential", kCredentialAt + 8, call.cred.body.size(), "{}", body_str(call.cred));
  }
  tell_verifier(call.verf, kCredentialAt + len_of(call.cred.body.size()), layer);
}

// The verifier, the status, and what the status has with it.
void tell_reply_status(const rpcrdma::ReplyHeader& reply, RpcLayer& layer) {
  using rpcrdma::AcceptStat;
  constexpr std::size_t kBodyAt = 12;
  const auto tell_versions = [&](std::size_t at) {
    layer.field("lowest version", at, 4, "{}", reply.low);
    layer.field("highest version", at + 4, 4, "{}", reply.high);
  };
  if (reply.denied) {
    const bool is_mismatch = reply.reject == rpcrdma::RejectStat::kRpcMismatch;
    layer.field("reject_stat", kBodyAt, 4, "{} ({})", is_mismatch ? 0 : 1, is_mismatch ? "RPC_MISMATCH" : "AUTH_ERROR");
    if (is_mismatch) return tell_versions(kBodyAt + 4);
    layer.field("auth_stat", kBodyAt + 4, 4, "{} ({})", static_cast<std::uint32_t>(reply.auth),
                rpcrdma::auth_stat_str(reply.auth));
    return;
  }
  tell_verifier(reply.verf, kBodyAt, layer);
  const std::size_t stat_at = kBodyAt + len_of(reply.verf.body.size());
  layer.field("accept_stat", stat_at, 4, "{}", static_cast<std::uint32_t>(reply.accept));
  if (reply.accept == AcceptStat::kProgMismatch) tell_versions(stat_at + 4);
}

}  // namespace

void tell_call_fields(const rpcrdma::CallHeaderView& call, const rpcrdma::xdr::XdrReader& behind, RpcLayer& layer) {
  layer.field("xid", 0, 4, "{:#010x}", call.xid);
  layer.field("msg_type", 4, 4, "0 (CALL)");
  layer.field("rpcvers", 8, 4, "{}", rpcrdma::kRpcVersion);
  layer.field("program", 12, 4, "{}", call.program);
  layer.field("version", 16, 4, "{}", call.version);
  layer.field("procedure", 20, 4, "{}", call.procedure);
  tell_auths(call, layer);
  layer.field("arguments", behind.position(), behind.remaining(), "{} bytes", behind.remaining());
}

void tell_reply_fields(const rpcrdma::ReplyHeader& reply, const rpcrdma::xdr::XdrReader& behind, RpcLayer& layer) {
  layer.field("xid", 0, 4, "{:#010x}", reply.xid);
  layer.field("msg_type", 4, 4, "1 (REPLY)");
  layer.field("reply_stat", 8, 4, "{} ({})", reply.denied ? 1 : 0, reply.denied ? "denied" : "accepted");
  tell_reply_status(reply, layer);
  layer.field("results", behind.position(), behind.remaining(), "{} bytes", behind.remaining());
}

}  // namespace weft::apps::dissect
