#pragma once

#include <cstdint>
#include <vector>

#include "nfsulb/schema.h"
#include "nfsulb/testing/octets.h"

namespace weft::nfsulb::testing {

// Sample: the values of a Call that its Reply's size follows from; all others are as small as they can be.
struct Sample {
  std::uint32_t count = 0;
  std::uint32_t length = 0;
  std::uint32_t minor_version = 0;
  std::vector<std::uint32_t> bitmap;
};

inline Xdr sample_of(const Type& type, const Sample& values);

inline Xdr sample_of_array(const Type& type, const Sample& values) {
  if (type.note == Note::kCount) return Xdr().u32(values.count).fixed(std::size_t{values.count} * type.element->max);
  if (type.note == Note::kNone) return Xdr().u32(0);
  return Xdr().u32(static_cast<std::uint32_t>(values.bitmap.size())).words(values.bitmap);
}

// The arm with the most octets, which describes the largest Reply.
inline Xdr sample_of_union(const Type& type, const Sample& values) {
  Xdr largest;
  for (const Arm& arm : type.arms) {
    const Xdr candidate = Xdr().u32(arm.value).add(sample_of(*arm.type, values));
    if (candidate.size() > largest.size()) largest = candidate;
  }
  return largest;
}

inline Xdr sample_of(const Type& type, const Sample& values) {
  switch (type.kind) {
    case Kind::kFixed:
      if (type.note == Note::kCount) return Xdr().u32(values.count);
      if (type.note == Note::kMinor) return Xdr().u32(values.minor_version);
      return Xdr().fixed(type.max);
    case Kind::kOpaque: return Xdr().opaque(type.note == Note::kLength ? values.length : 0);
    case Kind::kArray: return sample_of_array(type, values);
    case Kind::kUnion: return sample_of_union(type, values);
    case Kind::kBounded: return sample_of(*type.element, values);
    case Kind::kStruct: break;
    default: return Xdr().u32(0);
  }
  Xdr all;
  for (const Type* field : type.fields) all.add(sample_of(*field, values));
  return all;
}

}  // namespace weft::nfsulb::testing
