#pragma once

#include <cstddef>
#include <span>

#include "base/bytes.h"
#include "base/time.h"
#include "rdmap/stream_events.h"

namespace weft::rdmap {

// Observer watches one Stream (StreamConfig::observer): traces and statistics are made of it. It hears of everything in
// the order in which it happens, in the thread of the stream. Views are valid during the call. It never calls the
// stream. The probes of docs/probes.md stand at the same places.
class Observer {
 public:
  // The first n octets of these buffers arrived, and the stream is about to read them.
  virtual void on_rx(std::span<const MutBytes> buffers, std::size_t n, TimePoint now) = 0;
  // The socket took the first n octets of these buffers.
  virtual void on_tx(std::span<const ConstBytes> buffers, std::size_t n, TimePoint now) = 0;
  // The stream took this work request.
  virtual void on_post(const SendWr& request) = 0;
  // An error or a Terminate of either side ended the stream: the octets that arrived last, or a request of our own, are
  // the reason. If the stream sends a Terminate, it is the last FPDU of on_tx. Closed, an event, may come much later.
  virtual void on_failure(const Closed& why) = 0;
  // The driver takes this event: a completion, or a change of the connection's state.
  virtual void on_event(const Event& event) = 0;

 protected:
  ~Observer() = default;
};

}  // namespace weft::rdmap
