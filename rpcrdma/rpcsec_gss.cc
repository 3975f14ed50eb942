#include "rpcrdma/rpcsec_gss.h"

#include "requirements/violates.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::rpcrdma {
namespace {

// RFC 2203 section 5, RFC 5403 section 3.3.
constexpr std::uint32_t kLastVersion = 2;
constexpr std::uint32_t kProcData = 0;
constexpr std::uint32_t kServiceNone = 1;

}  // namespace

bool may_reduce(AuthView cred) {
  if (cred.flavor != static_cast<std::uint32_t>(AuthFlavor::kRpcsecGss)) return true;
  xdr::XdrReader in(cred.body);
  std::uint32_t version = 0;
  std::uint32_t procedure = 0;
  std::uint32_t seq_num = 0;
  std::uint32_t service = 0;
  const bool is_whole = in.u32(version) && in.u32(procedure) && in.u32(seq_num) && in.u32(service);
  if (violates("R1-10.2.2.3-01", !is_whole || service != kServiceNone)) return false;
  if (violates("R1-10.2.2.3-01", version == 0 || version > kLastVersion)) return false;
  return !violates("R1-10.2.2-01", procedure != kProcData);
}

}  // namespace weft::rpcrdma
