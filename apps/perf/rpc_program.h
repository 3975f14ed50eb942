#pragma once

#include "rpcrdma/binding.h"
#include "rpcrdma/server.h"

// perf's own RPC program, in memory: it shows the cost of RPC-over-RDMA itself, without a file system behind it.
//   NULL()                                  = 0
//   READ(unsigned length) -> opaque<>       = 1    the result may be placed directly
//   WRITE(opaque<>) -> unsigned length      = 2    the argument may be placed directly
namespace weft::apps::perf {

inline constexpr std::uint32_t kPerfProgram = 0x20005746;  // in the range that RFC 5531 section 8.3 leaves to users
inline constexpr std::uint32_t kPerfVersion = 1;
inline constexpr std::uint32_t kProcNull = 0;
inline constexpr std::uint32_t kProcRead = 1;
inline constexpr std::uint32_t kProcWrite = 2;
inline constexpr std::uint32_t kMaxItem = 4u << 20;  // octets

const rpcrdma::Binding& perf_binding();

// RpcService answers the program's Calls at once. The server outlives its calls; it is set before the first Call.
class RpcService : public rpcrdma::Service {
 public:
  void set_server(rpcrdma::Server& server) { server_ = &server; }
  void on_call(rpcrdma::ServedCall call) override;

 private:
  rpcrdma::ServedReply read(const rpcrdma::ServedCall& call);
  static rpcrdma::ServedReply write(const rpcrdma::ServedCall& call);

  rpcrdma::Server* server_ = nullptr;
};

}  // namespace weft::apps::perf
