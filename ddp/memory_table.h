#pragma once

#include <cstdint>
#include <variant>

#include "mpa/wire/bytes.h"

namespace weft::ddp {

// Stag is a Steering Tag (RFC 5041 section 3): the 32-bit name of a registered region or window, all 32 bits
// significant.
struct Stag {
  std::uint32_t value = 0;
  friend bool operator==(Stag, Stag) = default;
};

// StreamScope says who asks: the Protection Domain of the queue pair and the stream's own number, both chosen by the
// device, never by the peer (RFC 5041 section 8.2, RFC 5042 section 2.2).
struct StreamScope {
  std::uint32_t pd = 0;
  std::uint32_t stream = 0;
  friend bool operator==(StreamScope, StreamScope) = default;
};

// kRemoteAtomic: RFC 7306; RFC 5040 knows no such right, so tables without one ask for remote read and write
// (EXT-X-04).
enum class Right : std::uint8_t { kLocalRead, kLocalWrite, kRemoteRead, kRemoteWrite, kRemoteAtomic };

// AccessError is why a range may not be touched, in the order in which the checks are made.
enum class AccessError : std::uint8_t {
  kInvalidStag,    // unknown, or invalidated
  kNotAssociated,  // of another Protection Domain or stream
  kAccessRights,   // the right asked for was not granted
  kToWrap,         // to + len passes 2^64
  kBaseBounds,     // not inside the region
};

// WindowBind asks for a type-2 memory window: len octets at tagged offset `to` of a region become reachable through
// `stag`, on the stream that binds alone.
struct WindowBind {
  Stag stag;    // what the window is to be called: its index (upper 24 bits) and a key that is not its last one
  Stag region;  // the region's local key
  std::uint64_t to = 0;
  std::uint64_t len = 0;
  bool remote_read = false;
  bool remote_write = false;
  bool remote_atomic = false;
  friend bool operator==(const WindowBind&, const WindowBind&) = default;
};

// MemoryTable is what DDP asks where the octets of a tagged segment may land, and where the memory of the device's own
// user is. One of the three virtual seams (docs/architecture.md); the soft RNIC implements it over its regions and
// windows, tests over a few arrays.
class MemoryTable {
 public:
  virtual ~MemoryTable() = default;

  // resolve checks len octets at tagged offset `to` of `stag` on behalf of `scope` for `right`, and returns the memory.
  // The view may be used until the caller returns to its driver, no longer: the region can be deregistered then.
  // Local rights take the lkey as `stag` and the virtual address as `to`. len 0 is checked like any other length.
  virtual std::variant<MutBytes, AccessError> resolve(StreamScope scope, Stag stag, std::uint64_t to, std::size_t len,
                                                      Right right) = 0;

  // invalidate ends the remote validity of `stag` on behalf of a peer (RFC 5040 section 5.3).
  // Returns nothing where it was invalidated, else why not.
  virtual std::variant<std::monostate, AccessError> invalidate(StreamScope scope, Stag stag) = 0;

  // bind_window and invalidate_window are the work requests of the stream's own user; they take effect at once. False,
  // and nothing changed, where the request asks for what it may not. A window that the peer has invalidated already may
  // be invalidated again.
  virtual bool bind_window(StreamScope /*scope*/, const WindowBind& /*bind*/) { return false; }
  virtual bool invalidate_window(StreamScope /*scope*/, Stag /*stag*/) { return false; }
};

}  // namespace weft::ddp
