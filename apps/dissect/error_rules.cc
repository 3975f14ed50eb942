#include "apps/dissect/error_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "apps/dissect/rule_ids.h"
#include "apps/dissect/transport_header.h"
#include "nfsulb/programs.h"
#include "rpcrdma/v2_cel05/header.h"
#include "rpcrdma/v2_wg07/header.h"

namespace weft::apps::dissect {

namespace {

namespace cel05 = rpcrdma::v2_cel05;
namespace wg07 = rpcrdma::v2_wg07;
using rpcrdma::ChunkListsView;
using rpcrdma::Protocol;
using rpcrdma::TransportError;
using Code = TransportError::Code;
using Asked = ErrorRules::Asked;
using State = ErrorRules::State;

constexpr std::string_view kWaits = "the requester drops the error, and waits for an answer";
constexpr std::string_view kFails = "the requester takes the error as it stands: the RPC fails";

std::uint32_t version_of(Protocol protocol) {
  return protocol == Protocol::k1 ? 1 : 2;
}

bool is_defined(Protocol protocol, std::uint32_t type) {
  const auto is_between = [type](auto first, auto last) {
    return type >= static_cast<std::uint32_t>(first) && type <= static_cast<std::uint32_t>(last);
  };
  switch (protocol) {
    case Protocol::k1: return true;  // its errors do not name types
    case Protocol::k2Cel05:
      return is_between(cel05::Proc::kMsg, cel05::Proc::kNomsg) ||
             is_between(cel05::Proc::kError, cel05::Proc::kUpdprop);
    case Protocol::k2Wg07: return is_between(wg07::Htype::kError, wg07::Htype::kReplyInline);
  }
  return true;
}

// A receiver of 2-cel05 need not support options, nor operations on properties.
bool is_option(std::uint32_t type) {
  return type == static_cast<std::uint32_t>(cel05::Proc::kOptional);
}
bool is_property_operation(std::uint32_t type) {
  return type >= static_cast<std::uint32_t>(cel05::Proc::kConnprop) &&
         type <= static_cast<std::uint32_t>(cel05::Proc::kUpdprop);
}

bool names_chunks(Code code) {
  return code == Code::kReadChunks || code == Code::kWriteChunks || code == Code::kSegments ||
         code == Code::kWriteResource || code == Code::kReplyResource;
}

// Counts: of the chunk lists of a Call.
struct Counts {
  std::size_t read_chunks = 0;  // without the Call chunk
  std::size_t bodies = 0;       // Call chunks
  std::size_t segments = 0;
};

Counts count(const ChunkListsView& lists) {
  std::set<std::uint32_t> positions;
  for (const rpcrdma::ReadSegment& segment : lists.read_list) positions.insert(segment.position);
  Counts counts{.read_chunks = positions.size(), .bodies = lists.call_chunk.empty() ? 0u : 1u};
  for_each_segment(lists, [&counts](std::uint32_t, const CallTable::Segment&) { ++counts.segments; });
  return counts;
}

// Judge holds one error against the message that it answers and the state of the connection.
struct Judge {
  const TransportError& error;
  const Asked& asked;
  const State& state;
  Frame& frame;

  void find(std::string_view requirement, std::string what, std::string_view effect = kFails) const {
    constexpr std::uint32_t kErrorAt = 16, kErrorLen = 12;  // the code, and its words
    frame.findings.push_back(
        {requirement, std::move(what), std::string(effect), {Source::kMessage, kErrorAt, kErrorLen}});
  }
  void find(RpcRule rule, std::string what) const { find(requirement_of(rule, state.protocol), std::move(what)); }

