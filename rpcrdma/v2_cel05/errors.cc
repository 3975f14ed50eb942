#include "rpcrdma/v2_cel05/errors.h"

namespace weft::rpcrdma::v2_cel05 {

namespace {

using Code = TransportError::Code;

Err err_of(Code code) {
  switch (code) {
    case Code::kVersion:
    case Code::kOtherVersion: return Err::kVers;
    case Code::kChunk:
    case Code::kBadHeader:
    case Code::kSequence:
    case Code::kProperty: return Err::kBadXdr;
    case Code::kMessageType: return Err::kInvalProc;
    case Code::kOption: return Err::kInvalOption;
    case Code::kReadChunks: return Err::kReadChunks;
    case Code::kWriteChunks: return Err::kWriteChunks;
    case Code::kSegments: return Err::kSegments;
    case Code::kWriteResource: return Err::kWriteResource;
    case Code::kReplyResource: return Err::kReplyResource;
    case Code::kSystem: return Err::kSystem;
  }
  return Err::kSystem;
}

Code code_of(Err err) {
  switch (err) {
    case Err::kVers: return Code::kVersion;
    case Err::kBadXdr: return Code::kBadHeader;
    case Err::kInvalProc: return Code::kMessageType;
    case Err::kInvalOption: return Code::kOption;
    case Err::kReadChunks: return Code::kReadChunks;
    case Err::kWriteChunks: return Code::kWriteChunks;
    case Err::kSegments: return Code::kSegments;
    case Err::kWriteResource: return Code::kWriteResource;
    case Err::kReplyResource: return Code::kReplyResource;
    case Err::kSystem: return Code::kSystem;
  }
  return Code::kSystem;
}

}  // namespace

Error to_wire(const TransportError& error) {
  return {.err = err_of(error.code), .arm = v2::to_arm(error)};
}

TransportError from_wire(const Error& error) {
  return v2::from_arm(code_of(error.err), error.arm);
}

std::string_view error_name(Code code) {
  switch (err_of(code)) {
    case Err::kVers: return "RDMA2_ERR_VERS";
    case Err::kBadXdr: return "RDMA2_ERR_BAD_XDR";
    case Err::kInvalProc: return "RDMA2_ERR_INVAL_PROC";
    case Err::kReadChunks: return "RDMA2_ERR_READ_CHUNKS";
    case Err::kWriteChunks: return "RDMA2_ERR_WRITE_CHUNKS";
    case Err::kSegments: return "RDMA2_ERR_SEGMENTS";
    case Err::kWriteResource: return "RDMA2_ERR_WRITE_RESOURCE";
    case Err::kReplyResource: return "RDMA2_ERR_REPLY_RESOURCE";
    case Err::kInvalOption: return "RDMA2_ERR_INVAL_OPTION";
    case Err::kSystem: return "RDMA2_ERR_SYSTEM";
  }
  return "RDMA2_ERR_SYSTEM";
}

}  // namespace weft::rpcrdma::v2_cel05
