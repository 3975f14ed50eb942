// An example of an RPC program and its Upper-Layer Binding: the items that may travel by RDMA, and the size of Replies.
#pragma once

#include <cstdint>

#include "nfsulb/walk.h"
#include "rpcrdma/call.h"
#include "rpcrdma/xdr/xdr.h"

// program BLOCKS {
//   version BLOCKS_V1 {
//     void     NULL(void) = 0;
//     opaque<> READ(unsigned hyper offset, unsigned count) = 1;
//     void     WRITE(unsigned hyper offset, opaque data<>) = 2;
//   } = 1;
// } = 0x20005eed;
inline constexpr std::uint32_t kBlocks = 0x20005eed;
inline constexpr std::uint32_t kBlocksV1 = 1;
inline constexpr std::uint32_t kRead = 1;
inline constexpr std::uint32_t kWrite = 2;

// The same in the vocabulary of nfsulb/schema.h. The data of WRITE and of READ is eligible for RDMA. READ's data is as
// long as its count.
namespace blocks {

using namespace weft::nfsulb;

inline constexpr Type kReadArguments = xdr::structure<xdr::uint64, xdr::reply_count>;
inline constexpr Type kWriteArguments = xdr::structure<xdr::uint64, xdr::eligible<>>;
inline constexpr Operation kProcedures[] = {
    operation(0, "NULL", Runs::kAgain, xdr::void_type, xdr::void_type),
    operation(kRead, "READ", Runs::kAgain, kReadArguments, xdr::eligible<Bound::kCount>),
    operation(kWrite, "WRITE", Runs::kAgain, kWriteArguments, xdr::void_type),
};
inline constexpr Program kProgram{kProcedures};

}  // namespace blocks

inline constexpr weft::rpcrdma::Binding kBlocksBinding = blocks::binding_of<blocks::kProgram>(kBlocks, kBlocksV1);

// A Call of it; `args` stays where it is until the Call ended.
inline weft::rpcrdma::CallSpec blocks_call(std::uint32_t procedure, weft::ConstBytes args) {
  weft::rpcrdma::CallSpec call;
  call.program = kBlocks;
  call.version = kBlocksV1;
  call.procedure = procedure;
  call.binding = &kBlocksBinding;
  call.args = args;
  return call;
}
