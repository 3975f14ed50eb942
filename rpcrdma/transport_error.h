#pragma once

#include <cstdint>

namespace weft::rpcrdma {

// TransportError: the fault of a message or of its chunks, independent of the version's error codes. A profile
// translates it to the error codes of its version, and back.
struct TransportError {
  enum class Code : std::uint8_t {
    kVersion,        // the version is not supported; low to high are supported
    kChunk,          // version 1's only code for all errors below (ERR_CHUNK)
    kBadHeader,      // the header does not decode, or contradicts itself or its Payload stream
    kMessageType,    // a type of message that is not accepted
    kLimit,          // more chunks, segments or octets than are accepted
    kReadChunks,     // Read chunks that cannot be pulled
    kReplyResource,  // no offered form carries the Reply
    kSystem,         // this Call's chunks ended an earlier connection
  };

  Code code = Code::kChunk;
  std::uint32_t low = 0;  // kVersion
  std::uint32_t high = 0;
  friend bool operator==(const TransportError&, const TransportError&) = default;
};

}  // namespace weft::rpcrdma
