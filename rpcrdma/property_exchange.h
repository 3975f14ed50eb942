#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "rpcrdma/properties.h"

namespace weft::rpcrdma {

// PropertyExchange: one end's part in telling each other the properties of both ends of a connection. Every profile
// with properties has its own (Profile::make_exchange). It does no I/O: the Link sends what it returns. One thread.
//
// A peer makes it hold one set of properties, no longer than a message.
class PropertyExchange {
 public:
  explicit PropertyExchange(Properties own) : own_(std::move(own)) {}
  virtual ~PropertyExchange() = default;
  PropertyExchange(const PropertyExchange&) = delete;
  PropertyExchange& operator=(const PropertyExchange&) = delete;

  // A whole message of this end. The Link writes its credit word.
  using Octets = std::vector<std::uint8_t>;
  // open: the message that tells this end's properties; empty if it was told before.
  virtual Octets open() = 0;
  // Whether the peer has begun to tell its properties, and they go on in another message.
  virtual bool is_between() const { return false; }
  // Whether this message is for take(), and not for an engine.
  virtual bool is_mine(ConstBytes message) const = 0;
  // Taken: what follows from a message.
  struct Taken {
    Octets answer = {};      // empty: none
    bool changed = false;    // peer() has other values, or was empty
    const char* fault = "";  // the fault of the message, for the log; "": none
  };
  virtual Taken take(ConstBytes message) = 0;
  // request asks the peer for other values of its properties, those in which `wanted` differs from peer(). A property
  // that the peer did not tell, or called constant, is left out. A request for less holds at once: then `changed` is
  // set. The answer is empty if the version has no requests, the peer has not told its properties, a request waits for
  // its answer, the peer has refused requests as such, or nothing is left to ask for.
  virtual Taken request(const Properties& /*wanted*/) { return {}; }
  // update: this end's properties are `now`. The peer must be able to go on: Receives may have become longer, all of
  // them, and never shorter. Empty if the version has no updates, nothing differs, this end has not told its
  // properties, or it has called one of the different ones constant. No Link calls it, since the properties of Weft's
  // ends stay the same during a connection. It is here for R2-6.2.1-6 and the sender's part of R2-6.3.4-1.
  virtual Octets update(const Properties& /*now*/) { return {}; }

  const Properties& own() const { return own_; }
  // Empty until the peer has told its properties.
  const std::optional<Properties>& peer() const { return peer_; }

 protected:
  Properties own_;
  std::optional<Properties> peer_;
};

}  // namespace weft::rpcrdma
