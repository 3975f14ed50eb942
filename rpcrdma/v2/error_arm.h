#pragma once

#include <cstdint>

#include "rpcrdma/transport_error.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::rpcrdma::v2 {

// ErrorArm: the fields that the arms of RDMA2_ERROR can have (cel05 section 7.2, wg07 section 6.3.1). The error code
// decides which of them have a meaning; the others are 0.
struct ErrorArm {
  std::uint32_t vers_low = 0;       // VERS
  std::uint32_t vers_high = 0;      // VERS
  std::uint32_t max_chunks = 0;     // READ_CHUNKS, WRITE_CHUNKS
  std::uint32_t max_segments = 0;   // SEGMENTS
  std::uint32_t chunk_index = 0;    // WRITE_RESOURCE: counts from 1; 0 for unknown
  std::uint32_t length_needed = 0;  // WRITE_RESOURCE, REPLY_RESOURCE: octets
  friend bool operator==(const ErrorArm&, const ErrorArm&) = default;
};

// ErrorArmKind: which fields an arm has.
enum class ErrorArmKind : std::uint8_t { kVoid, kVersions, kMaxChunks, kMaxSegments, kWriteResource, kLengthNeeded };

[[nodiscard]] bool parse_error_arm(xdr::XdrReader& in, ErrorArmKind kind, ErrorArm& arm);
void emit_error_arm(xdr::XdrWriter& out, ErrorArmKind kind, const ErrorArm& arm);

// The fields of an arm and of the engines' TransportError.
ErrorArm to_arm(const TransportError& error);
TransportError from_arm(TransportError::Code code, const ErrorArm& arm);

}  // namespace weft::rpcrdma::v2
