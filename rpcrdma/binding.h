#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "rpcrdma/bytes.h"

namespace weft::rpcrdma {

// ItemPlace is where a DDP-eligible item stands in an XDR stream from which it was taken out: `position` octets into
// the arguments (or results), `len` octets long by the count word before it.
struct ItemPlace {
  std::size_t position = 0;
  std::uint32_t len = 0;
};

// Binding is the Upper-Layer Binding of one program and version (RFC 8166 section 6): what may be reduced, and how
// large Replies can become. Plain functions over the procedure's XDR; nfsulb has those of the NFS family.
struct Binding {
  std::uint32_t program = 0;
  std::uint32_t version = 0;

  // find_argument: the place of the procedure's DDP-eligible argument in `reduced_args`, whose octets and padding are
  // missing there; nothing where the procedure has none or the arguments are garbage.
  std::optional<ItemPlace> (*find_argument)(std::uint32_t procedure, ConstBytes reduced_args) = nullptr;

  // has_eligible_result: whether a Write chunk may be used for a result of the procedure.
  bool (*has_eligible_result)(std::uint32_t procedure) = nullptr;

  // max_results: an upper bound, in octets, of the XDR results of a Call with these arguments, without the octets of
  // the eligible result; nothing where the procedure is unknown or the arguments are garbage.
  std::optional<std::size_t> (*max_results)(std::uint32_t procedure, ConstBytes args) = nullptr;
};

}  // namespace weft::rpcrdma
