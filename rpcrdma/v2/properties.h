#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rpcrdma/properties.h"
#include "rpcrdma/v2/header_error.h"
#include "rpcrdma/xdr/xdr.h"

// Transport properties of version 2 (cel05 section 6, wg07 section 5): the lists as they travel. The drafts number the
// properties differently: a PropertyTable is one draft's numbering.
namespace weft::rpcrdma::v2 {

inline constexpr std::size_t kMaxProperties = 512;  // of one message: more than 4096 octets have

// Propval: rpcrdma2_propval. which may be unknown. data is the XDR encoding of the value; empty means the default.
struct Propval {
  std::uint32_t which = 0;
  std::vector<std::uint8_t> data = {};
  friend bool operator==(const Propval&, const Propval&) = default;
};

using Propset = std::vector<Propval>;

// Propsubset: rpcrdma2_propsubset. It selects elements of a Propset by their position there. Positions beyond that
// Propset have no meaning. words is as it stands on the wire and may end with zeros.
struct Propsubset {
  std::vector<std::uint32_t> words = {};

  bool contains(std::size_t position) const;
  void insert(std::size_t position);
  friend bool operator==(const Propsubset&, const Propsubset&) = default;
};

// parse_propset carries properties that no table knows. kPropertyValue: a value that ends beyond the message.
HeaderError parse_propset(xdr::XdrReader& in, Propset& set);
HeaderError parse_propsubset(xdr::XdrReader& in, Propsubset& subset);
void emit_propset(xdr::XdrWriter& out, const Propset& set);
void emit_propsubset(xdr::XdrWriter& out, const Propsubset& subset);

// Property: a member of Properties.
enum class Property : std::uint8_t { kSendSize, kReceiveSize, kSegmentSize, kSegmentCount, kReverse, kHostAuth };

struct PropertyId {
  std::uint32_t which = 0;
  Property property = Property::kReceiveSize;
};

// PropertyTable: the properties of one draft. The tables that it points to outlive it.
struct PropertyTable {
  std::span<const PropertyId> ids;
  std::span<const ReverseSupport> reverse_levels;  // in ascending order; the index is the value on the wire
  Properties defaults;
};

// apply changes `properties` by a received set: unknown properties are skipped, and the later of two values of one
// property stands. kPropertyValue: a known property has a malformed value, and nothing was changed.
HeaderError apply(const Propset& set, const PropertyTable& table, Properties& properties);

// make_propset tells every property that the table knows, host_auth if there is one. A level of reverse support that
// the table lacks becomes the next lower one.
Propset make_propset(const Properties& properties, const PropertyTable& table);

}  // namespace weft::rpcrdma::v2
