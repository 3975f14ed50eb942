#pragma once

#include <cstdint>

// Numbers that the Upper-Layer Bindings of the NFS family fix (RFC 8267 sections 4, 5 and 9).
namespace weft::nfsulb {

inline constexpr std::uint32_t kNfsProgram = 100003;
inline constexpr std::uint32_t kNfsV3 = 3;
inline constexpr std::uint32_t kMountProgram = 100005;
inline constexpr std::uint32_t kMountV3 = 3;

inline constexpr std::uint16_t kNfsRdmaPort = 20049;   // RFC 8267 section 9: nfsrdma
inline constexpr std::uint16_t kMountTcpPort = 20048;  // no number of IANA's: where Linux and others put mountd
inline constexpr const char* kNetidRdma = "rdma";      // RFC 8166 section 10
inline constexpr const char* kNetidRdma6 = "rdma6";

}  // namespace weft::nfsulb
