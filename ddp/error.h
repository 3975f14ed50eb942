#pragma once

#include <cstdint>

#include "ddp/memory_table.h"

namespace weft::ddp {

// Error is every DDP error that can be put into a Terminate with Layer 1 (RFC 5041 section 7.2): Error Type in the
// upper octet, Error Code in the lower.
enum class Error : std::uint16_t {
  kLocalCatastrophic = 0x000,  // a segment too short for its header; a local failure to place
  kInvalidStag = 0x100,        // also a missing right: DDP has no code for one (DDP-A-07)
  kBaseBounds = 0x101,
  kNotAssociated = 0x102,  // STag of another Protection Domain or stream
  kToWrap = 0x103,
  kTaggedVersion = 0x104,
  kInvalidQn = 0x201,
  kNoBuffer = 0x202,   // the expected MSN, but nothing posted for it
  kMsnRange = 0x203,   // any other MSN
  kInvalidMo = 0x204,  // not the next octet of the message
  kMessageTooLong = 0x205,
  kUntaggedVersion = 0x206,
};

constexpr std::uint8_t etype(Error error) {
  return static_cast<std::uint8_t>(static_cast<std::uint16_t>(error) >> 8);
}
constexpr std::uint8_t code(Error error) {
  return static_cast<std::uint8_t>(static_cast<std::uint16_t>(error) & 0xff);
}

// to_error gives the DDP error for an access that the memory table refused to a tagged segment.
constexpr Error to_error(AccessError error) {
  switch (error) {
    case AccessError::kInvalidStag: return Error::kInvalidStag;
    case AccessError::kNotAssociated: return Error::kNotAssociated;
    case AccessError::kAccessRights: return Error::kInvalidStag;
    case AccessError::kToWrap: return Error::kToWrap;
    case AccessError::kBaseBounds: return Error::kBaseBounds;
  }
  return Error::kLocalCatastrophic;
}

}  // namespace weft::ddp
