#include "tests/wire_v2/properties.h"

#include <algorithm>

#include "tests/wire_v2/tables.h"

namespace weft::wire_v2 {
namespace {

constexpr std::uint32_t kThreshold = 4096, kSegment = 1048576, kSegments = 16;
constexpr std::uint32_t kCel05Inline = 1, kWg07None = 0;

std::map<std::uint32_t, std::uint32_t> defaults_of(Profile profile) {
  if (profile == Profile::kCel05) return {{cel05::kRbsiz, kThreshold}, {cel05::kBrs, kCel05Inline}};
  return {{wg07::kSbsiz, kThreshold},
          {wg07::kRbsiz, kThreshold},
          {wg07::kRssiz, kSegment},
          {wg07::kRcsiz, kSegments},
          {wg07::kBrs, kWg07None}};
}

}  // namespace

Properties::Properties(Profile profile) : defaults_(defaults_of(profile)) {
  for (const auto& [id, value] : defaults_) values_[id] = {{0, value}};
}

void Properties::set(const Property& property, std::size_t event) {
  if (!defaults_.contains(property.id)) return;
  std::uint32_t value = defaults_.at(property.id);
  if (!property.value.empty()) {
    value = 0;
    for (const std::uint8_t octet : property.value) value = value << 8 | octet;
  }
  values_.at(property.id).emplace_back(event, value);
}

std::uint32_t Properties::most(std::uint32_t id, std::size_t received) const {
  std::uint32_t most = 0;
  for (const auto& [event, value] : values_.at(id)) most = event <= received ? value : std::max(most, value);
  return most;
}

}  // namespace weft::wire_v2
