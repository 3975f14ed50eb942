#include "apps/dissect/gss.h"

#include "rpcrdma/xdr/xdr.h"

namespace weft::apps::dissect {

// rpc_gss_cred_t: the version (2: RFC 5403), then gss_proc, seq_num and service.
GssUse gss_use(const rpcrdma::AuthView& credential) {
  if (credential.flavor != static_cast<std::uint32_t>(rpcrdma::AuthFlavor::kRpcsecGss)) return GssUse::kNone;
  rpcrdma::xdr::XdrReader in(credential.body);
  std::uint32_t version = 0, procedure = 0, sequence = 0, service = 0;
  const bool is_whole = in.u32(version) && in.u32(procedure) && in.u32(sequence) && in.u32(service);
  if (!is_whole || version == 0 || version > 2) return GssUse::kUnknown;
  switch (procedure) {
    case 0: break;
    case 1: return GssUse::kInit;
    case 2: return GssUse::kContinueInit;
    case 3: return GssUse::kDestroy;
    default: return GssUse::kUnknown;
  }
  switch (service) {
    case 1: return GssUse::kNone;  // the verifier alone
    case 2: return GssUse::kIntegrity;
    case 3: return GssUse::kPrivacy;
    default: return GssUse::kUnknown;
  }
}

std::string_view gss_words(GssUse use) {
  switch (use) {
    case GssUse::kNone: return "";
    case GssUse::kInit: return "RPCSEC_GSS_INIT";
    case GssUse::kContinueInit: return "RPCSEC_GSS_CONTINUE_INIT";
    case GssUse::kDestroy: return "RPCSEC_GSS_DESTROY";
    case GssUse::kIntegrity: return "RPCSEC_GSS integrity";
    case GssUse::kPrivacy: return "RPCSEC_GSS privacy";
    case GssUse::kUnknown: return "RPCSEC_GSS of an unknown kind";
  }
  return "";
}

}  // namespace weft::apps::dissect
