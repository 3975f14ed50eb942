#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <variant>

#include "apps/serve/backend/backend.h"
#include "apps/serve/disk_pool.h"
#include "apps/serve/listing_costs.h"
#include "rpcrdma/server.h"

namespace weft::serve {

// BulkArgs: the decoded arguments of a READ or WRITE, which the loop and a worker both need. Empty for garbage and for
// every other procedure. Item::data is the data of a WRITE, by Read chunk or inline; it views the Call's memory.
using BulkArgs = std::variant<std::monostate, nfs3::ReadArgs, nfs3::WriteArgs>;
BulkArgs parse_bulk_args(const rpcrdma::ServedCall& call);

// NfsService answers NFSv3 Calls: it parses the arguments, lets a disk worker do the procedure, and replies when the
// loop drains the pool. It does UNSTABLE WRITEs, and READs up to 256 KiB, itself if memory holds the data: giving 64
// KiB to a worker and back costs more than copying them. Only the server's thread uses it.
class NfsService : public rpcrdma::Service {
 public:
  // Both outlive the service.
  NfsService(Backend& backend, DiskPool& pool) : backend_(backend), pool_(pool) {}

  // attach comes before the first Call. The server outlives every task in the pool.
  void attach(rpcrdma::Server& server) { server_ = &server; }

  void on_call(rpcrdma::ServedCall call) override;
  // The waiting tasks of a lost connection are cancelled. The backend hears of the client's end when the last of its
  // tasks is gone.
  void on_end(const rpcrdma::ConnectionEnd& end) override {
    pool_.forget(end.connection.value);
    clients_.erase(end.connection.value);
  }

  // Calls so far, by procedure; [kNumProcs] counts unknown procedures.
  const std::array<std::uint64_t, nfs3::kNumProcs + 1>& num_calls() const { return num_calls_; }

 private:
  std::shared_ptr<const DiskClient> client_of(const rpcrdma::ServedCall& call);
  // take_buffer takes a place for the item of a READ or READLINK, no larger than the client offers to take. False if no
  // memory is left.
  bool take_buffer(const rpcrdma::ServedCall& call, const BulkArgs& args, rpcrdma::Buffer& buffer);

  Backend& backend_;
  DiskPool& pool_;
  rpcrdma::Server* server_ = nullptr;
  // Of each connection that made a Call. Its tasks hold the client, too.
  std::unordered_map<std::uint32_t, std::shared_ptr<const DiskClient>> clients_;
  std::array<std::uint64_t, nfs3::kNumProcs + 1> num_calls_{};
  ListingCosts listing_costs_;
};

// serve_nfs_call does one Call: everything between the ServedCall and its ServedReply. `args`: of parse_bulk_args; all
// other arguments are decoded here. READ and READLINK put their item into `buffer`. `buffer` moves into the reply, or
// stays (Buffers are destroyed on the loop). Blocks on the disk; any thread.
rpcrdma::ServedReply serve_nfs_call(Backend& backend, const rpcrdma::ServedCall& call, const BulkArgs& args,
                                    rpcrdma::Buffer& buffer);

// serve_nfs_call_now does a READ or WRITE that needs no wait (Backend::read_now, write_now). Otherwise it returns
// nothing, and `buffer` is as it was, except for its octets.
std::optional<rpcrdma::ServedReply> serve_nfs_call_now(Backend& backend, const BulkArgs& args, rpcrdma::Buffer& buffer);

// busy_reply answers a Call with NFS3ERR_JUKEBOX: nothing was done, the client asks again later.
rpcrdma::ServedReply busy_reply(std::uint32_t procedure);

}  // namespace weft::serve
