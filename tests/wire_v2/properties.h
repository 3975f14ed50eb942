#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tests/wire_v2/message.h"

namespace weft::wire_v2 {

// Properties: the values that one end announced, and when. Until the other end must have heard the last value, it may
// act on either value.
class Properties {
 public:
  explicit Properties(Profile profile);

  // set: from the event of this number; an empty value is the default. Ids without a number for a value are passed
  // over.
  void set(const Property& property, std::size_t event);
  // most: the greatest value that an end may act on if it has received every message up to this event.
  std::uint32_t most(std::uint32_t id, std::size_t received) const;
  std::uint32_t last(std::uint32_t id) const { return values_.at(id).back().second; }

 private:
  std::map<std::uint32_t, std::uint32_t> defaults_;
  std::map<std::uint32_t, std::vector<std::pair<std::size_t, std::uint32_t>>> values_;
};

}  // namespace weft::wire_v2