  void version() const;
  void other_version() const;
  void type() const;
  void contents() const;
  void chunks() const;
  void v1_chunk() const;
  bool is_shown() const;
  void write_resource(const ChunkListsView& lists) const;
  void reply_resource(const ChunkListsView& lists, std::size_t num_segments) const;
  void accepted_chunks(const ChunkListsView& lists) const;
};

// A version error says that its sender does not support the version of the message.
void Judge::version() const {
  const std::uint32_t version = asked.words.vers;
  const bool is_own = version == version_of(state.protocol);
  if (error.low <= version && version <= error.high) {
    const bool is_change = state.is_settled && !is_own && state.protocol == Protocol::k2Wg07;
    find(is_change ? RpcRule::kVersionError : RpcRule::kVersionRange,
         fmt::format("refuses version {}, and says that it supports {} to {}", version, error.low, error.high));
  } else if (is_own && state.is_settled) {
    find(RpcRule::kVersionRange, fmt::format("refuses version {}, in which the server has answered", version));
  }
}

// A message of another version than the connection's has one kind of error.
void Judge::other_version() const {
  if (error.code == Code::kVersion || error.code == Code::kOtherVersion) return;
  find(RpcRule::kVersionError,
       fmt::format("a message of version {} is refused for another reason than its version", asked.words.vers));
}

void Judge::type() const {
  const std::uint32_t type = asked.words.htype;
  if (!is_defined(state.protocol, type)) {
    if (error.code == Code::kMessageType || error.code == Code::kSystem) return;
    return find(RpcRule::kTypeError,
                fmt::format("a message of the unknown type {} is refused for another reason", type));
  }
  const bool is_cel05 = state.protocol == Protocol::k2Cel05;
  if (error.code != Code::kMessageType || (is_cel05 && is_property_operation(type))) return;
  if (is_cel05 && is_option(type)) return find("R2-5.1-3", "an option is refused as an unknown type of message");
  find(RpcRule::kTypeError, fmt::format("refuses type {}, which each receiver has to support", type));
}

// Some errors name contents, such as properties or parts, that the message does not have.
void Judge::contents() const {
  const std::uint32_t type = asked.words.htype;
  if (state.protocol == Protocol::k2Cel05) {
    const bool is_optional = is_option(type) || is_property_operation(type);
    if (error.code == Code::kOption && !is_optional) find("R2-7.2.4-24", "the message that it refuses has no option");
    if (is_property_operation(type) && names_chunks(error.code)) {
      find("R2-6.3-2", "an operation on properties is refused for its chunks, and has none");
    }
  } else if (error.code == Code::kProperty) {
    const bool has_properties = type == static_cast<std::uint32_t>(wg07::Htype::kConnpropMiddle) ||
                                type == static_cast<std::uint32_t>(wg07::Htype::kConnpropFinal);
    if (!has_properties) find("W2-7.2.2-1", "refuses a property, and the message has none");
  }
  if (asked.call == nullptr || !asked.call->is_sound) return;
  if (error.code == Code::kSequence) find("W2-7.1.4-1", "refuses the parts of a Call that came in one message");
  // Only the receiver sees the octets of chunks and their places in the arguments.
  const ChunkListsView& offered = asked.call->offered;
  const bool has_read_chunks = !offered.read_list.empty() || !offered.call_chunk.empty();
  if (error.code != Code::kBadHeader || !asked.call->is_known || has_read_chunks) return;
  const bool has_chunks = !offered.write_list.empty() || offered.reply_chunk;
  const bool is_reverse_draft = state.is_reverse && has_chunks && state.protocol == Protocol::k2Wg07;
  find(is_reverse_draft ? "W2-4.6.4-2" : requirement_of(RpcRule::kBadXdr, state.protocol),
       "refuses a Call as malformed whose header and Payload stream can be read");
}

void Judge::chunks() const {
  if (asked.call == nullptr) return;
  const ChunkListsView& lists = asked.call->offered;
  const Counts counts = count(lists);
  const std::size_t num_write = lists.write_list.size();
  const auto passes = [this](RpcRule rule, std::size_t num, std::string_view name) {
    if (error.limit < num) return false;
    find(rule, fmt::format("a limit of {} {} refuses a Call with {}", error.limit, name, num));
    return true;
  };
  switch (error.code) {
    case Code::kReadChunks:
      if (!passes(RpcRule::kReadChunks, counts.read_chunks + counts.bodies, "Read chunks")) accepted_chunks(lists);
      return;
    case Code::kWriteChunks:
      if (passes(RpcRule::kWriteChunks, num_write, "Write chunks")) return;
      if (error.limit == 0 && state.protocol == Protocol::k2Cel05) {
        return find("R2-7.2.4-14", "Write chunks are refused with a limit of 0, and not with REPLY_RESOURCE");
      }
      return accepted_chunks(lists);
    case Code::kSegments: passes(RpcRule::kSegmentLimit, counts.segments, "segments"); return;
    case Code::kWriteResource: return write_resource(lists);
    case Code::kReplyResource: return reply_resource(lists, counts.segments);
    default: return;
  }
}

// A length of 0 is one that the responder does not know.
void Judge::write_resource(const ChunkListsView& lists) const {
  const auto& chunks = lists.write_list;
  if (chunks.empty()) return find(RpcRule::kWriteResource, "a Write chunk is too short, and the Call has none");
  if (error.chunk > chunks.size()) {
    return find(RpcRule::kChunkIndex,
                fmt::format("Write chunk {} is too short, and the Call has {}", error.chunk, chunks.size()));
  }
  if (error.needed == 0) return;
  const auto len_of = [](const rpcrdma::SegmentArray& chunk) { return rpcrdma::total_length(chunk); };
  const std::uint64_t len =
      error.chunk != 0 ? len_of(chunks[error.chunk - 1]) : len_of(std::ranges::min(chunks, {}, len_of));
  if (error.needed > len) return;
  find(RpcRule::kChunkLength, fmt::format("a Write chunk of {} bytes is too short for {}", len, error.needed));
}

// The header of a Reply returns the lists: with many segments it may be too long for any Send.
void Judge::reply_resource(const ChunkListsView& lists, std::size_t num_segments) const {
  constexpr std::size_t kMaxSegments = 32;
  if (!lists.reply_chunk || error.needed == 0 || num_segments > kMaxSegments) return;
  const std::uint64_t len = rpcrdma::total_length(*lists.reply_chunk);
  if (error.needed > len) return;
  find(RpcRule::kReplyResource, fmt::format("a Reply chunk of {} bytes is too short for {}", len, error.needed));
}

// nfs-ulb-v2-06 section 5.4.2: an NFSv4 server takes so many chunks. One that may not read memory of the client cannot.
void Judge::accepted_chunks(const ChunkListsView& lists) const {
  const CallTable::Call& call = *asked.call;
  const bool is_nfs4 = call.is_known && call.program == nfsulb::kNfsProgram && call.version == nfsulb::kNfsV4;
  if (!is_nfs4 || state.is_reverse || count(lists).read_chunks > 1 || lists.write_list.size() > 1) return;
  if (error.code == Code::kReadChunks && !state.has_read) return;
  find("U2-5.4.2-2", "refuses a Call with one Read chunk and one Write chunk at most");
}

// ERR_CHUNK of version 1 may be about the room for the Reply, too: that of NULL fits every Send, if RPCSEC_GSS puts
// nothing into its place.
void Judge::v1_chunk() const {
  if (error.code != Code::kChunk || asked.call == nullptr || !asked.call->is_sound || !asked.call->is_known) return;
  const ChunkListsView& lists = asked.call->offered;
  if (asked.call->gss != GssUse::kNone || !lists.empty()) return;
  constexpr std::uint32_t kNull = 0;
  if (asked.call->procedure != kNull) return;
  find(RpcRule::kBadXdr, "refuses a NULL without chunks whose header can be read");
}

// Whether the octets of the message show the fault that the error names. Some faults are of the responder's own choice,
// memory or limits.
bool Judge::is_shown() const {
  if (!asked.is_readable || (asked.call != nullptr && asked.call->has_fault)) return true;
  if (error.code == Code::kVersion || error.code == Code::kOtherVersion) {
    return asked.words.vers != version_of(state.protocol);
  }
  if (error.code == Code::kMessageType) return !is_defined(state.protocol, asked.words.htype);
  if (asked.call == nullptr) return false;
  const ChunkListsView& lists = asked.call->offered;
  const Counts counts = count(lists);
  const auto len_of = [](const rpcrdma::SegmentArray& chunk) { return rpcrdma::total_length(chunk); };
  switch (error.code) {
    case Code::kReadChunks: return error.limit < counts.read_chunks + counts.bodies;
    case Code::kWriteChunks: return error.limit < lists.write_list.size();
    case Code::kSegments: return error.limit < counts.segments;
    case Code::kWriteResource:
      return error.needed != 0 && error.chunk != 0 && error.chunk <= lists.write_list.size() &&
             len_of(lists.write_list[error.chunk - 1]) < error.needed;
    case Code::kReplyResource:
      return error.needed != 0 && lists.reply_chunk && len_of(*lists.reply_chunk) < error.needed;
    default: return false;
  }
}

std::string_view requirement_of_reply(Code code, Protocol protocol) {
  switch (code) {
    case Code::kBadHeader: return requirement_of(RpcRule::kProcessed, protocol);
    case Code::kSequence: return "W2-7.1.4-1";
    default: return "";
  }
}

}  // namespace

void ErrorRules::on_other(Side from, ConstBytes message, bool is_readable) {
  is_idle_ = false;
  Half& own = half(from);
  Asked asked{.words = {}, .is_readable = is_readable};
  rpcrdma::xdr::XdrReader in(message);
  if (!rpcrdma::v2::parse_prefix(in, asked.words)) {
    own.has_forgotten = true;
    return;
  }
  // Parts of one message, and GRANTs, differ in their credits alone.
  const auto is_same = [&](const Asked& one) {
    return one.words.xid == asked.words.xid && one.words.vers == asked.words.vers &&
           one.words.htype == asked.words.htype && one.is_readable == is_readable;
  };
  if (std::ranges::any_of(own.others, is_same)) return;
  if (own.others.size() == kMaxAsked) {
    own.others.erase(own.others.begin());
    own.has_forgotten = true;
  }
  own.others.push_back(asked);
}

void ErrorRules::on_lost() {
  is_idle_ = false;
  for (Half& each : halves_) {
    each.has_lost = true;
    each.refused.clear();
    each.refused_type.reset();
  }
}

void ErrorRules::on_call(Side from, std::uint32_t xid) {
  Half& own = half(from);
  const auto taken = std::ranges::remove(own.refused, xid, &Refused::xid);
  own.refused.erase(taken.begin(), taken.end());
}

// The one message that the error can answer.
std::optional<Asked> ErrorRules::asked_by(const Half& half, const TransportHeader& header,
                                          const CallTable& calls) const {
  const CallTable::Call* call = calls.find(header.xid);
  const bool may_be_other = half.has_forgotten || (half.has_lost && call == nullptr);
  if (may_be_other || (call != nullptr && !calls.is_certain(*call))) return std::nullopt;
  std::optional<Asked> asked;
  if (call != nullptr) {
    asked = Asked{.words = {.xid = header.xid, .vers = call->transport_version, .htype = call->transport_type},
                  .is_readable = true,
                  .call = call};
  }
  for (const Asked& one : half.others) {
    if (one.words.xid != header.xid) continue;
    if (asked) return std::nullopt;
    asked = one;
  }
  return asked;
}

void ErrorRules::on_error(Side from, const TransportHeader& header, const CallTable& calls, const State& state,
                          Frame& frame) {
  is_idle_ = false;
  Half& asker = half(other(from));
  const auto has_xid = [&](const Asked& one) { return one.words.xid == header.xid; };
  const TransportError& error = *header.error;
  const auto asked = asked_by(asker, header, calls);
  const bool was_refused = std::ranges::find(asker.refused, header.xid, &Refused::xid) != asker.refused.end();
  const bool may_answer = asker.has_forgotten || asker.has_lost || was_refused || calls.find(header.xid) != nullptr ||
                          calls.had(header.xid) != CallTable::Had::kNever || std::ranges::any_of(asker.others, has_xid);
  const std::size_t num_before = frame.findings.size();
  if (!may_answer) {
    frame.facts.verdict = Verdict::kRefuted;
    frame.find(requirement_of(RpcRule::kErrorXid, state.protocol),
               fmt::format("no request has the error's XID {:#010x}", header.xid), kWaits);
    return on_other(from, frame.message, true);  // an end may answer even this
  }
  if (asked) judge(*asked, header, state, asker, frame);
  frame.facts.verdict = frame.findings.size() != num_before                      ? Verdict::kRefuted
                        : asked && Judge{error, *asked, state, frame}.is_shown() ? Verdict::kConfirmed
                                                                                 : Verdict::kUnseen;
  std::erase_if(asker.others, has_xid);
  asker.refused.push_back({header.xid, error.code});
  if (asker.refused.size() <= kMaxRefused) return;
  asker.refused.pop_front();
  asker.has_forgotten = true;
}

void ErrorRules::judge(const Asked& asked, const TransportHeader& header, const State& state, Half& asker,
                       Frame& frame) const {
  const TransportError& error = *header.error;
  const Judge judge{error, asked, state, frame};
  if (header.version != asked.words.vers) {
    return frame.find(
        requirement_of(RpcRule::kErrorVersion, state.protocol),
        fmt::format("an error of version {} answers a message of version {}", header.version, asked.words.vers),
        kWaits);
  }
  if (error.code == Code::kVersion) return judge.version();
  if (asked.words.vers != version_of(state.protocol)) {
    if (state.is_settled) judge.other_version();
    return;
  }
  if (error.code == Code::kOtherVersion) {
    return frame.find("W2-7.1.2-1", "refuses a change of the version, and the message has that of the connection",
                      kFails);
  }
  if (!state.is_settled) return;
  if (state.protocol == Protocol::k1) return judge.v1_chunk();
  judge.type();
  judge.contents();
  judge.chunks();
  const bool is_grant = asked.words.htype == static_cast<std::uint32_t>(wg07::Htype::kGrant);
  if (error.code == Code::kMessageType && !is_grant) asker.refused_type = {asked.words.htype, state.num_uncaused};
}

void ErrorRules::on_reply(Side from, const TransportHeader& header, const CallTable& calls, Protocol protocol,
                          Frame& frame) {
  Half& asker = half(other(from));
  if (!asker.others.empty()) std::erase_if(asker.others, [&](const Asked& one) { return one.words.xid == header.xid; });
  if (asker.refused.empty() || calls.find(header.xid) != nullptr) return;
  const auto refused = std::ranges::find(asker.refused, header.xid, &Refused::xid);
  if (refused == asker.refused.end()) return;
  const std::string_view requirement = requirement_of_reply(refused->code, protocol);
  if (requirement.empty()) return;
  frame.find(requirement, "a Reply to a Call that was refused as one that cannot be read",
             "the requester drops the Reply");
}

// W2-7.1.3-2. The sender has seen the refusal: without it, it may not send so many messages.
void ErrorRules::judge_type(Side from, const TransportHeader& header, std::uint32_t type, std::uint32_t num,
                            Frame& frame) const {
  const auto& refused = halves_[static_cast<std::size_t>(from)].refused_type;
  if (!refused || refused->type != type || !frame.findings.empty()) return;
  if (static_cast<std::int32_t>(num - refused->num_uncaused) <= 0) return;
  frame.find("W2-7.1.3-2", fmt::format("{} again, which the other side has refused", type_str(header.type)),
             "the receiver refuses it again");
}

}  // namespace weft::apps::dissect
