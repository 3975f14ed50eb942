#pragma once

#include "rpcrdma/rpc_message.h"
#include "rpcrdma/xdr/xdr.h"

// Credentials of RPCSEC_GSS (RFC 2203 section 5), without any security behind them.
namespace weft::rpcrdma::testing {

enum class GssService : std::uint32_t { kNone = 1, kIntegrity = 2, kPrivacy = 3 };

inline OpaqueAuth gss_cred(GssService service, std::uint32_t procedure = 0, std::uint32_t version = 1) {
  OpaqueAuth cred{static_cast<std::uint32_t>(AuthFlavor::kRpcsecGss), {}};
  xdr::XdrWriter out(cred.body);
  out.u32(version);
  out.u32(procedure);
  out.u32(7);  // seq_num
  out.u32(static_cast<std::uint32_t>(service));
  out.opaque(std::vector<std::uint8_t>(8, 0x5c));  // handle
  return cred;
}

}  // namespace weft::rpcrdma::testing
