#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "rpcrdma/xdr/xdr.h"

// ONC RPC version 2 message headers (RFC 5531), for any transport. Record marking belongs to the stream transport.
namespace weft::rpcrdma {

inline constexpr std::uint32_t kRpcVersion = 2;
inline constexpr std::uint32_t kMaxAuthBody = 400;    // RFC 5531 section 8.2
inline constexpr std::size_t kPlainReplyHeader = 24;  // octets of a MSG_ACCEPTED SUCCESS header with an empty verifier

// MsgType: msg_type of RFC 5531 section 9.
enum class MsgType : std::uint32_t { kCall = 0, kReply = 1 };

// AuthFlavor: auth_flavor of RFC 5531 section 8.2, as far as named here.
enum class AuthFlavor : std::uint32_t { kNone = 0, kSys = 1, kShort = 2, kRpcsecGss = 6 };

enum class AcceptStat : std::uint32_t {
  kSuccess = 0,
  kProgUnavail = 1,
  kProgMismatch = 2,
  kProcUnavail = 3,
  kGarbageArgs = 4,
  kSystemErr = 5,
};

enum class RejectStat : std::uint32_t { kRpcMismatch = 0, kAuthError = 1 };

// AuthStat: auth_stat of RFC 5531 section 9; other values travel as they are.
enum class AuthStat : std::uint32_t {
  kOk = 0,
  kBadCred = 1,
  kRejectedCred = 2,
  kBadVerf = 3,
  kRejectedVerf = 4,
  kTooWeak = 5,
  kInvalidResp = 6,
  kFailed = 7,
};

// Names as RFC 5531 writes them; "auth_stat N" for unknown values.
const char* accept_stat_str(AcceptStat stat);
std::string auth_stat_str(AuthStat stat);

// OpaqueAuth: opaque_auth of RFC 5531 section 8.2; body at most 400 octets.
struct OpaqueAuth {
  std::uint32_t flavor = 0;  // 0 is AUTH_NONE
  std::vector<std::uint8_t> body;
  friend bool operator==(const OpaqueAuth&, const OpaqueAuth&) = default;
};

// AuthView: the same, as a view.
struct AuthView {
  AuthView() = default;
  AuthView(std::uint32_t f, ConstBytes b) : flavor(f), body(b) {}
  AuthView(const OpaqueAuth& auth) : flavor(auth.flavor), body(auth.body) {}  // NOLINT: conversion is the point
  OpaqueAuth copy() const { return {flavor, {body.begin(), body.end()}}; }

  std::uint32_t flavor = 0;
  ConstBytes body;
};

// AuthSys: authsys_parms of RFC 5531 appendix A.
struct AuthSys {
  std::uint32_t stamp = 0;
  std::string machine_name;  // at most 255 octets
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> gids;  // at most 16
  friend bool operator==(const AuthSys&, const AuthSys&) = default;
};

// parse_auth_sys reads the body of an AUTH_SYS credential. Empty if it is malformed.
std::optional<AuthSys> parse_auth_sys(ConstBytes body);
OpaqueAuth emit_auth_sys(const AuthSys& auth);
// AUTH_SYS credentials (RFC 5531 appendix A) of this process.
OpaqueAuth auth_sys_of_this_process();

// CallHeader: the fixed part of call_body, up to where the procedure's arguments begin.
struct CallHeader {
  std::uint32_t xid = 0;
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::uint32_t procedure = 0;
  OpaqueAuth cred;
  OpaqueAuth verf;
  friend bool operator==(const CallHeader&, const CallHeader&) = default;
};

// CallHeaderView: the same, but credential and verifier are views of the parsed octets.
struct CallHeaderView {
  std::uint32_t xid = 0;
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::uint32_t procedure = 0;
  AuthView cred;
  AuthView verf;
};

enum class CallParse : std::uint8_t {
  kOk,
  kRpcMismatch,  // rpcvers is not 2: xid is set; answer with MSG_DENIED RPC_MISMATCH 2..2
  kNotACall,     // no xid and msg_type, or msg_type is not CALL: do not answer
  kGarbage,      // a Call whose header does not decode: xid is set
};

// parse_call reads a call header and leaves `in` at the first octet of the arguments.
CallParse parse_call(xdr::XdrReader& in, CallHeader& call);
CallParse parse_call(xdr::XdrReader& in, CallHeaderView& call);
void emit_call(xdr::XdrWriter& out, const CallHeader& call);
void emit_call_view(xdr::XdrWriter& out, const CallHeaderView& call);
// Octets that emit_call and emit_call_view write.
std::size_t call_header_len(std::size_t cred_body_len, std::size_t verf_body_len = 0);

// ReplyHeader: reply_body up to where the results begin.
struct ReplyHeader {
  std::uint32_t xid = 0;
  bool denied = false;
  // MSG_ACCEPTED:
  OpaqueAuth verf;
  AcceptStat accept = AcceptStat::kSuccess;
  // MSG_DENIED:
  RejectStat reject = RejectStat::kRpcMismatch;
  AuthStat auth = AuthStat::kOk;
  // Of PROG_MISMATCH and RPC_MISMATCH:
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  friend bool operator==(const ReplyHeader&, const ReplyHeader&) = default;
};

// parse_reply reads a reply header and leaves `in` at the first octet of the results. False: not a well-formed Reply.
[[nodiscard]] bool parse_reply(xdr::XdrReader& in, ReplyHeader& reply);
void emit_reply(xdr::XdrWriter& out, const ReplyHeader& reply);
// Octets that emit_reply writes.
std::size_t reply_header_len(const ReplyHeader& reply);

// One line that explains a Reply other than SUCCESS.
std::string describe(const ReplyHeader& reply);

}  // namespace weft::rpcrdma
