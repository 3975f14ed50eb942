#pragma once

#include <cstdint>

#include "nfsulb/netid.h"

// The program numbers of the NFS family (RFC 8267 sections 4, 5 and 6; for NFSACL, the numbers in use).
namespace weft::nfsulb {

inline constexpr std::uint32_t kNfsProgram = 100003;
inline constexpr std::uint32_t kNfsV2 = 2;
inline constexpr std::uint32_t kNfsV3 = 3;
inline constexpr std::uint32_t kNfsV4 = 4;
inline constexpr std::uint32_t kMountProgram = 100005;
inline constexpr std::uint32_t kMountV1 = 1;
inline constexpr std::uint32_t kMountV2 = 2;
inline constexpr std::uint32_t kMountV3 = 3;
inline constexpr std::uint32_t kNlmProgram = 100021;
inline constexpr std::uint32_t kNlmV1 = 1;
inline constexpr std::uint32_t kNlmV3 = 3;
inline constexpr std::uint32_t kNlmV4 = 4;
inline constexpr std::uint32_t kNsmProgram = 100024;
inline constexpr std::uint32_t kNsmV1 = 1;
inline constexpr std::uint32_t kNfsAclProgram = 100227;
inline constexpr std::uint32_t kNfsAclV2 = 2;
inline constexpr std::uint32_t kNfsAclV3 = 3;
inline constexpr std::uint32_t kNfs4CallbackProgram = 0x40000000;  // or the client's choice (RFC 7531, RFC 8881)
inline constexpr std::uint32_t kNfs4CallbackV1 = 1;

// program_name: "NFS", "MOUNT"; nullptr for a program of none of these numbers.
constexpr const char* program_name(std::uint32_t program) {
  switch (program) {
    case kNfsProgram: return "NFS";
    case kMountProgram: return "MOUNT";
    case kNlmProgram: return "NLM";
    case kNsmProgram: return "NSM";
    case kNfsAclProgram: return "NFSACL";
    case kNfs4CallbackProgram: return "NFS4_CB";
    default: return nullptr;
  }
}

inline constexpr std::uint16_t kMountTcpPort = 20048;  // not assigned by IANA: mountd's port on Linux and others

}  // namespace weft::nfsulb
