#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "apps/common/address.h"

namespace weft::gateway {

enum class Transport : std::uint8_t { kRdma, kTcp };

// Url is one end of a gateway: rdma://ADDR:PORT or tcp://HOST:PORT.
struct Url {
  Transport transport = Transport::kRdma;
  apps::HostPort where;
  friend bool operator==(const Url&, const Url&) = default;
};

// parse_url takes a URL apart. Without ":PORT" it uses NFS's port: 20049 over RDMA, 2049 over TCP. Errors are
// kInvalidArgument and describe the fault.
absl::StatusOr<Url> parse_url(std::string_view text);
std::string scheme(Transport transport);

}  // namespace weft::gateway
