#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rpcrdma/binding.h"
#include "rpcrdma/xdr/xdr.h"

// A program of no use but to tests: every shape in which items can stand in arguments and results. Its arguments and
// results have the same shape:
//
//   const ELEMENTS = 3;
//   struct pair   { unsigned head; opaque first<>; unsigned middle; opaque second<>; unsigned tail; };
//   struct row    { unsigned cells<2>; };              always two, so that a row has 12 octets
//   struct table  { row rows<>; unsigned tail; };
//   struct option { opaque *first<>; opaque *second<>; unsigned tail; };
//   union one switch (unsigned status) { case 0: opaque data<>; default: void; };
//   struct many   { one all<>; };
//
//   pair   PAIR(pair)     = 1   both may be reduced
//   table  TABLE(table)   = 2   the elements of `rows` may
//   option OPTION(option) = 3   the data of both may, where they are present
//   many   MANY(many)     = 4   each of them may; one that failed has no item, as an operation of COMPOUND
//   pair   PLAIN(pair)    = 5   nothing
namespace weft::rpcrdma::testing {

using Octets = std::vector<std::uint8_t>;

inline constexpr std::uint32_t kSyntheticProgram = 0x20005753;
inline constexpr std::uint32_t kSyntheticVersion = 1;
inline constexpr std::uint32_t kPair = 1;
inline constexpr std::uint32_t kTable = 2;
inline constexpr std::uint32_t kOption = 3;
inline constexpr std::uint32_t kMany = 4;
inline constexpr std::uint32_t kPlain = 5;

// Its binding finds items, and knows neither bounds nor what may run twice.
const Binding& synthetic_binding();

// Message: arguments or results, first as they are whole, then without items.
class Message {
 public:
  Message& word(std::uint32_t value);
  // An opaque<> of these octets that may be reduced; one that is not.
  Message& item(const Octets& octets);
  Message& opaque(const Octets& octets);
  // Counted elements, `octets` in all, that may be reduced.
  Message& elements(std::uint32_t count, const Octets& octets);

  struct Item {
    std::size_t position = 0;  // in `whole`
    std::size_t offset = 0;    // in `without`
    Octets octets;
  };
  Octets whole;
  Octets without;
  std::vector<Item> items;
};

// Messages of the program. rows: two words each.
Message pair_message(const Octets& first, const Octets& second);
Message table_message(std::uint32_t num_rows);
Message option_message(const Octets* first, const Octets* second);
// Null: that one failed.
Message many_message(const std::vector<const Octets*>& all);

}  // namespace weft::rpcrdma::testing
