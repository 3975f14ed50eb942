#pragma once

#include <cstdint>

namespace weft::rpcrdma {

// TransportError: the fault of a message or of its chunks, independent of the version's error codes. A profile
// translates it to the error codes of its version, and back.
struct TransportError {
  enum class Code : std::uint8_t {
    kVersion,        // the version is not supported; low to high are supported
    kOtherVersion,   // not the version that the connection has
    kChunk,          // version 1's only code for all errors below (ERR_CHUNK)
    kBadHeader,      // the header does not decode, or contradicts itself or its Payload stream
    kMessageType,    // a type of message that is not accepted
    kSequence,       // a message that may not stand there among the messages of another RPC message
    kProperty,       // a property with a malformed value
    kOption,         // an option, or an operation on properties, that is not supported
    kReadChunks,     // more Read chunks than `limit`
    kWriteChunks,    // more Write chunks than `limit`
    kSegments,       // more segments in a list than `limit`
    kWriteResource,  // Write chunk number `chunk` has fewer than `needed` octets
    kReplyResource,  // no offered form carries the Reply; a Reply chunk would need `needed` octets
    kSystem,         // any other fault of this Call
  };

  Code code = Code::kChunk;
  std::uint32_t low = 0;  // kVersion
  std::uint32_t high = 0;
  std::uint32_t limit = 0;
  std::uint32_t chunk = 0;   // counts from 1; 0 for unknown
  std::uint32_t needed = 0;  // octets; 0 for unknown
  friend bool operator==(const TransportError&, const TransportError&) = default;
};

// VersionRange: the versions of RPC-over-RDMA that the sender of kVersion speaks.
struct VersionRange {
  std::uint32_t low = 0, high = 0;
  constexpr bool has(std::uint32_t version) const { return low <= version && version <= high; }
};

// precedes_call: whether a responder sends this error for a Call only before the Call runs: it does not take the header
// or the chunks as they are. Of the others kChunk, kWriteResource and kReplyResource may be about the Reply, kSystem
// may be about anything, and kProperty and kOption answer no Call.
constexpr bool precedes_call(TransportError::Code code) {
  using Code = TransportError::Code;
  switch (code) {
    case Code::kVersion:       // W2-7.1.1-1
    case Code::kOtherVersion:  // W2-7.1.2-1
    case Code::kBadHeader:     // R2-7.2.4-6, W2-7.2.1-1
    case Code::kMessageType:   // R2-7.2.4-4, W2-7.1.3-1
    case Code::kSequence:      // W2-7.1.4-1
    case Code::kReadChunks:    // R2-7.2.4-9, W2-7.3.1-1
    case Code::kWriteChunks:   // R2-7.2.4-13, W2-7.3.2-1
    case Code::kSegments:      // R2-7.2.4-16, W2-7.3.3-1
      return true;
    case Code::kChunk:
    case Code::kProperty:
    case Code::kOption:
    case Code::kWriteResource:
    case Code::kReplyResource:
    case Code::kSystem: return false;
  }
  return false;
}

}  // namespace weft::rpcrdma
