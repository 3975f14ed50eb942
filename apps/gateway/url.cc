#include "apps/gateway/url.h"

#include "fmt/format.h"
#include "nfsulb/netid.h"

namespace weft::gateway {
namespace {

constexpr std::uint16_t kNfsTcpPort = 2049;

}  // namespace

std::string scheme(Transport transport) {
  return transport == Transport::kRdma ? "rdma://" : "tcp://";
}

absl::StatusOr<Url> parse_url(std::string_view text) {
  for (const Transport transport : {Transport::kRdma, Transport::kTcp}) {
    const std::string prefix = scheme(transport);
    if (!text.starts_with(prefix)) continue;
    const int port = transport == Transport::kRdma ? nfsulb::kNfsRdmaPort : kNfsTcpPort;
    auto where = apps::parse_host_port(text.substr(prefix.size()), port);
    if (!where.ok()) return where.status();
    return Url{transport, *where};
  }
  return absl::InvalidArgumentError(fmt::format("'{}' is neither rdma://ADDR:PORT nor tcp://HOST:PORT", text));
}

}  // namespace weft::gateway
