// The walker of the Upper-Layer Bindings: two octets say which program and procedure, and whether they are arguments or
// results; a third which eligible items are missing; then XDR. For any octets, items lie where the walk has been.
// Taking an item out, or putting it back, changes nothing else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "nfsulb/bindings.h"
#include "rpcrdma/xdr/xdr.h"

namespace {

using weft::ConstBytes;
using weft::rpcrdma::EligibleItem;
using weft::rpcrdma::Walked;
using weft::rpcrdma::xdr::round_up;
using Octets = std::vector<std::uint8_t>;

void require(bool condition) {
  if (!condition) std::abort();
}

struct Input {
  const weft::rpcrdma::Binding* binding;
  std::uint32_t procedure;
  std::uint8_t missing;  // bit i: the item i is taken out
  weft::ConstBytes xdr;

  bool takes_out(std::size_t item) const { return item < 8 && (missing >> item & 1) != 0; }
};

void check_items(const std::vector<EligibleItem>& items, std::size_t size) {
  std::size_t end = 0, taken_out = 0;
  for (const EligibleItem& item : items) {
    require(item.offset >= end + 4 && item.offset <= size);
    require(item.position == item.offset + taken_out);
    if (item.reduced) {
      taken_out += round_up(item.len);
      end = item.offset;
    } else {
      end = item.offset + round_up(item.len);
    }
    require(end <= size);
  }
}

// without takes the octets of some items out.
Octets without(weft::ConstBytes xdr, const std::vector<EligibleItem>& items, const Input& input) {
  Octets left;
  std::size_t done = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!input.takes_out(i)) continue;
    left.insert(left.end(), xdr.begin() + static_cast<std::ptrdiff_t>(done),
                xdr.begin() + static_cast<std::ptrdiff_t>(items[i].offset));
    done = items[i].offset + round_up(items[i].len);
  }
  left.insert(left.end(), xdr.begin() + static_cast<std::ptrdiff_t>(done), xdr.end());
  return left;
}

void walk_arguments(const Input& input) {
  std::vector<EligibleItem> items;
  const Walked walked = input.binding->walk_arguments(input.procedure, input.xdr, {}, items);
  require(walked != Walked::kGarbage || items.empty());
  check_items(items, input.xdr.size());
  weft::rpcrdma::ReplyBound bound;
  const weft::rpcrdma::ReplyLimits limits;
  require(input.binding->bound_reply(input.procedure, input.xdr, {}, limits, bound) == walked);
  require(walked == Walked::kWhole || (!bound.may_retry && !bound.may_retry_once));
  const bool idempotent = input.binding->is_idempotent(input.procedure, input.xdr, {});
  require(walked != Walked::kUnknown || !idempotent);
  if (walked != Walked::kWhole) return;
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (input.takes_out(i)) positions.push_back(items[i].position);
  }
  const Octets reduced = without(input.xdr, items, input);
  std::vector<EligibleItem> again;
  require(input.binding->walk_arguments(input.procedure, reduced, positions, again) == Walked::kWhole);
  check_items(again, reduced.size());
  require(again.size() == items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    require(again[i].position == items[i].position && again[i].len == items[i].len);
  }
  weft::rpcrdma::ReplyBound same;
  require(input.binding->bound_reply(input.procedure, reduced, positions, limits, same) == Walked::kWhole);
  require(same.rest == bound.rest && same.items == bound.items);
  require(input.binding->is_idempotent(input.procedure, reduced, positions) == idempotent);
}

void walk_results(const Input& input) {
  std::vector<std::optional<EligibleItem>> entries;
  const Walked walked = input.binding->walk_results(input.procedure, input.xdr, {}, entries);
  require(walked != Walked::kGarbage || entries.empty());
  std::vector<EligibleItem> items;
  std::vector<std::uint32_t> brought;
  for (const auto& entry : entries) {
    const bool out = entry && input.takes_out(items.size());
    brought.push_back(out ? entry->len : 0);
    if (entry) items.push_back(*entry);
  }
  check_items(items, input.xdr.size());
  if (walked != Walked::kWhole) return;
  const Octets reduced = without(input.xdr, items, input);
  std::vector<std::optional<EligibleItem>> again;
  require(input.binding->walk_results(input.procedure, reduced, brought, again) == Walked::kWhole);
  require(again.size() == entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    require(again[i].has_value() == entries[i].has_value());
    require(!again[i] || again[i]->position == entries[i]->position);
    require(!again[i] || again[i]->reduced == (brought[i] != 0));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const auto programs = weft::nfsulb::bound_programs();
  const weft::rpcrdma::Binding& binding = programs[data[0] % programs.size()].binding;
  const Input input = {&binding, std::uint32_t{data[1]} >> 1, data[2], weft::ConstBytes(data, size).subspan(3)};
  if ((data[1] & 1) == 0) {
    walk_arguments(input);
  } else {
    walk_results(input);
  }
  return 0;
}
