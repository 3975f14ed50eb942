#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tests/wire_v2/message.h"

// The numbers of both drafts, with their names.
namespace weft::wire_v2 {

inline constexpr std::uint32_t kErrVers = 1, kErrBadXdr = 2;  // in both

namespace cel05 {
inline constexpr std::uint32_t kMsg = 0, kNomsg = 1, kError = 4, kOptional = 5, kConnprop = 6, kReqprop = 7,
                               kResprop = 8, kUpdprop = 9;
inline constexpr std::uint32_t kRbsiz = 1, kBrs = 2;
}  // namespace cel05

namespace wg07 {
inline constexpr std::uint32_t kError = 4, kGrant = 5, kConnpropMiddle = 6, kConnpropFinal = 7, kCallExternal = 8,
                               kCallMiddle = 9, kCallInline = 10, kReplyExternal = 11, kReplyMiddle = 12,
                               kReplyInline = 13;
inline constexpr std::uint32_t kErrVersMismatch = 11;
inline constexpr std::uint32_t kSbsiz = 1, kRbsiz = 2, kRssiz = 3, kRcsiz = 4, kBrs = 5, kHostauth = 6;
}  // namespace wg07

struct HeaderType {
  std::uint32_t code = 0;
  const char* name = nullptr;
  Kind kind = Kind::kInline;
  std::optional<Direction> direction;  // where the type tells it
};

struct ErrorCode {
  std::uint32_t code = 0;
  const char* name = nullptr;
  std::span<const char* const> words;  // the names of its arm's fields
};

struct PropertyId {
  std::uint32_t id = 0;
  const char* name = nullptr;
};

std::span<const HeaderType> header_types(Profile profile);
std::span<const ErrorCode> error_codes(Profile profile);
std::span<const PropertyId> property_ids(Profile profile);

// Null where the draft has no such number.
const HeaderType* header_type(Profile profile, std::uint32_t code);
const ErrorCode* error_code(Profile profile, std::uint32_t code);

const char* name_of(Profile profile);

}  // namespace weft::wire_v2
