#pragma once

// Values of NFS version 4 and the eligible items in them, by their own fields.
#include <rpc/rpc.h>

#include <optional>

#include "nfs4.h"
#include "tests/ulb_oracle/oracle.h"
#include "xattr4.h"

namespace weft::ulb_oracle {

using Args = Value<nfs_argop4>;
using Results = Value<nfs_resop4>;

inline constexpr std::uint32_t kCompound = 1;
inline constexpr std::uint32_t kLastOp = 71;
inline constexpr std::uint32_t kLastCbOp = 15;

inline Words words(std::uint32_t op, std::uint32_t longest = 3000) {
  return {.first = {op},
          .special = {4, 5, 6, NFS4ERR_TOOSMALL, NFS4ERR_DENIED, NFS4ERR_CLID_INUSE, NFS4ERR_LAYOUTTRYLATER,
                      NFS4ERR_OFFLOAD_NO_REQS, NFS4ERR_STALE},
          .longest = longest};
}

inline const rpcrdma::Binding& nfs4() {
  return *nfsulb::find_binding(NFS4_PROGRAM, NFS_V4);
}
inline const rpcrdma::Binding& callback() {
  return *nfsulb::find_binding(NFS4_CALLBACK, NFS_CB);
}
// The table of operations in the schema of COMPOUND.
inline std::span<const nfsulb::Operation> operations_of(const rpcrdma::Binding& binding) {
  for (const nfsulb::BoundProgram& bound : nfsulb::bound_programs()) {
    if (bound.binding.program != binding.program || bound.binding.version != binding.version) continue;
    return bound.schema->procedures[1].arguments->fields.back()->operations;
  }
  return {};
}

// item_of: the eligible item of an operation, if it has one.
inline std::optional<Item> item_of(nfs_argop4& op) {
  if (op.argop == OP_WRITE) return Item{op.nfs_argop4_u.opwrite.data.data_val, op.nfs_argop4_u.opwrite.data.data_len};
  if (op.argop != OP_CREATE || op.nfs_argop4_u.opcreate.objtype.type != NF4LNK) return std::nullopt;
  const linktext4& text = op.nfs_argop4_u.opcreate.objtype.createtype4_u.linkdata;
  return Item{text.linktext4_val, text.linktext4_len};
}
inline std::optional<Item> item_of(nfs_resop4& op) {
  if (op.resop == OP_READ && op.nfs_resop4_u.opread.status == NFS4_OK) {
    const auto& data = op.nfs_resop4_u.opread.READ4res_u.resok4.data;
    return Item{data.data_val, data.data_len};
  }
  if (op.resop != OP_READLINK || op.nfs_resop4_u.opreadlink.status != NFS4_OK) return std::nullopt;
  const linktext4& text = op.nfs_resop4_u.opreadlink.READLINK4res_u.resok4.link;
  return Item{text.linktext4_val, text.linktext4_len};
}
// An item of no octets cannot be followed by its address.
template <typename Op>
bool can_follow(Op& op) {
  const auto item = item_of(op);
  return !item || item->len > 0;
}

// encode_call, encode_reply: COMPOUNDs of operations that stay their owners'. The tag may be any.
inline void encode_call(OutStream& out, std::uint32_t minor_version, std::vector<nfs_argop4>& ops) {
  char tag[] = "oracle";
  COMPOUND4args args{};
  args.tag = {6, tag};
  args.minorversion = minor_version;
  args.argarray.argarray_len = static_cast<u_int>(ops.size());
  args.argarray.argarray_val = ops.data();
  encode(out, &xdr_COMPOUND4args, args);
}
inline void encode_reply(OutStream& out, std::vector<nfs_resop4>& ops) {
  char tag[] = "oracle";
  COMPOUND4res results{};
  results.tag = {6, tag};
  results.resarray.resarray_len = static_cast<u_int>(ops.size());
  results.resarray.resarray_val = ops.data();
  encode(out, &xdr_COMPOUND4res, results);
}

}  // namespace weft::ulb_oracle
