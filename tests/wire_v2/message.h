#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

// One message of RPC-over-RDMA version 2, in either draft, field by field.
namespace weft::wire_v2 {

using Octets = std::span<const std::uint8_t>;
using Bytes = std::vector<std::uint8_t>;

// Profile: the draft. Both say version 2 on the wire, and neither understands the other.
enum class Profile : std::uint8_t {
  kCel05,  // draft-cel-nfsv4-rpcrdma-version-two-05
  kWg07,   // draft-ietf-nfsv4-rpcrdma-version-two-07
};

enum class Direction : std::uint8_t { kCall, kReply };

// Kind: the purpose of a message.
enum class Kind : std::uint8_t {
  kInline,    // an RPC message, or the last part of one, follows the header
  kPart,      // a part of an RPC message follows the header, and more parts follow
  kExternal,  // the RPC message is in a chunk
  kError,
  kGrant,
  kOption,
  kProperties,
};

struct Segment {
  std::uint32_t handle = 0;
  std::uint32_t length = 0;
  std::uint64_t offset = 0;
  friend bool operator==(const Segment&, const Segment&) = default;
};
using Chunk = std::vector<Segment>;

struct ReadSegment {
  std::uint32_t position = 0;
  Segment target;
  friend bool operator==(const ReadSegment&, const ReadSegment&) = default;
};
using ReadList = std::vector<ReadSegment>;

std::uint64_t length_of(const Chunk& chunk);
std::uint64_t length_of(const ReadList& reads);

// Property: value is the XDR in rdma_data; empty means the default.
struct Property {
  std::uint32_t id = 0;
  Bytes value;
  friend bool operator==(const Property&, const Property&) = default;
};

struct Error {
  std::uint32_t code = 0;
  std::vector<std::uint32_t> words;  // of the arm of the union
  friend bool operator==(const Error&, const Error&) = default;
};

struct Message {
  Profile profile = Profile::kCel05;
  std::uint32_t xid = 0;
  std::uint32_t version = 2;
  std::uint32_t credit = 0;
  std::uint32_t type = 0;  // rdma_proc or rdma_htype
  Kind kind = Kind::kInline;
  std::optional<Direction> direction;  // of RPC messages and options; an error is always a Reply

  std::uint32_t inv_handle = 0;
  std::uint32_t remaining = 0;  // kPart
  ReadList call;                // wg07: rdma_call
  ReadList reads;
  std::vector<Chunk> writes;
  std::optional<Chunk> reply;

  Error error;                                      // kError
  std::uint32_t option = 0;                         // kOption: rdma_opttype
  Bytes option_info;                                // kOption: rdma_optinfo
  std::vector<Property> properties;                 // kProperties: the one set that each type has
  std::vector<std::vector<std::uint32_t>> subsets;  // kProperties: the bitmaps in their order

  std::size_t header_len = 0;  // octets
  Bytes payload;               // behind the header
  friend bool operator==(const Message&, const Message&) = default;
};

// Fault: a forbidden message, and the row of the requirement tables that forbids it.
struct Fault {
  std::string rule;
  std::string text;
  friend bool operator==(const Fault&, const Fault&) = default;
};

}  // namespace weft::wire_v2
