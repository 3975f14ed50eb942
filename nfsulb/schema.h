#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

// The vocabulary for the programs of the NFS family. It is the vocabulary of XDR (RFC 4506); the types keep their names
// from the RFCs. A type is a constant. One interpreter (walk.h) passes over its octets, another (bound.h) gives their
// largest number. A Call's statement about the size of its Reply stands in both halves: as a Note in the arguments, as
// a Bound in the results.
namespace weft::nfsulb {

inline constexpr std::uint32_t kNoLimit = 0xffffffff;

enum class Kind : std::uint8_t {
  kFixed,       // `max` octets with their roundup: integers, opaque[n], structures of them; none: void
  kOpaque,      // opaque<max>, string<max>
  kEligible,    // opaque<max> that is DDP-eligible
  kArray,       // element<max>
  kList,        // *element, repeated: optional-data that ends with itself (RFC 4506 section 4.19)
  kStruct,      // fields
  kUnion,       // arms by a 32-bit discriminant; element: the default, if there is one
  kBounded,     // element, whose whole size has another limit
  kOperations,  // the array of a COMPOUND: of operations in arguments, of their results in results
};

// Note is the value of an argument that the bound of the Reply needs.
enum class Note : std::uint8_t {
  kNone,
  kCount,       // the value of a word, or the number of an array's elements
  kLength,      // the octets of an opaque
  kWords,       // the words of a bitmap
  kAttributes,  // the words of a bitmap, and the attributes that it asks for
  kMinor,       // the minor version
};

// Bound is the limit of a result besides its `max`.
enum class Bound : std::uint8_t {
  kOwn,         // no other limit than `max`
  kText,        // ReplyLimits::max_text
  kUnbounded,   // ReplyLimits::max_unbounded, and `assumed` octets or elements if set
  kCount,       // Note::kCount and `assumed` octets: of octets, or of elements
  kAboutCount,  // the same, as an estimate
  kLength,      // Note::kLength
  kWords,       // Note::kWords, or all existing bits
  kAttributes,  // the attributes of Note::kAttributes
};

struct Arm;
struct Operation;

struct Type {
  Kind kind = Kind::kFixed;
  Note note = Note::kNone;
  Bound bound = Bound::kOwn;
  bool has_eligible = false;  // it can contain an eligible item
  std::uint8_t depth = 1;     // the nesting of types
  std::uint32_t max = 0;
  std::uint32_t assumed = 0;
  const Type* element = nullptr;
  const Type* least = nullptr;  // kBounded: the least size, whatever the Call says
  std::span<const Type* const> fields{};
  std::span<const Arm> arms{};
  std::span<const Operation> operations{};
};

struct Arm {
  std::uint32_t value = 0;
  const Type* type = nullptr;
  bool has_eligible = false;
  std::uint8_t depth = 1;
};

// Operation: a procedure of a program, or an operation of a COMPOUND.
struct Operation {
  std::uint32_t number = 0;
  const char* name = nullptr;
  const Type* arguments = nullptr;
  const Type* results = nullptr;
  bool idempotent = false;
  std::uint8_t since = 0;         // the first minor version that has it
  bool retry = false;             // allowed for short Reply chunk retry (RFC 8267 sections 5.2 and 6.2.1)
  bool eligible_result = false;   // a "READ operation" in the sense of RFC 8267 section 6.4.1
  bool sequence = false;          // [CB_]SEQUENCE: the session prevents a second run
  bool is_compound = false;       // a procedure made of operations
  bool has_result_items = false;  // its results, or the results of its operations, can have eligible items
};

// Program: the schema of one version of a program.
struct Program {
  std::span<const Operation> procedures;  // by number
};

namespace xdr {

template <const Type&... kTypes>
inline constexpr std::uint8_t depth_over = static_cast<std::uint8_t>(std::max({kTypes.depth...}) + 1);

// The basic types.
template <std::uint32_t kLen>
inline constexpr Type opaque_fixed = {.max = (kLen + 3) / 4 * 4};
inline constexpr Type void_type = opaque_fixed<0>;
inline constexpr Type uint32 = opaque_fixed<4>;
inline constexpr Type uint64 = opaque_fixed<8>;
// A bool that selects no type. Its reader checks its value.
inline constexpr Type boolean = uint32;

// kAssumed, also for arrays: the most that a client expects if the protocol has no limit.
template <std::uint32_t kMax = kNoLimit, std::uint32_t kAssumed = 0>
inline constexpr Type opaque = {.kind = Kind::kOpaque,
                                .bound = kMax == kNoLimit ? Bound::kUnbounded : Bound::kOwn,
                                .max = kMax,
                                .assumed = kAssumed};
template <std::uint32_t kMax = kNoLimit>
inline constexpr Type string = {
    .kind = Kind::kOpaque, .bound = kMax == kNoLimit ? Bound::kText : Bound::kOwn, .max = kMax};

// element<kMax>, *element.
template <const Type& kElement, std::uint32_t kMax = kNoLimit, std::uint32_t kAssumed = 0>
inline constexpr Type array = {.kind = Kind::kArray,
                               .bound = kMax == kNoLimit ? Bound::kUnbounded : Bound::kOwn,
                               .has_eligible = kElement.has_eligible,
                               .depth = depth_over<kElement>,
                               .max = kMax,
                               .assumed = kAssumed,
                               .element = &kElement};
template <const Type& kElement, std::uint32_t kAssumed = 0>
inline constexpr Type list = {.kind = Kind::kList,
                              .bound = Bound::kUnbounded,
                              .has_eligible = kElement.has_eligible,
                              .depth = depth_over<kElement>,
                              .max = kNoLimit,
                              .assumed = kAssumed,
                              .element = &kElement};

// A structure of fields of fixed size has a fixed size itself.
template <const Type&... kFields>
inline constexpr const Type* fields_of[] = {&kFields...};
template <const Type&... kFields>
inline constexpr bool all_fixed = ((kFields.kind == Kind::kFixed && kFields.note == Note::kNone) && ...);
template <const Type&... kFields>
inline constexpr Type structure = all_fixed<kFields...> ? Type{.max = (0u + ... + kFields.max)}
                                                        : Type{.kind = Kind::kStruct,
                                                               .has_eligible = (kFields.has_eligible || ...),
                                                               .depth = depth_over<kFields...>,
                                                               .fields = fields_of<kFields...>};

template <std::uint32_t kValue, const Type& kType = void_type>
inline constexpr Arm arm = {kValue, &kType, kType.has_eligible, kType.depth};
template <const Arm&... kArms>
inline constexpr Arm arms_of[] = {kArms...};
// union switch without a default, and with a default.
template <const Arm&... kArms>
inline constexpr Type union_of = {.kind = Kind::kUnion,
                                  .has_eligible = (kArms.has_eligible || ...),
                                  .depth = static_cast<std::uint8_t>(std::max({kArms.depth...}) + 1),
                                  .arms = arms_of<kArms...>};
template <const Type& kDefault, const Arm&... kArms>
inline constexpr Type union_or = {.kind = Kind::kUnion,
                                  .has_eligible = (kDefault.has_eligible || ... || kArms.has_eligible),
                                  .depth = static_cast<std::uint8_t>(std::max({kDefault.depth, kArms.depth...}) + 1),
                                  .element = &kDefault,
                                  .arms = arms_of<kArms...>};
// union switch (bool): the type if it is TRUE. Also *type, which has the same octets.
template <const Type& kType>
inline constexpr Type optional = union_of<arm<0>, arm<1, kType>>;
// The usual result: a status, then kType if the status is 0, else kFailure.
template <const Type& kType, const Type& kFailure = void_type>
inline constexpr Type result = union_or<kFailure, arm<0, kType>>;

// Upper-layer binding: eligible items, and the source of their size.
template <Bound kBound = Bound::kOwn, std::uint32_t kMax = kNoLimit>
inline constexpr Type eligible = {.kind = Kind::kEligible, .bound = kBound, .has_eligible = true, .max = kMax};

constexpr Type with_note(Type type, Note note) {
  type.note = note;
  return type;
}
constexpr Type with_bound(Type type, Bound bound) {
  type.bound = bound;
  return type;
}
template <const Type& kType, Note kNote>
inline constexpr Type noted = with_note(kType, kNote);
template <const Type& kType, Bound kBound>
inline constexpr Type bounded = with_bound(kType, kBound);
// The word in a Call that limits the size of a result (a count, a maxcount), and this result. The result includes the
// octets that the count does not include, or that servers leave out of it (server_habits.h).
inline constexpr Type reply_count = noted<uint32, Note::kCount>;
template <const Type& kType, std::uint32_t kMore = 0, Bound kBound = Bound::kCount, const Type& kLeast = void_type>
inline constexpr Type within_count = {.kind = Kind::kBounded,
                                      .bound = kBound,
                                      .depth = depth_over<kType, kLeast>,
                                      .assumed = kMore,
                                      .element = &kType,
                                      .least = &kLeast};
// A result without a foreseeable size.
template <const Type& kType>
inline constexpr Type unbounded = {
    .kind = Kind::kBounded, .bound = Bound::kUnbounded, .depth = depth_over<kType>, .element = &kType};

}  // namespace xdr

// The walk and the bound recurse only as deep as types are nested, whatever octets they read.
inline constexpr std::uint8_t kMaxDepth = 16;

enum class Runs : std::uint8_t { kOnce, kAgain };  // kAgain: idempotent

// operations_in returns the operations of a COMPOUND's arguments or results, none of others.
consteval std::span<const Operation> operations_in(const Type& type) {
  for (const Type* field : type.fields) {
    if (field->kind == Kind::kOperations) return field->operations;
  }
  return {};
}

// operation makes one row of a table of procedures or operations.
consteval Operation operation(std::uint32_t number, const char* name, Runs runs, const Type& arguments,
                              const Type& results, std::uint8_t since = 0) {
  if (arguments.depth > kMaxDepth || results.depth > kMaxDepth) throw "nested too deeply";  // does not compile
  return {.number = number,
          .name = name,
          .arguments = &arguments,
          .results = &results,
          .idempotent = runs == Runs::kAgain,
          .since = since,
          .eligible_result = results.has_eligible,
          .is_compound = !operations_in(arguments).empty(),
          .has_result_items =
              results.has_eligible || std::ranges::any_of(operations_in(results), &Operation::eligible_result)};
}
consteval Operation with_retry(Operation operation) {
  operation.retry = true;
  return operation;
}
consteval Operation with_sequence(Operation operation) {
  operation.sequence = true;
  return operation;
}

}  // namespace weft::nfsulb
