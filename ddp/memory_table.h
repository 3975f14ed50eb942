#pragma once

#include <cstdint>
#include <variant>

#include "base/bytes.h"

namespace weft::ddp {

// Stag is a Steering Tag (RFC 5041 section 3): the 32-bit name of a registered region or window, all 32 bits
// significant.
struct Stag {
  std::uint32_t value = 0;
  friend bool operator==(Stag, Stag) = default;
};

// StreamScope identifies the stream that asks: the Protection Domain of its queue pair and its own number. The device
// chooses both, never the peer (RFC 5041 section 8.2, RFC 5042 section 2.2).
struct StreamScope {
  std::uint32_t pd = 0;
  std::uint32_t stream = 0;
  friend bool operator==(StreamScope, StreamScope) = default;
};

// kRemoteAtomic comes from RFC 7306. RFC 5040 has no atomic right, so a table without one checks remote read and remote
// write instead (EXT-X-04).
enum class Right : std::uint8_t { kLocalRead, kLocalWrite, kRemoteRead, kRemoteWrite, kRemoteAtomic };

// AccessError is the reason why a range may not be accessed. The values stand in the order of the checks.
enum class AccessError : std::uint8_t {
  kInvalidStag,    // unknown, or invalidated
  kNotAssociated,  // of another Protection Domain or stream
  kAccessRights,   // the requested right was not granted
  kToWrap,         // to + len passes 2^64
  kBaseBounds,     // not inside the region
};

// WindowBind asks for a type-2 memory window: len octets at tagged offset `to` of a region become reachable through
// `stag`, but only on the stream that binds it.
struct WindowBind {
  Stag stag;    // the window's new name: its index (upper 24 bits) and a key other than its last one
  Stag region;  // the region's local key
  std::uint64_t to = 0;
  std::uint64_t len = 0;
  bool remote_read = false;
  bool remote_write = false;
  bool remote_atomic = false;
  friend bool operator==(const WindowBind&, const WindowBind&) = default;
};

// DDP asks MemoryTable where the octets of a tagged segment may land, and where the memory of the device's own user is.
// It is one of the three virtual seams (docs/architecture.md). The soft RNIC implements it over its regions and
// windows, tests over a few arrays.
class MemoryTable {
 public:
  virtual ~MemoryTable() = default;

  // resolve checks len octets at tagged offset `to` of `stag` on behalf of `scope` for `right`, and returns the memory.
  // The view is valid until the caller returns to its driver: the region can be deregistered after that. Local rights
  // take the lkey as `stag` and the virtual address as `to`. A len of 0 is checked like any other length.
  virtual std::variant<MutBytes, AccessError> resolve(StreamScope scope, Stag stag, std::uint64_t to, std::size_t len,
                                                      Right right) = 0;

  // invalidate ends the remote validity of `stag` on behalf of a peer (RFC 5040 section 5.3). Returns std::monostate if
  // it was invalidated, else the reason why not.
  virtual std::variant<std::monostate, AccessError> invalidate(StreamScope scope, Stag stag) = 0;

  // bind_window and invalidate_window are work requests of the stream's own user. They take effect at once. They return
  // false and change nothing if the request is not allowed. A window that the peer has already invalidated may be
  // invalidated again.
  virtual bool bind_window(StreamScope /*scope*/, const WindowBind& /*bind*/) { return false; }
  virtual bool invalidate_window(StreamScope /*scope*/, Stag /*stag*/) { return false; }
};

}  // namespace weft::ddp
