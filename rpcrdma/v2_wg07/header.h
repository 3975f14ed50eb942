#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "base/bytes.h"
#include "rpcrdma/chunk_lists.h"
#include "rpcrdma/v2/error_arm.h"
#include "rpcrdma/v2/header_error.h"
#include "rpcrdma/v2/prefix.h"
#include "rpcrdma/v2/properties.h"
#include "rpcrdma/xdr/xdr.h"

// The transport header of draft-ietf-nfsv4-rpcrdma-version-two-07 section 6. Types and members have the draft's names.
namespace weft::rpcrdma::v2_wg07 {

using v2::HeaderError;

// Htype: the header types of section 6.1.
enum class Htype : std::uint32_t {
  kError = 4,
  kGrant = 5,
  kConnpropMiddle = 6,
  kConnpropFinal = 7,
  kCallExternal = 8,
  kCallMiddle = 9,
  kCallInline = 10,
  kReplyExternal = 11,
  kReplyMiddle = 12,
  kReplyInline = 13
};

// Err: the error codes of section 8.4.
enum class Err : std::uint32_t {
  kVers = 1,
  kBadXdr = 2,
  kBadPropval = 3,
  kInvalHtype = 4,
  kInvalCont = 5,
  kReadChunks = 6,
  kWriteChunks = 7,
  kSegments = 8,
  kWriteResource = 9,
  kReplyResource = 10,
  kVersMismatch = 11,
  kSystem = 100
};

// Error: rpcrdma2_hdr_error.
struct Error {
  static constexpr Htype kHtype = Htype::kError;
  Err err = Err::kBadXdr;
  v2::ErrorArm arm = {};
  friend bool operator==(const Error&, const Error&) = default;
};

// Grant: nothing but the prefix, with an XID of 0 that receivers ignore.
struct Grant {
  static constexpr Htype kHtype = Htype::kGrant;
  friend bool operator==(const Grant&, const Grant&) = default;
};

// ConnpropMiddle and ConnpropFinal: rpcrdma2_hdr_connprop.
template <Htype kType>
struct Connprop {
  static constexpr Htype kHtype = kType;
  v2::Propset props = {};
  friend bool operator==(const Connprop&, const Connprop&) = default;
};
using ConnpropMiddle = Connprop<Htype::kConnpropMiddle>;
using ConnpropFinal = Connprop<Htype::kConnpropFinal>;

// CallExternal and CallInline: rpcrdma2_hdr_call_external and rpcrdma2_hdr_call_inline. A CallExternal has a Call chunk
// with octets, a CallInline has none. The Write and Reply chunks are provisional. inv_handle: 0 for none; it may match
// no handle of the lists.
template <Htype kType>
struct Call {
  static constexpr Htype kHtype = kType;
  std::uint32_t inv_handle = 0;
  ChunkListsView lists = {};
  friend bool operator==(const Call&, const Call&) = default;
};
using CallExternal = Call<Htype::kCallExternal>;
using CallInline = Call<Htype::kCallInline>;

// CallMiddle and ReplyMiddle: a part of an RPC message that a later message continues. remaining: octets of the Payload
// stream that are still to come, as the sender says; a hint, which may be wrong.
template <Htype kType>
struct Middle {
  static constexpr Htype kHtype = kType;
  std::uint32_t remaining = 0;
  friend bool operator==(const Middle&, const Middle&) = default;
};
using CallMiddle = Middle<Htype::kCallMiddle>;
using ReplyMiddle = Middle<Htype::kReplyMiddle>;

// ReplyExternal and ReplyInline: rpcrdma2_hdr_reply_external and rpcrdma2_hdr_reply_inline. Only the Write list is
// used, and of a ReplyExternal the Reply chunk, which has octets.
template <Htype kType>
struct Reply {
  static constexpr Htype kHtype = kType;
  ChunkListsView lists = {};
  friend bool operator==(const Reply&, const Reply&) = default;
};
using ReplyExternal = Reply<Htype::kReplyExternal>;
using ReplyInline = Reply<Htype::kReplyInline>;

// Body: a message of an unknown type counts as a Call.
using Body = std::variant<CallInline, CallMiddle, CallExternal, ReplyInline, ReplyMiddle, ReplyExternal, ConnpropMiddle,
                          ConnpropFinal, Grant, Error>;

struct Header {
  std::uint32_t xid = 0;
  std::uint32_t vers = v2::kVersion;  // of an Error, the version of the message that it answers
  std::uint32_t credit = 0;
  Body body;
  friend bool operator==(const Header&, const Header&) = default;
};

// parse_message judges one Send. It checks every rule that does not depend on limits or on other messages. So it does
// not compare the XID of a Payload stream, which may be a part only. `header` is a new one: nothing is reset.
// `payload` views the octets of `message` behind the header. On an error the header holds what was read, enough for
// answer().
HeaderError parse_message(ConstBytes message, Header& header, ConstBytes& payload);

// emit_header writes the header; the caller adds the Payload stream. Nothing is checked.
void emit_header(xdr::XdrWriter& out, const Header& header);

// emit_call and emit_reply write the header of a Call or of a Reply without a copy of its lists.
struct Start {
  std::uint32_t xid = 0;
  std::uint32_t vers = v2::kVersion;
  std::uint32_t credit = 0;
};
void emit_call(xdr::XdrWriter& out, const Start& start, bool external, std::uint32_t inv_handle,
               const ChunkListsView& lists);
void emit_reply(xdr::XdrWriter& out, const Start& start, bool external, const ChunkListsView& lists);

// answer says with which error code a responder answers a message that parse_message refused: with none where the
// message is no request, or its XID cannot be trusted (section 7).
std::optional<Err> answer(const Header& header, HeaderError error);

}  // namespace weft::rpcrdma::v2_wg07
