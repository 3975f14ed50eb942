#pragma once

#include <cstddef>
#include <vector>

#include "rpcrdma/call_form.h"
#include "rpcrdma/xdr/xdr.h"

// The items of a Call as a Binding sees them.
namespace weft::rpcrdma {

// The items of a Call that have octets. A binding sees only these items.
inline std::vector<const ArgumentItem*> filled_items(const CallSpec& spec) {
  std::vector<const ArgumentItem*> items;
  for (const ArgumentItem& item : spec.items) {
    if (len_of(item.data) != 0) items.push_back(&item);
  }
  return items;
}

// Positions of the items as a Binding counts them: in the unreduced arguments.
inline std::vector<std::size_t> positions_of(const std::vector<const ArgumentItem*>& items) {
  std::vector<std::size_t> positions;
  std::size_t before = 0;
  for (const ArgumentItem* item : items) {
    positions.push_back(item->position + before);
    before += xdr::round_up(len_of(item->data));
  }
  return positions;
}

}  // namespace weft::rpcrdma
