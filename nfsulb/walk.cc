#include "nfsulb/walk.h"

#include <algorithm>

#include "nfsulb/bound.h"
#include "requirements/violates.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::nfsulb {
namespace {

using rpcrdma::EligibleItem;
using rpcrdma::Walked;
using rpcrdma::xdr::round_up;
using rpcrdma::xdr::XdrReader;

constexpr std::uint32_t kLastMinor = 2;  // NFSv4's latest minor version

// ArgumentItems finds the missing eligible arguments by their positions.
struct ArgumentItems {
  std::span<const std::size_t> reduced;
  std::vector<EligibleItem>* items = nullptr;  // nullptr: not requested
  std::size_t next = 0;

  void begin(const Operation&, std::size_t) {}
  bool end() const { return true; }
  bool found(EligibleItem& item) {
    item.reduced = next < reduced.size() && reduced[next] == item.position;
    if (item.reduced) ++next;
    if (items != nullptr) items->push_back(item);
    return true;
  }
  bool at_end() const { return !violates("R1-8.1.1-01", next != reduced.size()); }
};

// ArgumentRuns finds whether the operations may run twice.
struct ArgumentRuns : ArgumentItems {
  OperationRuns runs{};

  void begin(const Operation& operation, std::size_t) {
    if (!operation.is_compound) runs.add(operation);
  }
};

// ResultItems finds the missing eligible results by the octets in each Write chunk. There is one entry for each READ
// operation (RFC 8267 section 6.4.1).
struct ResultItems {
  std::span<const std::uint32_t> reduced;
  std::vector<std::optional<EligibleItem>>& items;
  bool open = false;

  std::uint32_t brought() const { return items.size() <= reduced.size() ? reduced[items.size() - 1] : 0; }
  void begin(const Operation& operation, std::size_t) {
    open = operation.eligible_result;
    if (open) items.emplace_back();
  }
  // An operation without its item has an unused chunk.
  bool end() const { return !violates("U1-6.4.1-06", open && !items.back() && brought() != 0); }
  bool found(EligibleItem& item) {
    item.reduced = brought() != 0;
    items.back() = item;
    return !violates("R1-4.4.4.1-03", item.reduced && brought() != item.len);
  }
  bool at_end() const {
    const auto used = reduced.subspan(std::min(reduced.size(), items.size()));
    return !violates("R1-8.1.1-03", std::ranges::any_of(used, [](std::uint32_t octets) { return octets != 0; }));
  }
};

// Listing adds the operations to what another kind of items does.
template <typename Items>
struct Listing : Items {
  std::vector<ListedOperation>& operations;

  void begin(const Operation& operation, std::size_t position) {
    Items::begin(operation, position);
    if (!operation.is_compound) operations.push_back({&operation, position});
  }
};

enum class Half : std::uint8_t { kArguments, kResults };

// Walker passes over one procedure's arguments or results. Each function returns kWhole to go on.
template <typename Items>
class Walker {
 public:
  Walker(Half half, ConstBytes octets, Items& items, Bounder* bounder = nullptr)
      : half_(half), reader_(octets), items_(items), bounder_(bounder) {}

  Walked procedure(const Operation& procedure) {
    items_.begin(procedure, 0);
    Walked walked = value(half_ == Half::kArguments ? *procedure.arguments : *procedure.results);
    if (walked == Walked::kWhole && !is_at_end()) walked = Walked::kGarbage;
    if (bounder_ != nullptr && walked != Walked::kGarbage) bounder_->finish(procedure, notes_, minor_version_, walked);
    return walked;
  }

 private:
  bool is_at_end() { return items_.end() && !violates("R1-5.5.2-05", !reader_.at_end()) && items_.at_end(); }
  static Walked or_garbage(bool fits) { return fits ? Walked::kWhole : Walked::kGarbage; }

  Walked value(const Type& type) {
    switch (type.kind) {
      case Kind::kFixed: return fixed(type);
      case Kind::kOpaque: return opaque(type);
      case Kind::kEligible: return eligible(type);
      case Kind::kArray: return array(type);
      case Kind::kList: return list(type);
      case Kind::kStruct: return structure(type);
      case Kind::kUnion: return union_switch(type);
      case Kind::kBounded: return value(*type.element);
      case Kind::kOperations: return operations(type);
    }
    return Walked::kGarbage;
  }

