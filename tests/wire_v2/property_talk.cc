#include "tests/wire_v2/property_talk.h"

#include <algorithm>

#include "tests/wire_v2/tables.h"

namespace weft::wire_v2 {
namespace {

// Position N is bit N mod 32 of word N div 32, bit 0 the least significant (R2-6.1.1-9).
bool holds(const std::vector<std::uint32_t>& subset, std::size_t position) {
  return position / 32 < subset.size() && (subset[position / 32] >> (position % 32) & 1) != 0;
}

const Property* find(const std::vector<Property>& set, std::uint32_t id) {
  const auto at = std::ranges::find(set, id, &Property::id);
  return at == set.end() ? nullptr : &*at;
}

}  // namespace

void PropertyTalk::on_message(bool from_client, const Message& message, Properties& own, std::size_t event,
                              const Report& report) {
  Side& side = from_client ? client_ : server_;
  Side& other = from_client ? server_ : client_;
  switch (message.type) {
    case cel05::kConnprop:
      side.start = message.properties;
      for (std::size_t i = 0; i < message.properties.size(); ++i) {
        own.set(message.properties[i], event);
        if (holds(message.subsets.at(0), i)) side.fixed.insert(message.properties[i].id);
      }
      return;
    case cel05::kReqprop: side.wanted.emplace(message.xid, message.properties); return;
    case cel05::kResprop: return on_response(other, message, own, event, report);
    default: return on_update(side, message, own, event, report);
  }
}

void PropertyTalk::on_update(const Side& side, const Message& message, Properties& own, std::size_t event,
                             const Report& report) {
  for (const Property& property : message.properties) {
    const std::uint32_t id = property.id;
    if (side.start && find(*side.start, id) == nullptr) {
      report("R2-6.3.1-6", "RDMA2_UPDPROP changes a property that RDMA2_CONNPROP left out");
    } else if (side.fixed.contains(id)) {
      report("R2-6.3.1-4", "RDMA2_UPDPROP changes a property that was promised not to change");
    }
    const bool has_size = id == cel05::kRbsiz;
    const std::uint32_t before = has_size ? own.last(id) : 0;
    own.set(property, event);
    if (has_size && own.last(id) < before) report("R2-6.2.1-6", "RDMA2_UPDPROP makes the Receive buffers smaller");
  }
}

void PropertyTalk::on_response(Side& asker, const Message& message, Properties& own, std::size_t event,
                               const Report& report) {
  const auto request = asker.wanted.find(message.xid);
  if (request == asker.wanted.end()) return report("R2-6.3.3-2", "RDMA2_RESPROP answers no RDMA2_REQPROP");
  const std::vector<Property> wanted = std::move(request->second);
  asker.wanted.erase(request);
  bool overlap = false;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool done = holds(message.subsets.at(0), i), rejected = holds(message.subsets.at(1), i);
    const Property* changed = find(message.properties, wanted[i].id);
    overlap |= int{done} + int{rejected} + int{changed != nullptr} > 1;
    // The end that asked goes by it already (R2-6.2.1-7).
    if (done) own.set(wanted[i], 0);
    if (changed != nullptr) own.set(*changed, event);
  }
  if (overlap) report("R2-6.3.3-8", "the sets of RDMA2_RESPROP overlap");
  const bool asked = std::ranges::all_of(
      message.properties, [&](const Property& property) { return find(wanted, property.id) != nullptr; });
  if (!asked) report("R2-6.3.3-6", "rdma_other has a property that the request did not name");
}

std::optional<std::uint32_t> PropertyTalk::limit(bool of_client) const {
  std::optional<std::uint32_t> least;
  for (const auto& [xid, wanted] : (of_client ? client_ : server_).wanted) {
    const Property* size = find(wanted, cel05::kRbsiz);
    if (size == nullptr) continue;
    Properties asked(Profile::kCel05);
    asked.set(*size, 0);
    least = std::min(least.value_or(UINT32_MAX), asked.last(cel05::kRbsiz));
  }
  return least;
}

void PropertyTalk::on_error(bool to_client, std::uint32_t xid) {
  auto& wanted = (to_client ? client_ : server_).wanted;
  if (const auto request = wanted.find(xid); request != wanted.end()) wanted.erase(request);
}

}  // namespace weft::wire_v2
