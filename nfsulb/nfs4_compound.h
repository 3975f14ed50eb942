#pragma once

#include <array>

#include "nfsulb/nfs4_types.h"

// COMPOUND and CB_COMPOUND: a procedure made of operations (RFC 7863, COMPOUND4args to CB_COMPOUND4res).
namespace weft::nfsulb {

inline constexpr std::uint32_t kIllegal = 10044;  // OP_ILLEGAL, OP_CB_ILLEGAL

inline constexpr Type compound_tag = xdr::noted<utf8string, Note::kLength>;
inline constexpr Type same_tag = xdr::bounded<utf8string, Bound::kLength>;
inline constexpr Type minorversion = xdr::noted<xdr::uint32, Note::kMinor>;

// argarray and resarray, of operations in the order of their numbers.
consteval Type operations_of(std::span<const Operation> operations) {
  Type type = {.kind = Kind::kOperations, .operations = operations};
  for (const Operation& operation : operations) {
    const std::uint8_t below = std::max(operation.arguments->depth, operation.results->depth);
    type.depth = std::max<std::uint8_t>(type.depth, static_cast<std::uint8_t>(below + 1));
  }
  return type;
}

// join makes one table out of several.
template <std::size_t... kSizes>
consteval auto join(const std::array<Operation, kSizes>&... tables) {
  std::array<Operation, (kSizes + ...)> joined{};
  auto next = joined.begin();
  ((next = std::copy(tables.begin(), tables.end(), next)), ...);
  return joined;
}

}  // namespace weft::nfsulb
