#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rpcrdma/channel.h"
#include "rpcrdma/chunk_lists.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// Registrations: what of one Call's memory the peer may reach, a segment to each. Regions that are remotely accessible
// themselves, whose end is their destruction; or, where the peer may invalidate them (RFC 8797 section 3.2), a type-2
// memory window over a region that is not. A Call has one kind only (R1-4.3.2-18).
class Registrations {
 public:
  // Adds memory for `access` (kRemoteRead or kRemoteWrite) and fills `segment`. With a window, that names nothing
  // before bind().
  verbs::Status add(verbs::Pd& pd, bool window, void* octets, std::size_t len, verbs::Access access, Segment& segment);
  // How many windows are to be bound.
  std::size_t num_to_bind() const { return num_windows_; }
  // Posts the binds, to be followed by the Send that tells of them. False: the Channel failed.
  bool bind(Channel& channel);

  // Of the windows, what no invalidation was seen of or posted for.
  std::size_t num_live() const { return num_live_; }
  std::vector<std::uint32_t> live_handles() const;
  // The peer invalidated it; false where it is not a live one of this Call's (R1-4.3.2-19).
  bool on_invalidated(std::uint32_t handle);
  // Posts local invalidations for all that are live, and a Work of kInvalidate for that Reply follows. False: the
  // Channel failed.
  bool post_invalidations(Channel& channel, ReceiveSlot slot);

  // Destroys all: nothing is remotely accessible from here on, whatever is posted.
  void clear();
  // The same, but the windows, unbound by the end of their regions, are kept for requests that still name them.
  std::vector<std::unique_ptr<verbs::Mw>> clear_keeping_windows();

 private:
  struct One {
    std::unique_ptr<verbs::Mr> mr;
    std::unique_ptr<verbs::Mw> mw;  // null: the region itself is remotely accessible
    std::uint32_t handle = 0;
    verbs::Access access = verbs::Access::kNone;
    bool live = false;  // of a window
  };

  std::vector<One> all_;
  std::size_t num_windows_ = 0;
  std::size_t num_live_ = 0;
};

}  // namespace weft::rpcrdma
