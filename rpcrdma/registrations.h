#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rpcrdma/chunk_lists.h"
#include "rpcrdma/endpoint.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// Registrations: the memory of one Call that the peer may reach, with one segment for each piece. A piece is a region
// that is remotely accessible until its destruction. If the peer may invalidate it (RFC 8797 section 3.2), the piece is
// a type-2 memory window over a region that is not remotely accessible. A Call has only one kind of pieces
// (R1-4.3.2-18).
class Registrations {
 public:
  // Adds memory for `access` (kRemoteRead or kRemoteWrite) and fills `segment`. The segment of a window names nothing
  // before bind().
  verbs::Status add(verbs::Pd& pd, bool window, void* octets, std::size_t len, verbs::Access access, Segment& segment);
  // How many windows must be bound.
  std::size_t num_to_bind() const { return num_windows_; }
  // Posts the binds. The Send that carries their handles must follow. False: the Endpoint failed.
  bool bind(Endpoint& endpoint);

  // Windows whose invalidation has neither been seen nor posted.
  std::size_t num_live() const { return num_live_; }
  std::vector<std::uint32_t> live_handles() const;
  // The peer invalidated this handle. False: it is not the handle of a live window of this Call (R1-4.3.2-19).
  bool on_invalidated(std::uint32_t handle);
  // Posts local invalidations for all live windows. A Work of kInvalidate for that Reply follows. False: the Endpoint
  // failed.
  bool post_invalidations(Endpoint& endpoint, ReceiveSlot slot);

  // Destroys all pieces. Nothing is remotely accessible from here on, whatever requests are posted.
  void clear();
  // The same, but returns the windows for requests that still name them. The end of their regions unbound the windows.
  std::vector<std::unique_ptr<verbs::Mw>> clear_keeping_windows();

 private:
  struct One {
    std::unique_ptr<verbs::Mr> mr;
    std::unique_ptr<verbs::Mw> mw;  // null: the region itself is remotely accessible
    std::uint32_t handle = 0;
    verbs::Access access = verbs::Access::kNone;
    bool live = false;  // only for a window
  };

  std::vector<One> all_;
  std::size_t num_windows_ = 0;
  std::size_t num_live_ = 0;
};

}  // namespace weft::rpcrdma
