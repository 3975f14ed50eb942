#include "tests/wire_v2/rpc.h"

#include <rpc/rpc.h>

#include <array>
#include <map>

namespace weft::wire_v2 {
namespace {

constexpr std::size_t kWord = 4;
constexpr Rules kForm = {"R2-7.2.1-1", "W2-4.1-5"};
constexpr Rules kXid = {"R2-7.2.4-5", "W2-7.2-1"};
constexpr Rules kType = {"R2-7.2.2-4", "W2-6.1-1"};
constexpr Rules kPosition = {"R1-4.4.5-02", "W2-4.5.1-1"};
constexpr Rules kBodyChunk = {"R2-3.1-3", "W2-4.5.3-1"};

std::uint32_t word_at(Octets octets, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < kWord; ++i) word = word << 8 | octets[at + i];
  return word;
}

// Where libtirpc puts credentials and verifiers; longer ones than these are refused (RFC 5531 section 8.2).
using Auth = std::array<char, MAX_AUTH_BYTES>;

// The length of the RPC header; nothing where it is none.
std::optional<std::size_t> read_call(XDR& in) {
  Auth credential{}, verifier{};
  rpc_msg message{};
  message.rm_call.cb_cred.oa_base = credential.data();
  message.rm_call.cb_verf.oa_base = verifier.data();
  if (xdr_callmsg(&in, &message) != TRUE) return std::nullopt;
  return xdr_getpos(&in);
}

bool_t nothing(XDR*, ...) {
  return TRUE;
}

std::optional<std::size_t> read_reply(XDR& in, std::size_t len) {
  Auth verifier{};
  rpc_msg message{};
  message.acpted_rply.ar_verf.oa_base = verifier.data();
  message.acpted_rply.ar_results.proc = nothing;
  if (xdr_replymsg(&in, &message) != TRUE) return std::nullopt;
  const std::size_t header_len = xdr_getpos(&in);
  const bool has_results = message.rm_reply.rp_stat == MSG_ACCEPTED && message.acpted_rply.ar_stat == SUCCESS;
  if (message.rm_reply.rp_stat == MSG_ACCEPTED && message.acpted_rply.ar_stat > SYSTEM_ERR) return std::nullopt;
  if (!has_results && header_len != len) return std::nullopt;
  return header_len;
}

std::optional<std::size_t> header_len_of(Direction direction, Octets payload) {
  Bytes copy(payload.begin(), payload.end());
  XDR in;
  xdrmem_create(&in, reinterpret_cast<char*>(copy.data()), static_cast<u_int>(copy.size()), XDR_DECODE);
  return direction == Direction::kCall ? read_call(in) : read_reply(in, copy.size());
}

// Positions count in the stream before items were taken out of it: an item stands behind the Call's header and no
// further than the octets that are there with the items before it.
bool positions_hold(const ReadList& reads, std::uint64_t header_len, std::uint64_t stream_len) {
  std::map<std::uint32_t, std::uint64_t> chunks;
  for (const ReadSegment& read : reads) {
    if (read.position > 0) chunks[read.position] += read.target.length;
  }
  for (const auto& [position, len] : chunks) {
    if (position < header_len || position > stream_len) return false;
    stream_len += (len + 3) / 4 * 4;
  }
  return true;
}

}  // namespace

std::optional<Fault> judge_payload(const Message& header, Octets payload) {
  const auto fault = [&](const Rules& rules, const char* text) { return Fault{rules.in(header.profile), text}; };
  if (payload.size() % kWord != 0) return fault(kForm, "the Payload stream is no multiple of four octets");
  if (payload.size() < 2 * kWord) return fault(kForm, "the Payload stream holds no RPC message");
  if (word_at(payload, 0) != header.xid) return fault(kXid, "the RPC message has another XID");
  const std::uint32_t type = header.direction == Direction::kCall ? CALL : REPLY;
  if (word_at(payload, kWord) != type) return fault(kType, "the RPC message is of the other direction");
  const auto len = header_len_of(*header.direction, payload);
  if (!len) return fault(kForm, "the Payload stream begins with no RPC header");
  if (!positions_hold(header.reads, *len, payload.size())) return fault(kPosition, "a Position is outside the stream");
  return std::nullopt;
}

std::optional<Fault> judge_external(const Message& header) {
  const auto fault = [&](const Rules& rules, const char* text) { return Fault{rules.in(header.profile), text}; };
  const bool is_call = header.direction == Direction::kCall;
  std::uint64_t len = 0;
  if (!is_call) {
    if (!header.reply) return fault({"R2-3.1-3", "W2-6.3.8-2"}, "there is no Reply chunk for the Payload stream");
    len = length_of(*header.reply);
  } else if (header.profile == Profile::kCel05) {
    for (const ReadSegment& read : header.reads) len += read.position == 0 ? read.target.length : 0;
  } else {
    if (header.call.empty()) return fault({"", "W2-6.3.5-3"}, "the Call chunk is empty");
    len = length_of(header.call);
  }
  if (len < (is_call ? kMinCall : kMinReply)) return fault(kBodyChunk, "the body chunk is too short for its message");
  if (len % kWord != 0) return fault(kBodyChunk, "the body chunk is no multiple of four octets");
  if (!positions_hold(header.reads, kMinCall, len)) return fault(kPosition, "a Position is outside the stream");
  return std::nullopt;
}

}  // namespace weft::wire_v2
