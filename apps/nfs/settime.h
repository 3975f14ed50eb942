#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>

#include "apps/nfs3/types.h"

namespace weft::nfs {

// LocalTime is a local time as NFS version 3 carries it: seconds since 1970 without a sign, in 32 bits (RFC 1813
// section 2.6, nfstime3). An earlier time is the beginning of 1970, and a later one the last second, in 2106.
struct LocalTime {
  nfs3::SetTime value;
  bool is_cut = false;  // the file's own time has no place there
};

inline LocalTime to_settime(const timespec& time) {
  constexpr std::int64_t kLast = UINT32_MAX;
  const std::int64_t seconds = std::clamp<std::int64_t>(time.tv_sec, 0, kLast);
  const bool is_cut = seconds != time.tv_sec;
  const auto nseconds = static_cast<std::uint32_t>(is_cut ? 0 : time.tv_nsec);
  return {{nfs3::TimeHow::kSetToClientTime, {static_cast<std::uint32_t>(seconds), nseconds}}, is_cut};
}

}  // namespace weft::nfs
