#pragma once

#include <cstddef>
#include <cstdint>

#include "apps/nfs3/types.h"
#include "rpcrdma/service.h"

namespace weft::serve {

// Octets of a READDIR or READDIRPLUS reply at most, whatever the client asks for. A client goes on with the cookie of
// the last entry, so it may get fewer entries than it has room for (RFC 1813 sections 3.3.16 and 3.3.17). Each entry of
// READDIRPLUS is looked up: a reply of a megabyte would keep a worker from others for a tenth of a second and longer.
// With its status a reply fits the memory that each connection has for itself
// (ServerConfig::min_buffered_per_connection).
inline constexpr std::uint32_t kMaxListReply = (64 << 10) - 4;

// For ServedProgram::results_of. All results but data and lists of names have fields of fixed size, a handle and a path
// at most.
inline rpcrdma::ResultsOf results_of(std::uint32_t procedure) {
  constexpr std::size_t kStatus = 4, kOthers = 8 << 10;
  switch (static_cast<nfs3::Proc>(procedure)) {
    case nfs3::Proc::kRead: return {};
    case nfs3::Proc::kReaddir:
    case nfs3::Proc::kReaddirplus: return {.longest = kMaxListReply + kStatus, .is_slow = true};
    default: return {.longest = kOthers};
  }
}

}  // namespace weft::serve
