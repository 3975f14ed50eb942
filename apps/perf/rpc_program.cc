#include "apps/perf/rpc_program.h"

#include <algorithm>

#include "nfsulb/schema.h"
#include "nfsulb/walk.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::apps::perf {
namespace {

using rpcrdma::xdr::XdrReader;
using rpcrdma::xdr::XdrWriter;
using Accept = rpcrdma::ServedReply::Accept;

using namespace nfsulb::xdr;
using nfsulb::Operation;
using nfsulb::operation;
using nfsulb::Runs;

constexpr Operation kProcedures[] = {
    operation(kProcNull, "NULL", Runs::kAgain, void_type, void_type),
    operation(kProcRead, "READ", Runs::kAgain, reply_count, eligible<nfsulb::Bound::kCount>),
    operation(kProcWrite, "WRITE", Runs::kAgain, eligible<>, uint32),
};
constexpr nfsulb::Program kProgram{kProcedures};

rpcrdma::ServedReply refusal(Accept accept) {
  rpcrdma::ServedReply reply;
  reply.accept = accept;
  return reply;
}

}  // namespace

const rpcrdma::Binding& perf_binding() {
  static constexpr rpcrdma::Binding kBinding = nfsulb::binding_of<kProgram>(kPerfProgram, kPerfVersion);
  return kBinding;
}

void RpcService::on_call(rpcrdma::ServedCall call) {
  rpcrdma::ServedReply reply;
  switch (call.procedure) {
    case kProcNull: break;
    case kProcRead: reply = read(call); break;
    case kProcWrite: reply = write(call); break;
    default: reply = refusal(Accept::kProcUnavail); break;
  }
  server_->reply(call.id, std::move(reply));
}

rpcrdma::ServedReply RpcService::read(const rpcrdma::ServedCall& call) {
  XdrReader args(call.args);
  std::uint32_t len = 0;
  if (!args.u32(len) || !args.at_end()) return refusal(Accept::kGarbageArgs);
  len = std::uint32_t(std::min<std::size_t>({len, call.max_item(sizeof(len)), kMaxItem}));
  rpcrdma::ServedReply reply;
  XdrWriter(reply.results).u32(len);
  if (len != 0) {
    rpcrdma::Buffer data = server_->buffers().take(len);
    if (!data) return refusal(Accept::kSystemErr);
    reply.add_item(std::move(data), len);
  }
  return reply;
}

rpcrdma::ServedReply RpcService::write(const rpcrdma::ServedCall& call) {
  std::uint32_t len = 0;
  if (!call.items.empty()) {
    len = std::uint32_t(call.items.front().data.octets().size());
  } else {
    XdrReader args(call.args);
    ConstBytes data;
    if (!args.opaque(data) || !args.at_end()) return refusal(Accept::kGarbageArgs);
    len = std::uint32_t(data.size());
  }
  rpcrdma::ServedReply reply;
  XdrWriter(reply.results).u32(len);
  return reply;
}

}  // namespace weft::apps::perf
