#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "nfsulb/schema.h"
#include "nfsulb/walk.h"
#include "rpcrdma/call.h"
#include "rpcrdma/server.h"
#include "rpcrdma/xdr/xdr.h"

// The RPC program of rpc_v2: a procedure for each way in which the bound of a Reply and its length can differ. Each
// Call says how long its Reply is to be.
namespace weft::bench {

enum Procedure : std::uint32_t {
  kNull,
  kGetattr,     // the Reply has a fixed length
  kGetattrAcl,  // nothing bounds the Reply
  kReaddir,     // a count bounds the Reply, which may be shorter
  kReply,       // the count is the length of the Reply
  kRead,        // an item in the Reply
  kWrite,       // an item in the Call
};

namespace program {

using namespace nfsulb::xdr;
using nfsulb::Bound;
using nfsulb::Operation;
using nfsulb::operation;
using nfsulb::Runs;

inline constexpr nfsulb::Type kSizes = structure<reply_count, uint32>;  // the bound, the length
inline constexpr nfsulb::Type kAttributes = opaque_fixed<100>;
inline constexpr nfsulb::Type kAnything = opaque<>;
inline constexpr nfsulb::Type kAcl = unbounded<kAnything>;
inline constexpr nfsulb::Type kCounted = within_count<kAnything, 4>;
inline constexpr Operation kProcedures[] = {
    operation(kNull, "NULL", Runs::kAgain, void_type, void_type),
    operation(kGetattr, "GETATTR", Runs::kAgain, kSizes, kAttributes),
    operation(kGetattrAcl, "GETATTR_ACL", Runs::kAgain, kSizes, kAcl),
    operation(kReaddir, "READDIR", Runs::kAgain, kSizes, kCounted),
    operation(kReply, "REPLY", Runs::kAgain, kSizes, kCounted),
    operation(kRead, "READ", Runs::kAgain, reply_count, eligible<Bound::kCount>),
    operation(kWrite, "WRITE", Runs::kAgain, eligible<>, uint32),
};
inline constexpr nfsulb::Program kProgram{kProcedures};

}  // namespace program

inline const rpcrdma::Binding& works_binding() {
  static constexpr rpcrdma::Binding kBinding = nfsulb::binding_of<program::kProgram>(0x20005747, 1);
  return kBinding;
}

// A Call of the program, but for its items and its max_results. args stay as long as the Call.
inline rpcrdma::CallSpec works_call(Procedure procedure, ConstBytes args) {
  const rpcrdma::Binding& binding = works_binding();
  rpcrdma::CallSpec spec;
  spec.program = binding.program;
  spec.version = binding.version;
  spec.procedure = procedure;
  spec.binding = &binding;
  spec.args = args;
  return spec;
}

class WorksService final : public rpcrdma::Service {
 public:
  void set_server(rpcrdma::Server& server) { server_ = &server; }
  void on_call(rpcrdma::ServedCall call) override {
    rpcrdma::xdr::XdrReader args(call.args);
    std::uint32_t first = 0, second = 0;
    if (call.procedure != kNull && call.args.size() >= 4) (void)args.u32(first);
    if (call.procedure != kNull && call.args.size() >= 8) (void)args.u32(second);
    rpcrdma::ServedReply reply;
    switch (call.procedure) {
      case kNull: break;
      case kGetattr: reply.results.assign(100, 0x5a); break;
      case kRead: read(reply, first); break;
      case kWrite: rpcrdma::xdr::XdrWriter(reply.results).u32(0); break;
      default:
        reply.results.reserve(4 + second);
        rpcrdma::xdr::XdrWriter(reply.results).u32(second);
        reply.results.resize(4 + second, 0x5a);
        break;
    }
    server_->reply(call.id, std::move(reply));
  }

 private:
  void read(rpcrdma::ServedReply& reply, std::uint32_t len) {
    rpcrdma::xdr::XdrWriter(reply.results).u32(len);
    reply.add_item(server_->buffers().take(len), len);
  }

  rpcrdma::Server* server_ = nullptr;
};

}  // namespace weft::bench
