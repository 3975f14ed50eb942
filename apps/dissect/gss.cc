#include "apps/dissect/gss.h"

#include <cstdint>

#include "rpcrdma/xdr/xdr.h"

namespace weft::apps::dissect {

// rpc_gss_cred_t: the version (2: RFC 5403), then gss_proc, seq_num and service.
std::string_view gss_words(const rpcrdma::AuthView& credential) {
  if (credential.flavor != static_cast<std::uint32_t>(rpcrdma::AuthFlavor::kRpcsecGss)) return "";
  rpcrdma::xdr::XdrReader in(credential.body);
  std::uint32_t version = 0, procedure = 0, sequence = 0, service = 0;
  const bool is_whole = in.u32(version) && in.u32(procedure) && in.u32(sequence) && in.u32(service);
  if (!is_whole || version == 0 || version > 2) return "RPCSEC_GSS of an unknown version";
  switch (procedure) {
    case 0: break;
    case 1: return "RPCSEC_GSS_INIT";
    case 2: return "RPCSEC_GSS_CONTINUE_INIT";
    case 3: return "RPCSEC_GSS_DESTROY";
    default: return "RPCSEC_GSS of an unknown procedure";
  }
  switch (service) {
    case 1: return "";  // none: the verifier alone
    case 2: return "RPCSEC_GSS integrity";
    case 3: return "RPCSEC_GSS privacy";
    default: return "RPCSEC_GSS of an unknown service";
  }
}

}  // namespace weft::apps::dissect
