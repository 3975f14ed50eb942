#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "rpcrdma/chunk_lists.h"
#include "rpcrdma/v2/error_arm.h"
#include "rpcrdma/v2/header_error.h"
#include "rpcrdma/v2/prefix.h"
#include "rpcrdma/v2/properties.h"
#include "rpcrdma/xdr/xdr.h"

// The transport header of draft-cel-nfsv4-rpcrdma-version-two-05 section 7.2. Types and members have the draft's names.
namespace weft::rpcrdma::v2_cel05 {

using v2::HeaderError;

// Proc: rpcrdma2_proc.
enum class Proc : std::uint32_t {
  kMsg = 0,
  kNomsg = 1,
  kError = 4,
  kOptional = 5,
  kConnprop = 6,
  kReqprop = 7,
  kResprop = 8,
  kUpdprop = 9
};

// Direction: msg_type of rdma_direction and rdma_optdir.
enum class Direction : std::uint32_t { kCall = 0, kReply = 1 };

// Err: rpcrdma2_errcode.
enum class Err : std::uint32_t {
  kVers = 1,
  kBadXdr = 2,
  kInvalProc = 3,
  kReadChunks = 4,
  kWriteChunks = 5,
  kSegments = 6,
  kWriteResource = 7,
  kReplyResource = 8,
  kInvalOption = 9,
  kSystem = 10
};

// Msg and Nomsg: rpcrdma2_chunk_lists. The Read list is as it stands on the wire, including Position Zero;
// emit_header writes lists.call_chunk in front of it, parse_message leaves lists.call_chunk empty. inv_handle: 0 for
// none; it may match no handle of the lists, and has no meaning in a Reply.
template <Proc kType>
struct ChunkListsBody {
  static constexpr Proc kProc = kType;
  Direction direction = Direction::kCall;
  std::uint32_t inv_handle = 0;
  ChunkListsView lists = {};
  friend bool operator==(const ChunkListsBody&, const ChunkListsBody&) = default;
};
using Msg = ChunkListsBody<Proc::kMsg>;
using Nomsg = ChunkListsBody<Proc::kNomsg>;

// Error: rpcrdma2_error. It always goes from the responder to the requester.
struct Error {
  static constexpr Proc kProc = Proc::kError;
  Err err = Err::kBadXdr;
  v2::ErrorArm arm = {};
  friend bool operator==(const Error&, const Error&) = default;
};

// Optional: rpcrdma2_optional. The definition of opttype says whether the Payload stream is all, part or nothing of an
// RPC message.
struct Optional {
  static constexpr Proc kProc = Proc::kOptional;
  Direction optdir = Direction::kCall;
  std::uint32_t opttype = 0;
  std::vector<std::uint8_t> optinfo = {};
  friend bool operator==(const Optional&, const Optional&) = default;
};

struct Connprop {
  static constexpr Proc kProc = Proc::kConnprop;
  v2::Propset start = {};
  v2::Propsubset nochg = {};  // of start: properties that will not change
  friend bool operator==(const Connprop&, const Connprop&) = default;
};

struct Reqprop {
  static constexpr Proc kProc = Proc::kReqprop;
  v2::Propset want = {};
  friend bool operator==(const Reqprop&, const Reqprop&) = default;
};

// Resprop: done and rejected select from Reqprop::want.
struct Resprop {
  static constexpr Proc kProc = Proc::kResprop;
  v2::Propsubset done = {};
  v2::Propsubset rejected = {};
  v2::Propset other = {};
  friend bool operator==(const Resprop&, const Resprop&) = default;
};

struct Updprop {
  static constexpr Proc kProc = Proc::kUpdprop;
  v2::Propset now = {};
  friend bool operator==(const Updprop&, const Updprop&) = default;
};

// Body: a message of an unknown type counts as a Call.
using Body = std::variant<Msg, Nomsg, Error, Optional, Connprop, Reqprop, Resprop, Updprop>;

struct Header {
  std::uint32_t xid = 0;
  std::uint32_t vers = v2::kVersion;  // of an Error, the version of the message that it answers
  std::uint32_t credit = 0;
  Body body;
  friend bool operator==(const Header&, const Header&) = default;
};

// parse_message judges one Send. It checks every rule that does not depend on limits, on other messages, or on what an
// opttype means. `payload` views the octets of `message` behind the header. On an error the header holds what was read,
// enough for answer().
HeaderError parse_message(ConstBytes message, Header& header, ConstBytes& payload);

// emit_header writes the header; the caller adds the Payload stream. Nothing is checked.
void emit_header(xdr::XdrWriter& out, const Header& header);

// emit_chunk_lists writes the header of a Msg or a Nomsg, whose lists it does not copy.
void emit_chunk_lists(xdr::XdrWriter& out, const v2::Prefix& prefix, Direction direction, std::uint32_t inv_handle,
                      const ChunkListsView& lists);

// answer says with which error code a responder answers a message that parse_message refused: with none where the
// message is no request, or its XID cannot be trusted (section 7.2.4).
std::optional<Err> answer(const Header& header, HeaderError error);

}  // namespace weft::rpcrdma::v2_cel05
