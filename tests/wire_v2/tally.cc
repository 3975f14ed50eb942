#include "tests/wire_v2/tally.h"

#include "tests/wire_v2/tables.h"

namespace weft::wire_v2 {

void Tally::add(const Message& message) {
  auto& counts = counts_[message.profile];
  if (const HeaderType* type = header_type(message.profile, message.type)) ++counts[type->name];
  if (message.kind == Kind::kError) {
    if (const ErrorCode* code = error_code(message.profile, message.error.code)) ++counts[code->name];
  }
  for (const Property& property : message.properties) {
    for (const PropertyId& known : property_ids(message.profile)) {
      if (known.id == property.id) ++counts[known.name];
    }
  }
}

void Tally::add(const Tally& tally) {
  for (const auto& [profile, counts] : tally.counts_) {
    for (const auto& [name, count] : counts) counts_[profile][name] += count;
  }
}

const std::map<std::string, std::size_t>& Tally::occurred(Profile profile) const {
  static const std::map<std::string, std::size_t> kNone;
  const auto counts = counts_.find(profile);
  return counts == counts_.end() ? kNone : counts->second;
}

std::size_t Tally::count(Profile profile, const std::string& name) const {
  const auto& counts = occurred(profile);
  const auto count = counts.find(name);
  return count == counts.end() ? 0 : count->second;
}

std::vector<std::string> Tally::missing(Profile profile) const {
  std::vector<std::string> names;
  const auto look = [&](const char* name) {
    if (count(profile, name) == 0) names.emplace_back(name);
  };
  for (const HeaderType& type : header_types(profile)) look(type.name);
  for (const ErrorCode& code : error_codes(profile)) look(code.name);
  for (const PropertyId& property : property_ids(profile)) look(property.name);
  return names;
}

}  // namespace weft::wire_v2
