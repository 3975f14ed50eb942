#pragma once

#include "mpa/staging.h"
#include "rdmap/stream.h"
#include "verbs-shim/soft/handle.h"
#include "verbs-shim/soft/holdings.h"

namespace weft::verbs::soft {

// StagingLoan lends the one receive buffer of a loop to one connection at a time. The previous connection keeps its
// octets elsewhere from then on, and Holdings counts them.
class StagingLoan {
 public:
  explicit StagingLoan(Holdings& holdings) : holdings_(holdings) {}

  // Lends the buffer to this connection's Stream, which lives until forget. Octets that the Stream keeps elsewhere come
  // back with the next rx_buffers.
  mpa::Staging& lend(Handle to, rdmap::Stream& stream) {
    if (stream_ == &stream) return staging_;
    if (stream_ != nullptr) {
      const rdmap::Stream::Parked parked = stream_->park(staging_);
      holdings_.park(owner_, parked.num_octets, parked.again);
    }
    owner_ = to;
    stream_ = &stream;
    holdings_.unpark(to);
    return staging_;
  }
  bool holds_octets_of_other(Handle who) const { return !staging_.pending().empty() && owner_ != who; }
  // The Stream goes away.
  void forget(Handle who) {
    if (owner_ != who) return;
    staging_.consume(staging_.pending().size());
    owner_ = {};
    stream_ = nullptr;
  }

 private:
  Holdings& holdings_;
  mpa::Staging staging_;
  Handle owner_;
  rdmap::Stream* stream_ = nullptr;
};

}  // namespace weft::verbs::soft
