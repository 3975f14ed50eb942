#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rpcrdma/bytes.h"

namespace weft::rpcrdma {

// EligibleItem is one DDP-eligible data item in the arguments or results of a procedure: opaque octets behind their
// count word.
struct EligibleItem {
  // Where its octets stand in the stream as if nothing had been taken out of it, each item with its padding: the
  // Position of a Read chunk (RFC 8166 section 4.4.5), less the length of the RPC header.
  std::size_t position = 0;
  std::size_t offset = 0;  // where they stand, or are missing, in the stream that was walked
  std::uint32_t len = 0;   // octets by the count word, without padding
  bool reduced = false;    // missing, padding included
};

// Walked: how far a walk over a stream came.
enum class Walked : std::uint8_t {
  kWhole,
  kUnknown,  // to a procedure or operation that the binding does not know: what was found before it holds
  kGarbage,  // not what the program's definition allows, or octets are left over
};

// ReplyLimits: what a client knows about the Replies it can get that does not stand in the Call.
struct ReplyLimits {
  std::size_t max_text = 1024;  // octets of a path or of another text without a limit of its own
  std::size_t max_unbounded =
      65536;                  // octets of any other item without one: an ACL, a layout, an attribute list's rest
  std::size_t max_reply = 0;  // of a whole Reply by the session (NFSv4.1 ca_maxresponsesize); 0: not known
};

// ReplyBound is the largest Reply that a Call can get, in octets of XDR results.
struct ReplyBound {
  std::size_t rest = 0;            // without the octets and padding of the eligible results
  std::vector<std::size_t> items;  // octets of each eligible result, in the order that Write chunks follow
  bool is_estimate = false;        // something unbounded is in it
  bool may_retry = false;          // short Reply chunk retry is allowed (RFC 8267 sections 5.2 and 6.2.1)
  bool idempotent = false;         // to run it twice does no harm: its Reply need not be remembered
  // Its Call may be sent once more after ERR_CHUNK: it does no harm twice, and how long its Reply is rests on the
  // server's good conduct.
  bool may_retry_once = false;
};

// Binding is the Upper-Layer Binding of one program and version (RFC 8166 section 6): what may be reduced, and how
// large Replies can become. Plain functions over the procedure's XDR, which may be any octets at all; nfsulb has those
// of the NFS family and the means to describe another program by its types. `items` and `bound` are filled from empty,
// so that callers can use the same ones again; of garbage nothing is said, they are empty then. A function that is not
// set stands for a program without anything to reduce in that direction.
struct Binding {
  std::uint32_t program = 0;
  std::uint32_t version = 0;

  // walk_arguments finds the eligible items of a Call. `reduced`: the positions, ascending, of those that are missing
  // in `args`; kGarbage where one of them is no eligible item's.
  Walked (*walk_arguments)(std::uint32_t procedure, ConstBytes args, std::span<const std::size_t> reduced,
                           std::vector<EligibleItem>& items) = nullptr;

  // walk_results finds those of a successful Reply: one entry for each operation that can have an eligible result, in
  // the order in which Write chunks belong to them (RFC 8267 section 6.4.1), nothing where this one has none, because
  // it failed. `reduced`: the octets that each Write chunk brought, 0 for an item that is inline; entries beyond the
  // last operation have to be 0, and what a chunk brought has to be what the count word says.
  Walked (*walk_results)(std::uint32_t procedure, ConstBytes results, std::span<const std::uint32_t> reduced,
                         std::vector<std::optional<EligibleItem>>& items) = nullptr;

  // bound_reply: kUnknown leaves what could be said of the operations before.
  Walked (*bound_reply)(std::uint32_t procedure, ConstBytes args, std::span<const std::size_t> reduced,
                        const ReplyLimits& limits, ReplyBound& bound) = nullptr;

  // max_results: that bound for CallSpec::max_results; 0 where the binding knows none.
  std::size_t max_results(std::uint32_t procedure, ConstBytes args, std::span<const std::size_t> reduced = {}) const {
    ReplyBound bound;
    if (bound_reply == nullptr || bound_reply(procedure, args, reduced, {}, bound) == Walked::kGarbage) return 0;
    return bound.rest;
  }
};

}  // namespace weft::rpcrdma
