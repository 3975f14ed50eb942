#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "rpcrdma/chunk_lists.h"
#include "rpcrdma/message.h"
#include "rpcrdma/xdr/xdr.h"

// The RPC-over-RDMA version 1 transport header (RFC 8166 section 4) as it stands on the wire.
namespace weft::rpcrdma::v1 {

inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kMinHeader = 28;  // RFC 8166 section 4.5
inline constexpr std::size_t kErrChunkLen = 20;
inline constexpr std::size_t kWriteChunkLen = 8;  // without its segments, including its discriminator
inline constexpr std::size_t kReplyChunkLen =
    4;  // without its segments and its discriminator; the discriminator is always there

// Proc: rdma_proc of RFC 8166 section 4.1.2.
enum class Proc : std::uint32_t { kMsg = 0, kNomsg = 1, kMsgp = 2, kDone = 3, kError = 4 };

// Err: rpc_rdma_errcode of RFC 8166 section 4.1.2.
enum class Err : std::uint32_t { kVers = 1, kChunk = 2 };

// HeaderWords: the members of a header besides its lists. proc (and err) decide which members have a meaning.
struct HeaderWords {
  std::uint32_t xid = 0;
  std::uint32_t vers = kVersion;
  std::uint32_t credit = 0;
  Proc proc = Proc::kMsg;
  std::uint32_t align = 0;     // kMsgp
  std::uint32_t thresh = 0;    // kMsgp
  Err err = Err::kChunk;       // kError
  std::uint32_t vers_low = 0;  // kError with Err::kVers
  std::uint32_t vers_high = 0;
  friend bool operator==(const HeaderWords&, const HeaderWords&) = default;
};

// Header: rdma_msg with every body it can have. The Read list is as it stands on the wire, including Position Zero;
// lists.call_chunk is always empty.
struct Header : HeaderWords {
  ChunkListsView lists;  // kMsg, kNomsg, kMsgp
  friend bool operator==(const Header&, const Header&) = default;
};

enum class HeaderError : std::uint8_t {
  kNone,
  kTruncated,
  kProc,           // rdma_proc is none of the five
  kErr,            // rdma_err is neither 1 nor 2
  kDiscriminator,  // optional-data discriminator is neither 0 nor 1
  kCount,          // more segments than the remaining octets can hold
};

const char* header_error_str(HeaderError error);

// parse_header reads a header and leaves `in` behind it, where the Payload stream of RDMA_MSG begins. It reads the body
// as version 1, whatever the version word says: judge `vers` first. On an error the words read so far are set, and
// the lists are empty. The lists keep their memory for the next header.
HeaderError parse_header(xdr::XdrReader& in, HeaderWords& words, ChunkListsView& lists);
inline HeaderError parse_header(xdr::XdrReader& in, Header& header) {
  return parse_header(in, header, header.lists);
}
void emit_header(xdr::XdrWriter& out, const Header& header);

// error_name: version 1 has one code for versions, and one for all other errors.
std::string_view error_name(TransportError::Code code);

// emit_message writes the header of an engine's message: the Call chunk is the Position Zero Read chunk, and stands
// first in the Read list. Every error except kVersion becomes ERR_CHUNK.
void emit_message(xdr::XdrWriter& out, const Message& message);

}  // namespace weft::rpcrdma::v1