  Walked fixed(const Type& type) {
    if (type.note == Note::kNone) return or_garbage(reader_.skip(type.max));
    std::uint32_t word = 0;
    if (!reader_.u32(word)) return Walked::kGarbage;
    if (type.note == Note::kCount) notes_.count = word;
    if (type.note == Note::kMinor) minor_version_ = word;
    return Walked::kWhole;
  }

  Walked opaque(const Type& type) {
    ConstBytes octets;
    if (!reader_.opaque(octets, type.max)) return Walked::kGarbage;
    if (type.note == Note::kLength) notes_.length = static_cast<std::uint32_t>(octets.size());
    return Walked::kWhole;
  }

  Walked eligible(const Type& type) {
    EligibleItem item;
    if (!reader_.u32(item.len) || violates("R1-5.5.2-05", item.len > type.max)) return Walked::kGarbage;
    item.offset = reader_.position();
    item.position = item.offset + taken_out_;
    if (!items_.found(item)) return Walked::kGarbage;
    if (!item.reduced) return or_garbage(reader_.skip(round_up(item.len)));
    taken_out_ += round_up(item.len);
    return Walked::kWhole;
  }

  Walked array(const Type& type) {
    std::uint32_t count = 0;
    // Every element has at least one octet, so there cannot be more elements than octets left.
    if (!reader_.u32(count) || count > reader_.remaining()) return Walked::kGarbage;
    if (violates("R1-5.5.2-05", count > type.max)) return Walked::kGarbage;
    if (type.note != Note::kNone) return noted_array(type, count);
    const Type& element = *type.element;
    if (element.kind == Kind::kFixed && element.note == Note::kNone) {
      return or_garbage(reader_.skip(std::size_t{count} * element.max));
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      if (const Walked walked = value(element); walked != Walked::kWhole) return walked;
    }
    return Walked::kWhole;
  }

  // noted_array: the elements have a fixed size. In a bitmap they are words.
  Walked noted_array(const Type& type, std::uint32_t count) {
    if (type.note == Note::kCount) notes_.count = count;
    if (type.note != Note::kAttributes) {
      if (type.note == Note::kWords) notes_.words = std::max(notes_.words, count);
      return or_garbage(reader_.skip(std::size_t{count} * type.element->max));
    }
    notes_.words = std::max(notes_.words, count);
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint32_t word = 0;
      if (!reader_.u32(word)) return Walked::kGarbage;
      if (i < notes_.attributes.size()) {
        notes_.attributes[i] = word;
      } else {
        notes_.other_attributes = notes_.other_attributes || word != 0;
      }
    }
    return Walked::kWhole;
  }

  Walked list(const Type& type) {
    while (true) {
      bool follows = false;
      if (!reader_.boolean(follows)) return Walked::kGarbage;
      if (!follows) return Walked::kWhole;
      if (const Walked walked = value(*type.element); walked != Walked::kWhole) return walked;
    }
  }

  Walked structure(const Type& type) {
    for (const Type* field : type.fields) {
      if (const Walked walked = value(*field); walked != Walked::kWhole) return walked;
    }
    return Walked::kWhole;
  }

  Walked union_switch(const Type& type) {
    std::uint32_t discriminant = 0;
    if (!reader_.u32(discriminant)) return Walked::kGarbage;
    const auto arm = std::ranges::find(type.arms, discriminant, &Arm::value);
    if (arm != type.arms.end()) return value(*arm->type);
    return type.element != nullptr ? value(*type.element) : Walked::kGarbage;
  }

  Walked operations(const Type& type) {
    std::uint32_t count = 0;
    if (!reader_.u32(count)) return Walked::kGarbage;
    if (violates("U1-7-01", minor_version_ > kLastMinor)) return count == 0 ? Walked::kWhole : Walked::kUnknown;
    const CallNotes of_procedure = notes_;
    Walked walked = Walked::kWhole;
    for (std::uint32_t i = 0; i < count && walked == Walked::kWhole; ++i) walked = one_operation(type.operations);
    notes_ = of_procedure;
    return walked;
  }

  Walked one_operation(std::span<const Operation> table) {
    std::uint32_t number = 0;
    if (!reader_.u32(number)) return Walked::kGarbage;
    const Operation* operation = find_operation(table, number);
    if (operation == nullptr) return Walked::kUnknown;
    // Results do not say their minor version.
    const bool is_newer = half_ == Half::kArguments && operation->since > minor_version_;
    if (violates("U1-7-01", is_newer)) return Walked::kUnknown;
    notes_ = {};
    items_.begin(*operation, reader_.position());
    const Walked walked = value(half_ == Half::kArguments ? *operation->arguments : *operation->results);
    if (walked != Walked::kWhole) return walked;
    if (!items_.end()) return Walked::kGarbage;
    if (bounder_ != nullptr) bounder_->add_operation(*operation, notes_);
    return Walked::kWhole;
  }

