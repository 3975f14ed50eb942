#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

// A decoder of RPC-over-RDMA version 1 for tests, written from RFC 8166 section 4 and RFC 5531 section 9. It shares no
// code with rpcrdma: an error common to both must come from the documents.
namespace weft::wire_v1 {

using Octets = std::span<const std::uint8_t>;

struct Segment {
  std::size_t at = 0;          // where its handle stands in the message; its length follows, then its offset
  std::uint32_t position = 0;  // of read segments
  std::uint32_t handle = 0;
  std::uint32_t length = 0;
  std::uint64_t offset = 0;
};
using Chunk = std::vector<Segment>;

std::uint64_t length_of(const Chunk& chunk);

// Kind is the kind of one message. A long one carries its Payload stream in a chunk (RDMA_NOMSG).
enum class Kind : std::uint8_t { kCall, kReply, kLongCall, kLongReply, kErrVers, kErrChunk };
const char* name_of(Kind kind);

struct Message {
  std::uint32_t xid = 0;
  std::uint32_t version = 0;
  std::uint32_t credits = 0;
  Kind kind = Kind::kCall;
  Chunk reads;  // all read segments in their order
  std::vector<Chunk> writes;
  std::optional<Chunk> reply;
  std::uint32_t low = 0;  // kErrVers
  std::uint32_t high = 0;
  std::size_t header_len = 0;  // octets; the Payload stream follows
};

// Fault: the first thing in a message that no sender may send, with the rule that it breaks.
struct Fault {
  std::string text;
};

// decode returns the message if a sender that keeps the rules may have sent it, else the fault. It knows this message
// alone: it does not check whether a Reply answers a Call, or whether its lengths fit the offered chunks.
std::variant<Message, Fault> decode(Octets octets);

}  // namespace weft::wire_v1
