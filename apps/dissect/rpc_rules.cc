#include "apps/dissect/rpc_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "apps/dissect/rule_ids.h"
#include "nfsulb/bindings.h"
#include "rpcrdma/rpc_message.h"
#include "rpcrdma/v1/header.h"
#include "rpcrdma/v2_cel05/header.h"
#include "rpcrdma/v2_wg07/header.h"

namespace weft::apps::dissect {

namespace {

namespace v1 = rpcrdma::v1;
namespace v2 = rpcrdma::v2;
using rpcrdma::Protocol;
using rpcrdma::xdr::XdrReader;

constexpr std::string_view kDropped = "the receiver drops the message";

std::string_view effect_of(Protocol protocol, bool to_responder) {
  return to_responder ? refusal_of(protocol) : kDropped;
}

// ---- messages without a header that can be read

Finding v1_fault(ConstBytes message, bool to_responder) {
  const std::string_view effect = effect_of(Protocol::k1, to_responder);
  v1::Header header;
  XdrReader in(message);
  const v1::HeaderError error = v1::parse_header(in, header);
  const bool is_error = message.size() >= v1::kErrChunkLen && header.proc == v1::Proc::kError;
  if (message.size() < v1::kMinHeader && !is_error) {
    return {"R1-5.5-01", fmt::format("a message of {} bytes: a header has 28", message.size()), std::string(kDropped)};
  }
  if (header.vers != v1::kVersion) {
    return {"R1-5.2.2-01", fmt::format("version {}, not 1", header.vers),
            std::string(to_responder ? "the responder answers RDMA_ERROR with ERR_VERS" : kDropped)};
  }
  // The lists of a type that is never sent do not matter.
  if (header.proc == v1::Proc::kMsgp) return {"R1-5.6.1-01", "RDMA_MSGP is never sent", std::string(effect)};
  const std::string what = v1::header_error_str(error);
  switch (error) {
    case v1::HeaderError::kErr: return {"R1-5.5-08", what, std::string(kDropped)};
    case v1::HeaderError::kProc: return {"R1-5.5.2-02", what, std::string(effect)};
    case v1::HeaderError::kDiscriminator: return {"R1-5.3-01", what, std::string(effect)};
    default: break;
  }
  if (is_error) return {"R1-5.5-08", "an RDMA_ERROR that is cut short", std::string(kDropped)};
  return {"R1-5.5.2-01", what, std::string(effect)};
}

std::string_view cel05_requirement(v2::HeaderError error) {
  using enum v2::HeaderError;
  switch (error) {
    case kTooShort: return "R2-7.2.4-28";
    case kVersion: return "R2-7.2.4-8";
    case kHeaderType: return "R2-7.2.4-4";
    case kErrorCode: return "R2-7.2.4-27";
    case kDiscriminator:
    case kCount:
    case kDirection: return "R2-7.2-11";
    case kPropertyValue: return "R2-6.1.1-4";
    case kTrailing: return "R2-7.2.1-4";
    case kNoPayload: return "R2-7.2.1-1";
    case kPayloadType: return "R2-7.2.2-4";
    case kReadList: return "R1-5.3.1-02";
    case kPosition: return "R1-4.5.3-03";
    default: return "R2-7.2.4-5";
  }
}

std::string_view wg07_requirement(v2::HeaderError error, ConstBytes message) {
  using enum v2::HeaderError;
  using rpcrdma::v2_wg07::Htype;
  constexpr std::size_t kTypeAt = 12;
  XdrReader in(message);
  std::uint32_t type = 0;
  const bool has_type = in.skip(kTypeAt) && in.u32(type);
  switch (error) {
    case kTooShort: return "W2-7-1";
    case kVersion: return "W2-7.1.1-1";
    case kHeaderType: return "W2-7.1.3-1";
    case kErrorCode: return "W2-7-3";
    case kPropertyValue: return "W2-5.1-3";
    case kTrailing: return "W2-6.1-2";
    case kNoPayload: return "W2-7.2.1-1";
    case kPosition:
      return has_type && type == static_cast<std::uint32_t>(Htype::kCallExternal) ? "W2-6.6.3-1" : "W2-4.5.1.1-1";
    case kBodyChunk:
      return has_type && type == static_cast<std::uint32_t>(Htype::kCallExternal) ? "W2-6.3.5-3" : "W2-6.3.8-2";
    default: return "W2-7.2-1";
  }
}

template <typename Header>
Finding v2_fault(ConstBytes message, bool to_responder, bool is_settled) {
  Header header;
  ConstBytes payload;
  const v2::HeaderError error = parse_message(message, header, payload);
  const auto code = answer(header, error);
  const bool is_answered = to_responder && code.has_value();
  std::string effect(kDropped);
  if (is_answered)
    effect = fmt::format("the responder answers RDMA2_ERROR, code {}: the RPC fails", static_cast<int>(*code));
  std::string_view requirement;
  if constexpr (std::is_same_v<Header, rpcrdma::v2_cel05::Header>) {
    requirement = cel05_requirement(error);
  } else {
    if (error == v2::HeaderError::kVersion && to_responder && is_settled) {
      return {"W2-4.3.3-2", fmt::format("version {}, and the connection has 2", header.vers),
              "the responder answers RDMA2_ERROR with VERS_MISMATCH: the RPC fails"};
    }
    requirement = wg07_requirement(error, message);
  }
  return {requirement, v2::header_error_str(error), effect};
}

// ---- version 1

bool any_wraps(const rpcrdma::ChunkListsView& lists) {
  const auto any = [](const rpcrdma::SegmentArray& chunk) { return std::ranges::any_of(chunk, rpcrdma::wraps); };
  return any(lists.call_chunk) || (lists.reply_chunk && any(*lists.reply_chunk)) ||
         std::ranges::any_of(lists.write_list, any) ||
         std::ranges::any_of(lists.read_list, [](const auto& read) { return rpcrdma::wraps(read.target); });
}

void judge_v1_type(const TransportHeader& header, bool to_responder, Frame& frame) {
  using enum rpcrdma::v1::Proc;
  if (header.is(kMsgp)) {
    frame.find("R1-5.6.1-01", "RDMA_MSGP is never sent", effect_of(Protocol::k1, to_responder));
  } else if (header.is(kDone)) {
    frame.find("R1-5.6.2-01", "RDMA_DONE is never sent", kDropped);
  } else if (header.is(kError) && to_responder) {
    frame.find("R1-5.2.4-03", "a requester sends RDMA_ERROR", kDropped);
  }
  if (!header.external) return;
  const auto& lists = header.lists;
  const std::uint64_t held = to_responder        ? rpcrdma::total_length(lists.call_chunk)
                             : lists.reply_chunk ? rpcrdma::total_length(*lists.reply_chunk)
                                                 : 0;
  if (held != 0) return;
  frame.find("R1-5.2.4-02",
             fmt::format("RDMA_NOMSG without an RPC message in its {} chunk", to_responder ? "Call" : "Reply"),
             effect_of(Protocol::k1, to_responder));
}

// Both sides' headers have the XID of the RPC message (RFC 8166 section 4.2.1).
void judge_payload(Protocol protocol, const TransportHeader& header, ConstBytes payload, bool to_responder,
                   Frame& frame) {
  XdrReader in(payload);
  std::uint32_t xid = 0;
  if (!in.u32(xid)) {
    frame.find(requirement_of(RpcRule::kPayload, protocol), "no RPC message behind the header",
               effect_of(protocol, to_responder));
  } else if (xid != header.xid) {
    frame.find(requirement_of(RpcRule::kXid, protocol),
               fmt::format("the RPC message has XID {:#010x}, and the header {:#010x}", xid, header.xid),
               effect_of(protocol, to_responder));
  }
}

// A Payload stream is XDR: its length is a multiple of four, and so is that of the chunk that holds it.
void judge_body(Protocol protocol, const TransportHeader& header, bool to_responder, Frame& frame) {
  const std::uint64_t len = to_responder               ? rpcrdma::total_length(header.lists.call_chunk)
                            : header.lists.reply_chunk ? rpcrdma::total_length(*header.lists.reply_chunk)
                                                       : 0;
  if (len % 4 == 0) return;
  frame.find(requirement_of(RpcRule::kBodyPadding, protocol),
             fmt::format("an RPC message of {} bytes in a chunk: its XDR padding is missing", len),
             to_responder ? "the responder may take it for garbage" : kDropped);
}

// An RPC message behind RDMA2_OPTIONAL has its own word on the direction.
void judge_option(const TransportHeader& header, ConstBytes payload, bool is_reply, Frame& frame) {
  XdrReader call_in(payload), reply_in(payload);
  rpcrdma::CallHeaderView call;
  rpcrdma::ReplyHeader reply;
  const bool has_call = rpcrdma::parse_call(call_in, call) == rpcrdma::CallParse::kOk && call.xid == header.xid;
  const bool has_reply = rpcrdma::parse_reply(reply_in, reply) && reply.xid == header.xid;
  if (has_call == has_reply || has_reply == is_reply) return;
  frame.find("R2-7.2.2-5", fmt::format("rdma_optdir says {}, and the RPC message is none", is_reply ? "REPLY" : "CALL"),
             "the receiver answers RDMA2_ERROR with BAD_XDR");
}

void judge_v2_type(const TransportHeader& header, ConstBytes payload, Frame& frame) {
  if (header.is(rpcrdma::v2_cel05::Proc::kOptional)) {
    judge_option(header, payload, header.reply.value_or(false), frame);
  } else if (header.is(rpcrdma::v2_wg07::Htype::kGrant) && header.xid != 0) {
    frame.find("W2-6.3.2-1", fmt::format("RDMA2_GRANT with XID {:#010x}", header.xid), "the receiver ignores the XID");
  }
}

// A Reply may have very many chunks and words. The search for the fault of its results looks at the first ones.
constexpr std::size_t kMaxChunksSearched = 16;
constexpr std::size_t kMaxOctetsSearched = 64 << 10;

template <typename T>
std::span<const T> first_of(std::span<const T> all, std::size_t most) {
  return all.first(std::min(all.size(), most));
}

// Whether the only fault of the results is XDR padding behind the count word of a result that came in a Write chunk.
bool has_inline_roundup(const rpcrdma::Binding& binding, std::uint32_t procedure, ConstBytes results,
                        std::span<const std::uint32_t> brought) {
  constexpr int kMaxTries = 8;
  int num_tries = 0;
  for (const std::uint32_t count : first_of(brought, kMaxChunksSearched)) {
    const std::size_t len = (4 - count % 4) % 4;
    if (len == 0) continue;
    XdrReader in(first_of(results, kMaxOctetsSearched));
    for (std::uint32_t word = 0; in.u32(word) && in.remaining() >= len;) {
      const ConstBytes roundup = in.rest().first(len);
      if (word != count || std::ranges::any_of(roundup, [](std::uint8_t octet) { return octet != 0; })) continue;
      const auto at = static_cast<std::ptrdiff_t>(in.position());
      std::vector<std::uint8_t> without(results.begin(), results.end());
      without.erase(without.begin() + at, without.begin() + at + static_cast<std::ptrdiff_t>(len));
      std::vector<std::optional<rpcrdma::EligibleItem>> items;
      if (binding.walk_results(procedure, without, brought, items) == rpcrdma::Walked::kWhole) return true;
      if (++num_tries == kMaxTries) return false;
    }
  }
  return false;
}

}  // namespace

Finding header_fault(Protocol protocol, ConstBytes message, bool to_responder, bool is_settled) {
  switch (protocol) {
    case Protocol::k1: return v1_fault(message, to_responder);
    case Protocol::k2Cel05: return v2_fault<rpcrdma::v2_cel05::Header>(message, to_responder, is_settled);
    case Protocol::k2Wg07: return v2_fault<rpcrdma::v2_wg07::Header>(message, to_responder, is_settled);
  }
  return {};
}

void judge_header(Protocol protocol, const TransportHeader& header, ConstBytes payload, bool to_responder,
                  Frame& frame) {
  if (protocol == Protocol::k1 && !header.is(v1::Proc::kMsg)) judge_v1_type(header, to_responder, frame);
  if (header.has_payload) judge_payload(protocol, header, payload, to_responder, frame);
  if (header.external) judge_body(protocol, header, to_responder, frame);
  if (protocol != Protocol::k1) judge_v2_type(header, payload, frame);
  if (header.lists.empty()) return;
  const std::string_view effect = effect_of(protocol, to_responder);
  for (const rpcrdma::ReadSegment& segment : header.lists.read_list) {
    if (segment.position % 4 == 0) continue;
    frame.find(requirement_of(RpcRule::kPosition, protocol),
               fmt::format("Position {} is no multiple of four", segment.position), effect);
    break;
  }
  if (any_wraps(header.lists)) frame.find(requirement_of(RpcRule::kWrap, protocol), "a segment passes 2^64", effect);
  // Position-Zero chunks are of the Read list, and the parser puts them beside it.
  if (!to_responder && !(header.lists.read_list.empty() && header.lists.call_chunk.empty())) {
    frame.find(requirement_of(RpcRule::kReplyReadList, protocol), "a Reply with a Read list", kDropped);
  }
}

void judge_xid(Protocol protocol, std::uint32_t xid, ConstBytes head, Frame& frame) {
  XdrReader in(head);
  std::uint32_t word = 0;
  if (!in.u32(word) || word == xid) return;
  frame.find(requirement_of(RpcRule::kXid, protocol),
             fmt::format("the RPC message in a chunk has XID {:#010x}, and its header {:#010x}", word, xid),
             "the receiver takes the XID of the header, or drops the message");
}

void judge_returned(Protocol protocol, const rpcrdma::ChunkListsView& offered, const rpcrdma::ChunkListsView& returned,
                    Frame& frame) {
  const auto is_changed = [](const rpcrdma::SegmentArray& ours, const rpcrdma::SegmentArray& theirs) {
    return !std::ranges::equal(ours, theirs, [](const rpcrdma::Segment& a, const rpcrdma::Segment& b) {
      return a.handle == b.handle && a.offset == b.offset && b.length <= a.length;
    });
  };
  const auto judge = [&](const rpcrdma::SegmentArray& ours, const rpcrdma::SegmentArray& theirs) {
    if (ours.size() != theirs.size()) {
      frame.find(
          requirement_of(RpcRule::kNumSegments, protocol),
          fmt::format("a chunk comes back with {} segments, and was offered with {}", theirs.size(), ours.size()),
          kDropped);
    } else if (is_changed(ours, theirs)) {
      frame.find(requirement_of(RpcRule::kSegments, protocol),
                 "a chunk comes back with another handle or offset, or longer than it was offered", kDropped);
    }
  };
  if (offered.write_list.size() != returned.write_list.size()) {
    frame.find(requirement_of(RpcRule::kNumChunks, protocol),
               fmt::format("{} Write chunks come back, and {} were offered", returned.write_list.size(),
                           offered.write_list.size()),
               kDropped);
  } else {
    for (std::size_t i = 0; i < offered.write_list.size(); ++i) judge(offered.write_list[i], returned.write_list[i]);
  }
  if (!returned.reply_chunk) {
    if (offered.reply_chunk && protocol == Protocol::k1) {
      frame.find(requirement_of(RpcRule::kReplyChunk, protocol),
                 "the Reply chunk that the Call offered does not come back", kDropped);
    }
    return;
  }
  if (!offered.reply_chunk) {
    return frame.find(requirement_of(RpcRule::kReplyChunk, protocol), "a Reply chunk comes back that was not offered",
                      kDropped);
  }
  judge(*offered.reply_chunk, *returned.reply_chunk);
}

void judge_written_chunk(Protocol protocol, const WrittenChunk& chunk, bool is_reply_chunk, Frame& frame) {
  if (chunk.whole < chunk.returned) {
    return frame.find(
        requirement_of(is_reply_chunk ? RpcRule::kReplyWritten : RpcRule::kWritten, protocol),
        fmt::format(
            "a chunk comes back with {} bytes, and RDMA Writes brought {} of them from the start of its segments",
            chunk.returned, chunk.whole),
        "the requester takes bytes for results that the responder did not write");
  }
  // The responder may have written into a chunk and given it up: it comes back unused.
  if (is_reply_chunk || chunk.returned == 0 || chunk.more == 0) return;
  if ((chunk.returned + chunk.more) % 4 == 0 && chunk.more < 4) {
    return frame.find(requirement_of(RpcRule::kRoundup, protocol),
                      fmt::format("{} bytes of XDR roundup are written into a Write chunk", chunk.more),
                      "the requester does not look at them");
  }
  frame.find(
      requirement_of(RpcRule::kWritten, protocol),
      fmt::format("a chunk comes back with {} bytes, and RDMA Writes brought {} more", chunk.returned, chunk.more),
      "the requester does not look at them");
}

void judge_arguments(Protocol protocol, const ProcedureKey& procedure, ConstBytes args, std::size_t rpc_len,
                     const rpcrdma::ChunkListsView& lists, Frame& frame) {
  constexpr std::string_view kGarbage = "the responder answers GARBAGE_ARGS: the RPC fails";
  constexpr const char* kNoArgument = "a Read chunk at a Position without an argument that may be reduced";
  if (lists.read_list.empty()) return;
  std::map<std::size_t, std::uint64_t> chunks;  // octets by position
  for (const rpcrdma::ReadSegment& segment : lists.read_list) chunks[segment.position] += segment.target.length;
  if (chunks.begin()->first < rpc_len) {
    return frame.find(requirement_of(RpcRule::kArgument, protocol), "a Read chunk at a Position inside the RPC header",
                      kGarbage);
  }
  const rpcrdma::Binding* binding = nfsulb::find_binding(procedure.program, procedure.version);
  if (binding == nullptr) return;
  std::vector<std::size_t> reduced;
  for (const auto& [position, len] : chunks) reduced.push_back(position - rpc_len);
  std::vector<rpcrdma::EligibleItem> items;
  const auto walked = binding->walk_arguments(procedure.procedure, args, reduced, items);
  if (walked == rpcrdma::Walked::kUnknown) return;
  if (walked == rpcrdma::Walked::kGarbage) {
    return frame.find(requirement_of(RpcRule::kArgument, protocol), kNoArgument, kGarbage);
  }
  std::vector<std::size_t> found;
  for (const rpcrdma::EligibleItem& item : items) {
    const auto chunk = chunks.find(item.position + rpc_len);
    if (!item.reduced || chunk == chunks.end()) continue;
    found.push_back(chunk->first);
    const std::uint64_t with_roundup = (std::uint64_t{item.len} + 3) / 4 * 4;
    if (chunk->second != item.len && chunk->second != with_roundup) {
      frame.find(requirement_of(RpcRule::kReadChunkLen, protocol),
                 fmt::format("a Read chunk of {} bytes for an argument of {}", chunk->second, item.len), kGarbage);
    }
  }
  if (found.size() != chunks.size()) {
    frame.find(requirement_of(RpcRule::kArgument, protocol), kNoArgument, kGarbage);
  }
}

namespace {

// OtherLen: the length that the results give to a chunk, where the chunk has another one.
struct OtherLen {
  std::size_t chunk = 0;
  std::uint32_t len = 0;
};

// The count word of a result that is in a Write chunk, if another length of this chunk makes the results whole.
std::optional<OtherLen> find_other_len(const rpcrdma::Binding& binding, std::uint32_t procedure, ConstBytes results,
                                       std::span<const std::uint32_t> brought) {
  constexpr int kMaxTries = 64;
  int num_tries = 0;
  std::vector<std::optional<rpcrdma::EligibleItem>> items;
  std::vector<std::uint32_t> lens(brought.begin(), brought.end());
  for (std::size_t i = 0; i < std::min(lens.size(), kMaxChunksSearched); ++i) {
    XdrReader in(first_of(results, kMaxOctetsSearched));
    for (std::uint32_t word = 0, last = 0; in.u32(word); last = word) {
      if (word == 0 || word == last || word == brought[i]) continue;
      if (++num_tries > kMaxTries) return std::nullopt;
      lens[i] = word;
      if (binding.walk_results(procedure, results, lens, items) == rpcrdma::Walked::kWhole) return OtherLen{i, word};
    }
    lens[i] = brought[i];
  }
  return std::nullopt;
}

// Two chunks that would fit the results in each other's place.
std::optional<std::pair<std::size_t, std::size_t>> find_exchanged(const rpcrdma::Binding& binding,
                                                                  std::uint32_t procedure, ConstBytes results,
                                                                  std::span<const std::uint32_t> brought) {
  std::vector<std::optional<rpcrdma::EligibleItem>> items;
  std::vector<std::uint32_t> lens(brought.begin(), brought.end());
  const std::size_t num = std::min(lens.size(), kMaxChunksSearched);
  for (std::size_t i = 0; i < num; ++i) {
    for (std::size_t j = i + 1; j < num; ++j) {
      if (lens[i] == lens[j] || results.size() > kMaxOctetsSearched) continue;
      std::swap(lens[i], lens[j]);
      if (binding.walk_results(procedure, results, lens, items) == rpcrdma::Walked::kWhole) return std::pair(i, j);
      std::swap(lens[i], lens[j]);
    }
  }
  return std::nullopt;
}

// Results that do not fit the octets of the Write chunks.
void judge_reduced(Protocol protocol, const rpcrdma::Binding& binding, std::uint32_t procedure, ConstBytes results,
                   std::span<const std::uint32_t> brought, Frame& frame) {
  constexpr std::string_view kFails = "the requester drops the Reply: the RPC fails";
  std::vector<std::optional<rpcrdma::EligibleItem>> items;
  const bool has_octets = std::ranges::any_of(brought, [](std::uint32_t len) { return len != 0; });
  if (has_octets && binding.walk_results(procedure, results, {}, items) == rpcrdma::Walked::kWhole) {
    frame.find(requirement_of(RpcRule::kResult, protocol),
               "a Write chunk has bytes, and no result is missing that may be reduced", kFails);
  } else if (has_inline_roundup(binding, procedure, results, brought)) {
    frame.find(requirement_of(RpcRule::kInlineRoundup, protocol),
               "the XDR padding of a result stands in the Payload stream, and the result is in a Write chunk", kFails);
  } else if (const auto exchanged = find_exchanged(binding, procedure, results, brought)) {
    frame.find(
        requirement_of(RpcRule::kChunkOrder, protocol),
        fmt::format("Write chunks {} and {} have each other's results", exchanged->first + 1, exchanged->second + 1),
        kFails);
  } else if (const auto other = find_other_len(binding, procedure, results, brought)) {
    frame.find(requirement_of(RpcRule::kWritten, protocol),
               fmt::format("Write chunk {} comes back with {} bytes for a result of {}", other->chunk + 1,
                           brought[other->chunk], other->len),
               kFails);
  }
}

}  // namespace

void judge_results(Protocol protocol, const CallTable::Call& call, ConstBytes results,
                   std::span<const std::uint32_t> brought, rpcrdma::Walked walked,
                   std::span<const std::optional<rpcrdma::EligibleItem>> items, Frame& frame) {
  const auto& offered = call.offered.write_list;
  const rpcrdma::Binding* binding = offered.empty() ? nullptr : nfsulb::find_binding(call.program, call.version);
  if (binding == nullptr || binding->walk_results == nullptr) return;
  constexpr std::string_view kFails = "the requester drops the Reply: the RPC fails";
  if (call.num_eligible) {
    for (std::size_t i = *call.num_eligible; i < brought.size(); ++i) {
      if (brought[i] == 0) continue;
      return frame.find(requirement_of(RpcRule::kResult, protocol),
                        fmt::format("Write chunk {} has {} bytes, and {} of the results may be reduced", i + 1,
                                    brought[i], *call.num_eligible),
                        kFails);
    }
  }
  if (walked == rpcrdma::Walked::kGarbage)
    return judge_reduced(protocol, *binding, call.procedure, results, brought, frame);
  if (walked != rpcrdma::Walked::kWhole) return;
  for (std::size_t i = 0; i < std::min(items.size(), offered.size()); ++i) {
    if (!items[i] || items[i]->reduced || items[i]->len == 0) continue;
    if (rpcrdma::total_length(offered[i]) < items[i]->len) continue;
    frame.find(requirement_of(RpcRule::kEligibleResult, protocol),
               fmt::format("a result of {} bytes is inline, though Write chunk {} has room", items[i]->len, i + 1),
               kFails);
  }
}

std::optional<std::size_t> num_eligible_results(const ProcedureKey& procedure, ConstBytes args,
                                                std::span<const std::size_t> reduced) {
  const rpcrdma::Binding* binding = nfsulb::find_binding(procedure.program, procedure.version);
  if (binding == nullptr || binding->bound_reply == nullptr) return std::nullopt;
  static rpcrdma::ReplyBound bound;  // for its memory
  const auto walked = binding->bound_reply(procedure.procedure, args, reduced, {}, bound);
  return walked == rpcrdma::Walked::kWhole ? std::optional(bound.items.size()) : std::nullopt;
}

void judge_no_results(Protocol protocol, std::span<const std::uint32_t> brought, Frame& frame) {
  const auto chunk = std::ranges::find_if(brought, [](std::uint32_t len) { return len != 0; });
  if (chunk == brought.end()) return;
  frame.find(
      requirement_of(RpcRule::kResult, protocol),
      fmt::format("Write chunk {} has {} bytes, and the Reply has no results", chunk - brought.begin() + 1, *chunk),
      "the requester takes the RPC for failed");
}

namespace {

std::string_view rule_of_gss(Protocol protocol, GssUse use) {
  if (is_gss_control(use)) return requirement_of(RpcRule::kGssControl, protocol);
  return is_gss_wrapped(use) ? requirement_of(RpcRule::kGssWrapped, protocol) : "";
}

}  // namespace

void judge_gss(Protocol protocol, GssUse use, const rpcrdma::ChunkListsView& lists, Frame& frame) {
  const std::string_view requirement = rule_of_gss(protocol, use);
  if (requirement.empty() || lists.read_list.empty()) return;
  frame.find(requirement, fmt::format("a Read chunk for an argument under {}", gss_words(use)),
             "the responder cannot verify the message: the RPC fails");
}

void judge_gss_reply(Protocol protocol, GssUse use, const rpcrdma::ChunkListsView& lists, Frame& frame) {
  const std::string_view requirement = rule_of_gss(protocol, use);
  const auto has_octets = [](const rpcrdma::SegmentArray& chunk) { return rpcrdma::total_length(chunk) != 0; };
  if (requirement.empty() || std::ranges::none_of(lists.write_list, has_octets)) return;
  frame.find(requirement, fmt::format("a Write chunk with a result under {}", gss_words(use)),
             "the requester cannot verify the message: the RPC fails");
}

}  // namespace weft::apps::dissect
