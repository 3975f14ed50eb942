#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace weft::rpcrdma {

// EligibleItem is one DDP-eligible data item in the arguments or results of a procedure: opaque octets behind their
// count word.
struct EligibleItem {
  // Offset of the item's octets in the unreduced stream, where each item stands with its padding. This is the Position
  // of a Read chunk (RFC 8166 section 4.4.5), less the length of the RPC header.
  std::size_t position = 0;
  std::size_t offset = 0;  // offset in the walked stream where the octets stand or are missing
  std::uint32_t len = 0;   // octets by the count word, without padding
  bool reduced = false;    // missing, padding included
};

// Walked: how far a walk over a stream came.
enum class Walked : std::uint8_t {
  kWhole,
  kUnknown,  // up to a procedure or operation that the binding does not know; the items found before it are valid
  kGarbage,  // the program's definition does not allow the stream, or octets are left over
};

// ReplyLimits: limits of a Call's Reply that the client knows, but that do not stand in the Call.
struct ReplyLimits {
  std::size_t max_text = 1024;  // octets of a path or another text without a limit of its own
  std::size_t max_unbounded =
      65536;  // octets of any other item without one: an ACL, a layout, an attribute list's rest
  // Octets of a whole Reply by the session, RPC header included (NFSv4.1 ca_maxresponsesize, RFC 8881 section 18.36);
  // 0: not known.
  std::size_t max_reply = 0;
  // Octets of the Reply's verifier body, which max_reply includes too: CallSpec::max_verf; 400 with RPCSEC_GSS.
  std::size_t max_verf = 0;
};

// ReplyBound is the largest Reply that a Call can get, in octets of XDR results.
struct ReplyBound {
  std::size_t rest = 0;            // without the octets and padding of the eligible results
  std::vector<std::size_t> items;  // octets of each eligible result, in the order that Write chunks follow
  bool is_estimate = false;        // the Reply contains an unbounded item
  bool may_retry = false;          // short Reply chunk retry is allowed (RFC 8267 sections 5.2 and 6.2.1)
  // The Call may be sent once more after ERR_CHUNK: to run it twice does no harm, and the length of its Reply depends
  // on the server's good conduct.
  bool may_retry_once = false;
};

// Binding is the Upper-Layer Binding of one program and version (RFC 8166 section 6): which items may be reduced, and
// how large Replies can become. Plain functions over the procedure's XDR, which may be any octets at all. nfsulb has
// the bindings of the NFS family and the means to describe another program by its types. Each function clears `items`
// or `bound` before it fills them, so callers can use the same objects again. After kGarbage they are empty. A function
// that is not set means that the program has no items to reduce in that direction.
struct Binding {
  std::uint32_t program = 0;
  std::uint32_t version = 0;

  // walk_arguments finds the eligible items of a Call. `reduced`: the positions, ascending, of the items that are
  // missing in `args`. kGarbage if one of these positions does not belong to an eligible item.
  Walked (*walk_arguments)(std::uint32_t procedure, ConstBytes args, std::span<const std::size_t> reduced,
                           std::vector<EligibleItem>& items) = nullptr;

  // walk_results finds the eligible items of a successful Reply. `items` gets one entry for each operation that can
  // have an eligible result, in the order in which Write chunks belong to the operations (RFC 8267 section 6.4.1). The
  // entry is empty if the operation has no item because it failed. `reduced`: the octets that each Write chunk brought,
  // 0 for an item that is inline. Entries beyond the last operation have to be 0. The octets of a chunk have to equal
  // the count word. For results of another end: a service names the items of its own results (ServedReply::items).
  Walked (*walk_results)(std::uint32_t procedure, ConstBytes results, std::span<const std::uint32_t> reduced,
                         std::vector<std::optional<EligibleItem>>& items) = nullptr;

  // bound_reply bounds the Reply of a Call. kUnknown: `bound` covers the operations before the unknown one.
  Walked (*bound_reply)(std::uint32_t procedure, ConstBytes args, std::span<const std::size_t> reduced,
                        const ReplyLimits& limits, ReplyBound& bound) = nullptr;

  // has_result_items tells whether a successful Reply of the procedure can have eligible items.
  bool (*has_result_items)(std::uint32_t procedure) = nullptr;

  // is_idempotent tells whether it does no harm to run a Call twice, so that its Reply need not be remembered. It looks
  // at the arguments only where they decide, as the operations of a COMPOUND do; false for a procedure or an operation
  // that the binding does not know, and if the arguments decide and are garbage.
  bool (*is_idempotent)(std::uint32_t procedure, ConstBytes args, std::span<const std::size_t> reduced) = nullptr;

  // max_results: the bound for CallSpec::max_results; 0 if the binding knows no bound.
  std::size_t max_results(std::uint32_t procedure, ConstBytes args, std::span<const std::size_t> reduced = {}) const {
    ReplyBound bound;
    if (bound_reply == nullptr || bound_reply(procedure, args, reduced, {}, bound) == Walked::kGarbage) return 0;
    return bound.rest;
  }
};

}  // namespace weft::rpcrdma
