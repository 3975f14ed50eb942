#include "apps/perf/rpc_program.h"

#include <algorithm>

#include "rpcrdma/xdr/xdr.h"

namespace weft::apps::perf {
namespace {

using rpcrdma::ConstBytes;
using rpcrdma::xdr::XdrReader;
using rpcrdma::xdr::XdrWriter;
using Accept = rpcrdma::ServedReply::Accept;

constexpr std::size_t kCountLen = 4;

std::optional<rpcrdma::ItemPlace> find_argument(std::uint32_t procedure, ConstBytes reduced_args) {
  std::uint32_t len = 0;
  if (procedure != kProcWrite || !XdrReader(reduced_args).u32(len)) return std::nullopt;
  return rpcrdma::ItemPlace{kCountLen, len};
}

bool has_eligible_result(std::uint32_t procedure) {
  return procedure == kProcRead;
}

std::optional<std::size_t> max_results(std::uint32_t procedure, ConstBytes) {
  switch (procedure) {
    case kProcNull: return 0;
    case kProcRead:
    case kProcWrite: return kCountLen;
    default: return std::nullopt;
  }
}

rpcrdma::ServedReply refusal(Accept accept) {
  rpcrdma::ServedReply reply;
  reply.accept = accept;
  return reply;
}

}  // namespace

const rpcrdma::Binding& perf_binding() {
  static constexpr rpcrdma::Binding kBinding{kPerfProgram, kPerfVersion, find_argument, has_eligible_result,
                                             max_results};
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
  if (const auto most = call.result_item_capacity()) len = std::uint32_t(std::min<std::size_t>(len, *most));
  len = std::min(len, kMaxItem);
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
