#include "rpcrdma/v2_wg07/errors.h"

namespace weft::rpcrdma::v2_wg07 {

namespace {

using Code = TransportError::Code;

Err err_of(Code code) {
  switch (code) {
    case Code::kVersion: return Err::kVers;
    case Code::kOtherVersion: return Err::kVersMismatch;
    case Code::kChunk:
    case Code::kBadHeader: return Err::kBadXdr;
    case Code::kProperty: return Err::kBadPropval;
    case Code::kMessageType:
    case Code::kOption: return Err::kInvalHtype;
    case Code::kSequence: return Err::kInvalCont;
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
    case Err::kBadPropval: return Code::kProperty;
    case Err::kInvalHtype: return Code::kMessageType;
    case Err::kInvalCont: return Code::kSequence;
    case Err::kVersMismatch: return Code::kOtherVersion;
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
    case Err::kBadPropval: return "RDMA2_ERR_BAD_PROPVAL";
    case Err::kInvalHtype: return "RDMA2_ERR_INVAL_HTYPE";
    case Err::kInvalCont: return "RDMA2_ERR_INVAL_CONT";
    case Err::kVersMismatch: return "RDMA2_ERR_VERS_MISMATCH";
    case Err::kReadChunks: return "RDMA2_ERR_READ_CHUNKS";
    case Err::kWriteChunks: return "RDMA2_ERR_WRITE_CHUNKS";
    case Err::kSegments: return "RDMA2_ERR_SEGMENTS";
    case Err::kWriteResource: return "RDMA2_ERR_WRITE_RESOURCE";
    case Err::kReplyResource: return "RDMA2_ERR_REPLY_RESOURCE";
    case Err::kSystem: return "RDMA2_ERR_SYSTEM";
  }
  return "RDMA2_ERR_SYSTEM";
}

}  // namespace weft::rpcrdma::v2_wg07
