#include "apps/common/rpcbind_registration.h"

#include <utility>

#include "nfsulb/netid.h"
#include "spdlog/spdlog.h"

namespace weft::apps {
namespace {

using onc_tcp::Rpcb;
using onc_tcp::Rpcbind;

absl::Status replace(Rpcbind& rpcbind, const Rpcb& rpcb) {
  absl::Status status = rpcbind.set(rpcb);
  if (!absl::IsAlreadyExists(status)) return status;
  if (!rpcbind.unset(rpcb).ok()) return absl::AlreadyExistsError("another user registered another address for it");
  return rpcbind.set(rpcb);
}

}  // namespace

RpcbindRegistration::RpcbindRegistration(const sockaddr_storage& addr, std::span<const ProgramVersion> programs,
                                         Config config)
    : config_(std::move(config)) {
  auto rpcbind = Rpcbind::connect(config_.places, config_.timeout, config_.stop_fd);
  if (absl::IsCancelled(rpcbind.status())) return;
  if (!rpcbind.ok()) {
    spdlog::warn(
        "--rpcbind: no rpcbind here ({}), so clients must name the port; to register it, start rpcbind and this "
        "command again",
        std::string(rpcbind.status().message()));
    return;
  }
  // RFC 8166 section 9 (R1-11-01).
  const char* netid = addr.ss_family == AF_INET6 ? nfsulb::kNetidRdma6 : nfsulb::kNetidRdma;
  for (const ProgramVersion& program : programs) {
    Rpcb rpcb{program.program, program.version, netid, onc_tcp::universal_address(addr), {}};
    if (const absl::Status status = replace(*rpcbind, rpcb); status.ok()) {
      spdlog::info("--rpcbind: program {} version {} is registered as {} {}", rpcb.program, rpcb.version, rpcb.netid,
                   rpcb.address);
      registered_.push_back(std::move(rpcb));
    } else {
      spdlog::warn("--rpcbind: cannot register program {} version {} as {} {}: {}", rpcb.program, rpcb.version,
                   rpcb.netid, rpcb.address, std::string(status.message()));
      if (!absl::IsAlreadyExists(status)) break;  // all others would fail in the same way
    }
  }
}

RpcbindRegistration::~RpcbindRegistration() {
  if (registered_.empty()) return;
  // This takes a new connection: rpcbind ends idle ones.
  auto rpcbind = Rpcbind::connect(config_.places, config_.timeout);
  absl::Status status = rpcbind.status();
  for (const Rpcb& rpcb : registered_) {
    // A registration that another program removed is no error.
    if (status.ok() || absl::IsNotFound(status)) status = rpcbind->unset(rpcb);
  }
  if (!status.ok() && !absl::IsNotFound(status))
    spdlog::warn("--rpcbind: cannot remove what was registered: {}", std::string(status.message()));
}

}  // namespace weft::apps
