#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "apps/serve/backend/backend.h"
#include "apps/serve/disk_pool.h"
#include "rpcrdma/server.h"

namespace weft::serve {

// NfsService answers NFSv3 Calls: it takes the arguments apart, lets a disk worker do the procedure, and replies when
// the loop drains the pool. UNSTABLE WRITEs, and READs up to 256 KiB, of what memory holds it does itself: giving
// 64 KiB to a worker and back costs more than copying them. One thread, the server's.
class NfsService : public rpcrdma::Service {
 public:
  // Both outlive the service.
  NfsService(Backend& backend, DiskPool& pool) : backend_(backend), pool_(pool) {}

  // attach: before the first Call; the server outlives every task in the pool.
  void attach(rpcrdma::Server& server) { server_ = &server; }

  void on_call(rpcrdma::ServedCall call) override;
  // What a lost connection still has to wait for is given up, but for the Calls whose Replies are kept.
  void on_end(const rpcrdma::ConnectionEnd& end) override { pool_.forget(end.connection.value); }

  // Calls so far, by procedure; [kNumProcs] counts those that are none.
  const std::array<std::uint64_t, nfs3::kNumProcs + 1>& num_calls() const { return num_calls_; }

 private:
  // take_buffer: where a READ or READLINK may put its item: no larger than what the client offers to take. False where
  // no memory is left.
  bool take_buffer(const rpcrdma::ServedCall& call, rpcrdma::Buffer& buffer);

  Backend& backend_;
  DiskPool& pool_;
  rpcrdma::Server* server_ = nullptr;
  std::array<std::uint64_t, nfs3::kNumProcs + 1> num_calls_{};
};

// serve_nfs_call does one Call: everything between the ServedCall and its ServedReply. `buffer` is where READ and
// READLINK put their item; it goes into the reply, or stays (Buffers are destroyed on the loop). Blocks on the disk;
// any thread.
rpcrdma::ServedReply serve_nfs_call(Backend& backend, const rpcrdma::ServedCall& call, rpcrdma::Buffer& buffer);

// serve_nfs_call_now does a READ or WRITE for which nothing has to be waited for (Backend::read_now, write_now);
// otherwise nothing, and `call` and `buffer` are as they were but for the buffer's octets.
std::optional<rpcrdma::ServedReply> serve_nfs_call_now(Backend& backend, const rpcrdma::ServedCall& call,
                                                       rpcrdma::Buffer& buffer);

// busy_reply answers a Call with NFS3ERR_JUKEBOX: nothing was done, ask again later.
rpcrdma::ServedReply busy_reply(std::uint32_t procedure);

}  // namespace weft::serve
