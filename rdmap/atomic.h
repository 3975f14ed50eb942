#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "ddp/memory_table.h"

// Atomic Operations (RFC 7306 section 5): the two headers, and the arithmetic.
namespace weft::rdmap {

// AtomicOp is the AOpCode (RFC 7306 section 5.2.1, Figure 5). 1 is reserved, the rest is unassigned. Swap is a CmpSwap
// whose compare mask is zero.
enum class AtomicOp : std::uint8_t { kFetchAdd = 0, kCmpSwap = 2 };

inline constexpr std::size_t kAtomicRequestHeaderLen = 52;
inline constexpr std::size_t kAtomicResponseHeaderLen = 12;
inline constexpr std::size_t kAtomicLen = 8;  // octets that an Atomic Operation works on; also their alignment

// AtomicOperands describes the change of the 64-bit word. For FetchAdd, a bit in add_swap_mask marks the top bit of a
// field, whose carry is dropped. For CmpSwap, it marks a bit to swap. FetchAdd ignores the two compare words.
struct AtomicOperands {
  AtomicOp op = AtomicOp::kFetchAdd;
  std::uint64_t add_swap = 0;
  std::uint64_t add_swap_mask = 0;
  std::uint64_t compare = 0;
  std::uint64_t compare_mask = ~std::uint64_t{0};
  friend bool operator==(const AtomicOperands&, const AtomicOperands&) = default;
};

// AtomicRequestHeader follows the DDP header of an Atomic Request (RFC 7306 section 5.2.1, Figure 4). aop_code holds
// the 4 bits as they are on the wire; operands.op is meaningful only if aop_code is an AtomicOp.
struct AtomicRequestHeader {
  std::uint8_t aop_code = 0;
  std::uint32_t request_id = 0;
  ddp::Stag stag;
  std::uint64_t to = 0;
  AtomicOperands operands;
  friend bool operator==(const AtomicRequestHeader&, const AtomicRequestHeader&) = default;
};

constexpr bool is_atomic_op(std::uint8_t aop_code) {
  return aop_code == static_cast<std::uint8_t>(AtomicOp::kFetchAdd) ||
         aop_code == static_cast<std::uint8_t>(AtomicOp::kCmpSwap);
}

// parse_atomic_request_header takes exactly 52 octets and returns nothing for any other length. The 28 reserved bits
// are ignored (EXT-5.2.1-02).
std::optional<AtomicRequestHeader> parse_atomic_request_header(ConstBytes octets);
std::array<std::uint8_t, kAtomicRequestHeaderLen> emit_atomic_request_header(const AtomicRequestHeader& header);

// AtomicResponseHeader follows the DDP header of an Atomic Response (RFC 7306 section 5.2.2, Figure 6): 12 octets as
// drawn. The text beside the figure says otherwise (EXT-X-01).
struct AtomicResponseHeader {
  std::uint32_t request_id = 0;
  std::uint64_t original = 0;
  friend bool operator==(const AtomicResponseHeader&, const AtomicResponseHeader&) = default;
};

// parse_atomic_response_header takes exactly 12 octets and returns nothing for any other length.
std::optional<AtomicResponseHeader> parse_atomic_response_header(ConstBytes octets);
std::array<std::uint8_t, kAtomicResponseHeaderLen> emit_atomic_response_header(const AtomicResponseHeader& header);

// apply_atomic returns the word that the operation makes of `original` (RFC 7306 sections 5.1.1 and 5.1.2).
std::uint64_t apply_atomic(const AtomicOperands& operands, std::uint64_t original);

// is_atomic_target tells whether an Atomic Operation may work on target: its address has to be 64-bit aligned. Its
// tagged offset does not matter (RFC 7306 section 5.1.1, EXT-X-06).
bool is_atomic_target(MutBytes target);

// execute_atomic carries out the operation on memory and returns the word's previous value. The word is a number in the
// byte order of this machine (EXT-X-11). The operation is atomic with regard to every other Atomic Operation and to
// this process's own std::atomic_ref. Precondition: target has kAtomicLen octets and is_atomic_target(target).
std::uint64_t execute_atomic(const AtomicOperands& operands, MutBytes target);

}  // namespace weft::rdmap
