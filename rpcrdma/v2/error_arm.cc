#include "rpcrdma/v2/error_arm.h"

namespace weft::rpcrdma::v2 {

bool parse_error_arm(xdr::XdrReader& in, ErrorArmKind kind, ErrorArm& arm) {
  switch (kind) {
    case ErrorArmKind::kVoid: return true;
    case ErrorArmKind::kVersions: return in.u32(arm.vers_low) && in.u32(arm.vers_high);
    case ErrorArmKind::kMaxChunks: return in.u32(arm.max_chunks);
    case ErrorArmKind::kMaxSegments: return in.u32(arm.max_segments);
    case ErrorArmKind::kWriteResource: return in.u32(arm.chunk_index) && in.u32(arm.length_needed);
    case ErrorArmKind::kLengthNeeded: return in.u32(arm.length_needed);
  }
  return false;
}

void emit_error_arm(xdr::XdrWriter& out, ErrorArmKind kind, const ErrorArm& arm) {
  switch (kind) {
    case ErrorArmKind::kVoid: return;
    case ErrorArmKind::kVersions: out.u32(arm.vers_low); return out.u32(arm.vers_high);
    case ErrorArmKind::kMaxChunks: return out.u32(arm.max_chunks);
    case ErrorArmKind::kMaxSegments: return out.u32(arm.max_segments);
    case ErrorArmKind::kWriteResource: out.u32(arm.chunk_index); return out.u32(arm.length_needed);
    case ErrorArmKind::kLengthNeeded: return out.u32(arm.length_needed);
  }
}

ErrorArm to_arm(const TransportError& error) {
  return {.vers_low = error.low,
          .vers_high = error.high,
          .max_chunks = error.limit,
          .max_segments = error.limit,
          .chunk_index = error.chunk,
          .length_needed = error.needed};
}

TransportError from_arm(TransportError::Code code, const ErrorArm& arm) {
  return {.code = code,
          .low = arm.vers_low,
          .high = arm.vers_high,
          .limit = code == TransportError::Code::kSegments ? arm.max_segments : arm.max_chunks,
          .chunk = arm.chunk_index,
          .needed = arm.length_needed};
}

}  // namespace weft::rpcrdma::v2
