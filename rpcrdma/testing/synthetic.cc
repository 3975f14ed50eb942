#include "rpcrdma/testing/synthetic.h"

#include <optional>
#include <span>

namespace weft::rpcrdma::testing {

namespace {

constexpr std::uint32_t kRowLen = 12;

// Walk goes through a stream from which items may be missing; `missing` says of the next item, by its position and
// length, whether it is.
template <typename Missing>
class Walk {
 public:
  Walk(ConstBytes octets, Missing missing) : in_(octets), missing_(missing) {}

  bool word() {
    std::uint32_t value = 0;
    return in_.u32(value);
  }
  // An item behind its count of elements of `size` octets.
  bool item(std::uint32_t size = 1) {
    std::uint32_t count = 0;
    if (!in_.u32(count) || count > 0xffffff) return false;
    EligibleItem item{in_.position() + removed_, in_.position(), count * size, false};
    const auto missing = missing_(item);
    if (!missing) return false;
    item.reduced = *missing;
    if (item.reduced) {
      removed_ += xdr::round_up(std::size_t{item.len});
    } else if (!in_.skip(xdr::round_up(std::size_t{item.len}))) {
      return false;
    }
    items.emplace_back(item);
    return true;
  }
  bool optional_item() {
    bool present = false;
    return in_.boolean(present) && (!present || item());
  }
  bool one() {
    std::uint32_t status = 0;
    if (!in_.u32(status)) return false;
    if (status == 0) return item();
    items.emplace_back();
    return no_item();
  }
  bool many() {
    std::uint32_t count = 0;
    if (!in_.u32(count) || count > 1000) return false;
    for (; count > 0; --count) {
      if (!one()) return false;
    }
    return true;
  }
  bool no_item() {
    if constexpr (requires { missing_.skip(); }) return missing_.skip();
    return true;
  }
  bool plain() {
    ConstBytes ignored;
    return word() && in_.opaque(ignored) && word() && in_.opaque(ignored) && word();
  }
  bool run(std::uint32_t procedure) {
    switch (procedure) {
      case kPair: return word() && item() && word() && item() && word() && in_.at_end();
      case kTable: return item(kRowLen) && word() && in_.at_end();
      case kOption: return optional_item() && optional_item() && word() && in_.at_end();
      case kMany: return many() && in_.at_end();
      case kPlain: return plain() && in_.at_end();
      default: return in_.at_end();
    }
  }
  Missing& missing() { return missing_; }

  std::vector<std::optional<EligibleItem>> items;

 private:
  xdr::XdrReader in_;
  std::size_t removed_ = 0;
  Missing missing_;
};

// Arguments are found by position.
struct ByPosition {
  std::span<const std::size_t> reduced;

  std::optional<bool> operator()(const EligibleItem& item) {
    if (reduced.empty() || item.position < reduced.front()) return false;
    if (item.position > reduced.front()) return std::nullopt;
    reduced = reduced.subspan(1);
    return true;
  }
};

// Results are found by the length that the chunk brought.
struct ByLength {
  std::span<const std::uint32_t> reduced;

  std::optional<bool> operator()(const EligibleItem& item) {
    const std::uint32_t len = next();
    if (len == 0) return false;
    if (len != item.len) return std::nullopt;
    return true;
  }
  bool skip() { return next() == 0; }
  std::uint32_t next() {
    if (reduced.empty()) return 0;
    const std::uint32_t len = reduced.front();
    reduced = reduced.subspan(1);
    return len;
  }
  bool rest_is_empty() const {
    for (const std::uint32_t len : reduced) {
      if (len != 0) return false;
    }
    return true;
  }
};

Walked walk_synthetic_arguments(std::uint32_t procedure, ConstBytes args, std::span<const std::size_t> reduced,
                                std::vector<EligibleItem>& items) {
  Walk walk(args, ByPosition{reduced});
  if (!walk.run(procedure) || !walk.missing().reduced.empty()) return Walked::kGarbage;
  for (const auto& item : walk.items) {
    if (item) items.push_back(*item);
  }
  return Walked::kWhole;
}

Walked walk_synthetic_results(std::uint32_t procedure, ConstBytes results, std::span<const std::uint32_t> reduced,
                              std::vector<std::optional<EligibleItem>>& items) {
  Walk walk(results, ByLength{reduced});
  if (!walk.run(procedure) || !walk.missing().rest_is_empty()) return Walked::kGarbage;
  items = std::move(walk.items);
  return Walked::kWhole;
}

bool has_synthetic_result_items(std::uint32_t procedure) {
  return procedure >= kPair && procedure <= kMany;
}

}  // namespace

const Binding& synthetic_binding() {
  static constexpr Binding kBinding{.program = kSyntheticProgram,
                                    .version = kSyntheticVersion,
                                    .walk_arguments = walk_synthetic_arguments,
                                    .walk_results = walk_synthetic_results,
                                    .has_result_items = has_synthetic_result_items};
  return kBinding;
}

Message& Message::word(std::uint32_t value) {
  xdr::XdrWriter(whole).u32(value);
  xdr::XdrWriter(without).u32(value);
  return *this;
}

Message& Message::elements(std::uint32_t count, const Octets& octets) {
  word(count);
  items.push_back({whole.size(), without.size(), octets});
  xdr::XdrWriter(whole).opaque_fixed(octets);
  return *this;
}

Message& Message::item(const Octets& octets) {
  return elements(static_cast<std::uint32_t>(octets.size()), octets);
}

Message& Message::opaque(const Octets& octets) {
  xdr::XdrWriter(whole).opaque(octets);
  xdr::XdrWriter(without).opaque(octets);
  return *this;
}

Message pair_message(const Octets& first, const Octets& second) {
  return Message().word(0xaaaaaaaa).item(first).word(0xbbbbbbbb).item(second).word(0xcccccccc);
}

Message table_message(std::uint32_t num_rows) {
  Octets rows;
  xdr::XdrWriter out(rows);
  for (std::uint32_t i = 0; i < num_rows; ++i) {
    out.u32(2);
    out.u32(i);
    out.u32(~i);
  }
  return Message().elements(num_rows, rows).word(0xcccccccc);
}

Message option_message(const Octets* first, const Octets* second) {
  Message message;
  for (const Octets* octets : {first, second}) {
    message.word(octets != nullptr ? 1 : 0);
    if (octets != nullptr) message.item(*octets);
  }
  return message.word(0xcccccccc);
}

Message many_message(const std::vector<const Octets*>& all) {
  Message message;
  message.word(static_cast<std::uint32_t>(all.size()));
  for (const Octets* octets : all) {
    message.word(octets != nullptr ? 0 : 5);
    if (octets != nullptr) message.item(*octets);
  }
  return message;
}

}  // namespace weft::rpcrdma::testing
