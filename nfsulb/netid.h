#pragma once

#include <cstdint>

// Port and netids of the NFS family on RDMA (RFC 8166 section 10, RFC 8267 sections 4.2, 6.3 and 9).
namespace weft::nfsulb {

inline constexpr std::uint16_t kNfsRdmaPort = 20049;  // nfsrdma: NFS version 4 always, versions 2 and 3 by default
inline constexpr const char* kNetidRdma = "rdma";     // IPv4
inline constexpr const char* kNetidRdma6 = "rdma6";   // IPv6

}  // namespace weft::nfsulb
