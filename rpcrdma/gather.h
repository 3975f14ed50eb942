#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "verbs-shim/api/types.h"

// What a message is gathered from.
namespace weft::rpcrdma {

// kZeros are the octets of a roundup (RFC 4506 section 4.10): the first xdr::padding() of them.
inline constexpr std::uint8_t kZeros[4] = {};

// sge_of names `octets` to a work request; they lie in memory registered under `lkey`.
inline verbs::Sge sge_of(ConstBytes octets, std::uint32_t lkey) {
  return {reinterpret_cast<std::uintptr_t>(octets.data()), static_cast<std::uint32_t>(octets.size()), lkey};
}

}  // namespace weft::rpcrdma
