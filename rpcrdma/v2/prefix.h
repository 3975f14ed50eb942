#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "rpcrdma/xdr/xdr.h"

// RPC-over-RDMA version 2. Two drafts of it share the version number and are not compatible: cel05
// (draft-cel-nfsv4-rpcrdma-version-two-05, folder v2_cel05) and wg07 (draft-ietf-nfsv4-rpcrdma-version-two-07, folder
// v2_wg07). Namespace v2 holds what both have in common.
namespace weft::rpcrdma::v2 {

inline constexpr std::uint32_t kVersion = 2;
inline constexpr std::size_t kPrefixLen = 16;

// Prefix: the first four words of every message (cel05 section 7.2, rpcrdma_common of wg07 section 6.2.1). htype is
// rdma_proc of cel05 and rdma_htype of wg07.
struct Prefix {
  std::uint32_t xid = 0;
  std::uint32_t vers = kVersion;
  std::uint32_t credit = 0;
  std::uint32_t htype = 0;
  friend bool operator==(const Prefix&, const Prefix&) = default;
};

[[nodiscard]] inline bool parse_prefix(xdr::XdrReader& in, Prefix& prefix) {
  return in.u32(prefix.xid) && in.u32(prefix.vers) && in.u32(prefix.credit) && in.u32(prefix.htype);
}

// reply_xid reads the XID of a message (Profile::reply_xid).
inline std::optional<std::uint32_t> reply_xid(ConstBytes message) {
  xdr::XdrReader in(message);
  Prefix prefix;
  return parse_prefix(in, prefix) ? std::optional(prefix.xid) : std::nullopt;
}

inline void emit_prefix(xdr::XdrWriter& out, const Prefix& prefix) {
  out.u32(prefix.xid);
  out.u32(prefix.vers);
  out.u32(prefix.credit);
  out.u32(prefix.htype);
}

}  // namespace weft::rpcrdma::v2
