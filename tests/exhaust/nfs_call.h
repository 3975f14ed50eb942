#pragma once

#include <cstdint>

#include "apps/nfs3/codec.h"
#include "rpcrdma/rpc_message.h"
#include "tests/exhaust/attack.h"

namespace weft::exhaust {

// The RPC message of a Call, with the credential of this process.
template <typename Proc, typename Args, typename... Form>
Octets rpc_call(std::uint32_t program, std::uint32_t version, Proc proc, std::uint32_t xid, const Args& args,
                Form... form) {
  Octets octets;
  nfs3::XdrWriter out(octets);
  rpcrdma::CallHeader header;
  header.xid = xid;
  header.program = program;
  header.version = version;
  header.procedure = static_cast<std::uint32_t>(proc);
  header.cred = rpcrdma::auth_sys_of_this_process();
  emit_call(out, header);
  emit(out, args, form...);
  return octets;
}

template <typename Args, typename... Form>
Octets nfs_call(std::uint32_t xid, nfs3::Proc proc, const Args& args, Form... form) {
  return rpc_call(nfs3::kProgram, nfs3::kVersion, proc, xid, args, form...);
}

}  // namespace weft::exhaust
