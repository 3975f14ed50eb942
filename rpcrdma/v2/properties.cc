#include "rpcrdma/v2/properties.h"

#include <algorithm>
#include <utility>

#include "requirements/violates.h"

namespace weft::rpcrdma::v2 {

namespace {

constexpr std::size_t kMinPropvalLen = 8;  // an empty value

bool parse_word(const Propval& value, std::uint32_t& word) {
  xdr::XdrReader in(value.data);
  return in.u32(word) && in.at_end();
}

bool set_word(const Propval& value, std::uint32_t standard, std::uint32_t& word) {
  if (!value.data.empty()) return parse_word(value, word);
  word = standard;
  return true;
}

bool set_reverse(const Propval& value, const PropertyTable& table, ReverseSupport& reverse) {
  if (value.data.empty()) {
    reverse = table.defaults.reverse;
    return true;
  }
  std::uint32_t level = 0;
  if (!parse_word(value, level) || level >= table.reverse_levels.size()) return false;
  reverse = table.reverse_levels[level];
  return true;
}

bool set_host_auth(const Propval& value, std::optional<std::vector<std::uint8_t>>& host_auth) {
  if (value.data.empty()) {
    host_auth.reset();
    return true;
  }
  xdr::XdrReader in(value.data, xdr::Padding::kZero);
  ConstBytes octets;
  if (!in.opaque(octets) || !in.at_end()) return false;
  host_auth.emplace(octets.begin(), octets.end());
  return true;
}

bool set_property(const Propval& value, Property property, const PropertyTable& table, Properties& properties) {
  const Properties& defaults = table.defaults;
  switch (property) {
    case Property::kSendSize: return set_word(value, defaults.send_size, properties.send_size);
    case Property::kReceiveSize: return set_word(value, defaults.receive_size, properties.receive_size);
    case Property::kSegmentSize: return set_word(value, defaults.segment_size, properties.segment_size);
    case Property::kSegmentCount: return set_word(value, defaults.segment_count, properties.segment_count);
    case Property::kReverse: return set_reverse(value, table, properties.reverse);
    case Property::kHostAuth: return set_host_auth(value, properties.host_auth);
  }
  return false;
}

std::uint32_t wire_level(ReverseSupport reverse, const PropertyTable& table) {
  const auto above = std::ranges::upper_bound(table.reverse_levels, reverse);
  const auto num_not_above = above - table.reverse_levels.begin();
  return num_not_above == 0 ? 0 : static_cast<std::uint32_t>(num_not_above - 1);
}

// Of every property but host_auth.
std::uint32_t word_of(const Properties& properties, Property property, const PropertyTable& table) {
  switch (property) {
    case Property::kSendSize: return properties.send_size;
    case Property::kReceiveSize: return properties.receive_size;
    case Property::kSegmentSize: return properties.segment_size;
    case Property::kSegmentCount: return properties.segment_count;
    case Property::kReverse: return wire_level(properties.reverse, table);
    case Property::kHostAuth: break;
  }
  return 0;
}

}  // namespace

bool Propsubset::contains(std::size_t position) const {
  return position / 32 < words.size() && (words[position / 32] >> (position % 32) & 1) != 0;
}

void Propsubset::insert(std::size_t position) {
  if (position / 32 >= words.size()) words.resize(position / 32 + 1);
  words[position / 32] |= std::uint32_t{1} << (position % 32);
}

HeaderError parse_propset(xdr::XdrReader& in, Propset& set) {
  std::uint32_t count = 0;
  if (!in.u32(count)) return HeaderError::kTruncated;
  if (violates("R2-7.2-11", count > in.remaining() / kMinPropvalLen)) return HeaderError::kCount;
  if (violates("R2-8.4-1", count > kMaxProperties)) return HeaderError::kCount;
  set.resize(count);
  for (Propval& value : set) {
    if (in.remaining() < kMinPropvalLen || !in.u32(value.which)) return HeaderError::kTruncated;
    ConstBytes data;
    if (violates("R2-6.1.1-4 W2-5.1-3", !in.opaque(data))) return HeaderError::kPropertyValue;
    value.data.assign(data.begin(), data.end());
  }
  return HeaderError::kNone;
}

HeaderError parse_propsubset(xdr::XdrReader& in, Propsubset& subset) {
  std::uint32_t count = 0;
  if (!in.u32(count)) return HeaderError::kTruncated;
  if (violates("R2-7.2-11", count > in.remaining() / 4)) return HeaderError::kCount;
  subset.words.resize(count);
  for (std::uint32_t& word : subset.words) {
    if (!in.u32(word)) return HeaderError::kTruncated;
  }
  return HeaderError::kNone;
}

void emit_propset(xdr::XdrWriter& out, const Propset& set) {
  out.u32(static_cast<std::uint32_t>(set.size()));
  for (const Propval& value : set) {
    out.u32(value.which);
    out.opaque(value.data);
  }
}

void emit_propsubset(xdr::XdrWriter& out, const Propsubset& subset) {
  out.u32(static_cast<std::uint32_t>(subset.words.size()));
  for (const std::uint32_t word : subset.words) out.u32(word);
}

HeaderError apply(const Propset& set, const PropertyTable& table, Properties& properties) {
  Properties after = properties;
  for (const Propval& value : set) {
    const auto id = std::ranges::find(table.ids, value.which, &PropertyId::which);
    if (id == table.ids.end()) continue;  // R2-6.1.1-7, W2-5.1-5
    const bool is_valid = set_property(value, id->property, table, after);
    if (violates("R2-6.1.1-5 R2-6.1.1-6 W2-5.1-3 W2-5.1-4", !is_valid)) return HeaderError::kPropertyValue;
  }
  properties = std::move(after);
  return HeaderError::kNone;
}

Propset make_propset(const Properties& properties, const PropertyTable& table) {
  Propset set;
  for (const PropertyId& id : table.ids) {
    if (id.property == Property::kHostAuth && !properties.host_auth) continue;
    xdr::XdrWriter out(set.emplace_back(Propval{.which = id.which}).data);
    if (id.property == Property::kHostAuth) {
      out.opaque(*properties.host_auth);
    } else {
      out.u32(word_of(properties, id.property, table));
    }
  }
  return set;
}

}  // namespace weft::rpcrdma::v2
