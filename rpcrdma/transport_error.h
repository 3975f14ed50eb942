#pragma once

#include <cstdint>

namespace weft::rpcrdma {

// TransportError: what is wrong with a message or with its chunks, whichever version's word tells of it. A profile
// translates it to the errors that its version has, and back.
struct TransportError {
  enum class Code : std::uint8_t {
    kVersion,        // the version is not spoken; low to high are
    kChunk,          // version 1's one word for all that follows (ERR_CHUNK)
    kBadHeader,      // the header does not decode, or contradicts itself or its Payload stream
    kMessageType,    // a type of message that is not taken
    kLimit,          // more chunks, segments or octets than are taken
    kReadChunks,     // Read chunks that cannot be pulled
    kReplyResource,  // no form that was offered carries the Reply
    kSystem,         // this Call's chunks ended an earlier connection
  };

  Code code = Code::kChunk;
  std::uint32_t low = 0;  // kVersion
  std::uint32_t high = 0;
  friend bool operator==(const TransportError&, const TransportError&) = default;
};

}  // namespace weft::rpcrdma
