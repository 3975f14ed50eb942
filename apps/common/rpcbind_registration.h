#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/onc_tcp/rpcbind.h"

namespace weft::apps {

struct ProgramVersion {
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  friend bool operator==(const ProgramVersion&, const ProgramVersion&) = default;
};

// RpcbindRegistration implements --rpcbind. As long as it lives, the programs served at an RDMA address are registered
// with the rpcbind of this host, under netid "rdma" or "rdma6". A server works without it, so a failure is only a
// warning. It blocks for a few timeouts at most.
class RpcbindRegistration {
 public:
  struct Config {
    std::vector<onc_tcp::RpcbindPlace> places = onc_tcp::local_rpcbind_places();
    std::chrono::milliseconds timeout{2000};
    int stop_fd = -1;  // readable: give up registering, but not removing
  };

  // Replaces an existing registration of the same program, version and netid: a killed server may have left it.
  RpcbindRegistration(const sockaddr_storage& addr, std::span<const ProgramVersion> programs, Config config);
  // Removes the registration.
  ~RpcbindRegistration();
  RpcbindRegistration(const RpcbindRegistration&) = delete;
  RpcbindRegistration& operator=(const RpcbindRegistration&) = delete;

  std::span<const onc_tcp::Rpcb> registered() const { return registered_; }

 private:
  Config config_;
  std::vector<onc_tcp::Rpcb> registered_;
};

}  // namespace weft::apps