  Half half_;
  XdrReader reader_;
  Items& items_;
  Bounder* bounder_;
  CallNotes notes_;
  std::uint32_t minor_version_ = 0;
  std::size_t taken_out_ = 0;  // octets of reduced items up to here
};

void reset(rpcrdma::ReplyBound& bound) {
  bound.items.clear();
  bound.rest = 0;
  bound.is_estimate = bound.may_retry = bound.may_retry_once = false;
}

}  // namespace

const Operation* find_operation(std::span<const Operation> table, std::uint32_t number) {
  const auto row = std::ranges::lower_bound(table, number, {}, &Operation::number);
  return row != table.end() && row->number == number ? &*row : nullptr;
}

Walked walk_arguments(const Program& program, std::uint32_t procedure, ConstBytes args,
                      std::span<const std::size_t> reduced, std::vector<EligibleItem>& items) {
  items.clear();
  const Operation* row = find_operation(program.procedures, procedure);
  if (row == nullptr) return Walked::kUnknown;
  ArgumentItems found{reduced, &items};
  const Walked walked = Walker(Half::kArguments, args, found).procedure(*row);
  if (walked == Walked::kGarbage) items.clear();
  return walked;
}

Walked walk_results(const Program& program, std::uint32_t procedure, ConstBytes results,
                    std::span<const std::uint32_t> reduced, std::vector<std::optional<EligibleItem>>& items) {
  items.clear();
  const Operation* row = find_operation(program.procedures, procedure);
  if (row == nullptr) return Walked::kUnknown;
  ResultItems found{reduced, items};
  const Walked walked = Walker(Half::kResults, results, found).procedure(*row);
  if (walked == Walked::kGarbage) items.clear();
  return walked;
}

Walked list_arguments(const Program& program, std::uint32_t procedure, ConstBytes args,
                      std::span<const std::size_t> reduced, std::vector<ListedOperation>& operations) {
  operations.clear();
  const Operation* row = find_operation(program.procedures, procedure);
  if (row == nullptr) return Walked::kUnknown;
  Listing<ArgumentItems> found{{reduced}, operations};
  return Walker(Half::kArguments, args, found).procedure(*row);
}

Walked list_results(const Program& program, std::uint32_t procedure, ConstBytes results,
                    std::span<const std::uint32_t> reduced, std::vector<ListedOperation>& operations) {
  operations.clear();
  const Operation* row = find_operation(program.procedures, procedure);
  if (row == nullptr) return Walked::kUnknown;
  std::vector<std::optional<EligibleItem>> items;
  Listing<ResultItems> found{{reduced, items}, operations};
  return Walker(Half::kResults, results, found).procedure(*row);
}

Walked bound_reply(const Program& program, std::uint32_t procedure, ConstBytes args,
                   std::span<const std::size_t> reduced, const rpcrdma::ReplyLimits& limits,
                   rpcrdma::ReplyBound& bound) {
  reset(bound);
  const Operation* row = find_operation(program.procedures, procedure);
  if (row == nullptr) return Walked::kUnknown;
  ArgumentItems found{reduced};
  Bounder bounder(limits, bound);
  const Walked walked = Walker(Half::kArguments, args, found, &bounder).procedure(*row);
  if (walked == Walked::kGarbage) reset(bound);
  return walked;
}

bool has_result_items(const Program& program, std::uint32_t procedure) {
  const Operation* row = find_operation(program.procedures, procedure);
  return row != nullptr && row->has_result_items;
}

bool is_idempotent(const Program& program, std::uint32_t procedure, ConstBytes args,
                   std::span<const std::size_t> reduced) {
  const Operation* row = find_operation(program.procedures, procedure);
  if (row == nullptr || !row->is_compound) return row != nullptr && row->idempotent;
  ArgumentRuns found{{reduced}};
  const Walked walked = Walker(Half::kArguments, args, found).procedure(*row);
  return walked == Walked::kWhole && (found.runs.all_idempotent || found.runs.in_session);
}

}  // namespace weft::nfsulb
