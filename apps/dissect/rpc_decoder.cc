#include "apps/dissect/rpc_decoder.h"

#include <algorithm>
#include <chrono>

#include "apps/common/output.h"
#include "apps/dissect/layer_writer.h"
#include "apps/dissect/program_text.h"
#include "rpcrdma/rpc_message.h"
#include "rpcrdma/v2/first_message.h"

namespace weft::apps::dissect {

namespace {

using rpcrdma::Protocol;
using rpcrdma::xdr::XdrReader;

// Messages of other protocols may look like a header. A whole RPC message behind it has the header's XID.
bool is_certain(Protocol protocol, ConstBytes message) {
  const auto header = parse_transport_header(protocol, message);
  if (!header || header->version != (protocol == Protocol::k1 ? 1 : 2)) return false;
  if (!header->has_payload) return header->len == message.size();
  XdrReader in(message.subspan(header->len));
  std::uint32_t xid = 0;
  return in.u32(xid) && xid == header->xid;
}

std::uint64_t octets_of(const rpcrdma::SegmentArray& segments) {
  return rpcrdma::total_length(segments);
}

void tell_lists(const rpcrdma::ChunkListsView& lists, LayerWriter& layer) {
  if (!lists.call_chunk.empty()) {
    layer.line(", Call chunk {} bytes in {}", octets_of(lists.call_chunk), lists.call_chunk.size());
  }
  std::uint64_t read = 0;
  for (const rpcrdma::ReadSegment& segment : lists.read_list) read += segment.target.length;
  if (!lists.read_list.empty()) {
    layer.line(", Read list {} bytes in {} at {}", read, lists.read_list.size(), lists.read_list.front().position);
  }
  for (const rpcrdma::SegmentArray& chunk : lists.write_list) {
    layer.line(", Write chunk {} bytes in {}", octets_of(chunk), chunk.size());
  }
  if (lists.reply_chunk) {
    layer.line(", Reply chunk {} bytes in {}", octets_of(*lists.reply_chunk), lists.reply_chunk->size());
  }
}

// SegmentFields adds the fields of segments. A segment is the same 16 octets in every version, so its place is found by
// them: from the last one's on, for equal segments, or from the beginning.
class SegmentFields {
 public:
  static constexpr int kMax = 64;

  SegmentFields(ConstBytes header, LayerWriter& layer) : header_(header), layer_(layer) {}

  void add(const rpcrdma::Segment& segment, std::string_view handle, std::string_view length, std::string_view offset) {
    if (num_++ >= kMax) return;
    auto at = find(segment, next_);
    if (!at) at = find(segment, 0);
    if (!at) return;
    next_ = *at + kLen;
    layer_.field(handle, *at, 4, "{:#010x}", segment.handle);
    layer_.field(length, *at + 4, 4, "{}", segment.length);
    layer_.field(offset, *at + 8, 8, "{:#x}", segment.offset);
  }

 private:
  static constexpr std::size_t kLen = 16, kXdrUnit = 4;

  std::optional<std::size_t> find(const rpcrdma::Segment& wanted, std::size_t from) const {
    for (std::size_t at = from; at + kLen <= header_.size(); at += kXdrUnit) {
      XdrReader in(header_.subspan(at));
      rpcrdma::Segment segment;
      if (in.u32(segment.handle) && in.u32(segment.length) && in.u64(segment.offset) && segment == wanted) return at;
    }
    return std::nullopt;
  }

  ConstBytes header_;
  LayerWriter& layer_;
  std::size_t next_ = 0;
  int num_ = 0;
};

void tell_segments(const rpcrdma::ChunkListsView& lists, ConstBytes header, LayerWriter& layer) {
  SegmentFields fields(header, layer);
  for (const rpcrdma::Segment& segment : lists.call_chunk) {
    fields.add(segment, "Call chunk handle", "Call chunk length", "Call chunk offset");
  }
  for (const rpcrdma::ReadSegment& segment : lists.read_list) {
    fields.add(segment.target, "Read handle", "Read length", "Read offset");
  }
  for (const rpcrdma::SegmentArray& chunk : lists.write_list) {
    for (const rpcrdma::Segment& segment : chunk) fields.add(segment, "Write handle", "Write length", "Write offset");
  }
  if (!lists.reply_chunk) return;
  for (const rpcrdma::Segment& segment : *lists.reply_chunk) {
    fields.add(segment, "Reply handle", "Reply length", "Reply offset");
  }
}

// Octets that Write chunks brought, for the walk over reduced results.
std::vector<std::uint32_t> brought_by(const rpcrdma::ChunkListsView& lists) {
  std::vector<std::uint32_t> brought;
  for (const rpcrdma::SegmentArray& chunk : lists.write_list) {
    brought.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(octets_of(chunk), UINT32_MAX)));
  }
  return brought;
}

std::vector<std::size_t> positions_of(const rpcrdma::ChunkListsView& lists) {
  std::vector<std::size_t> positions;
  for (const rpcrdma::ReadSegment& segment : lists.read_list) {
    if (positions.empty() || positions.back() != segment.position) positions.push_back(segment.position);
  }
  return positions;
}

}  // namespace

// Without the first message, only a message that is one version's and no other's tells.
std::optional<Protocol> RpcDecoder::guess(ConstBytes message) {
  using rpcrdma::v2::FirstMessage;
  std::optional<Protocol> first;
  switch (rpcrdma::v2::classify_first_message(message)) {
    case FirstMessage::kVersion1: first = Protocol::k1; break;
    case FirstMessage::kCel05: first = Protocol::k2Cel05; break;
    case FirstMessage::kWg07: first = Protocol::k2Wg07; break;
    case FirstMessage::kUnknown: break;
  }
  if (first && is_certain(*first, message)) return first;
  for (const Protocol protocol : {Protocol::k1, Protocol::k2Cel05, Protocol::k2Wg07}) {
    if (is_certain(protocol, message)) return protocol;
  }
  return std::nullopt;
}

// A client that asks for the version of its server sends its first messages in several versions.
std::optional<TransportHeader> RpcDecoder::header_of(ConstBytes message) {
  if (protocol_) {
    if (auto header = parse_transport_header(*protocol_, message)) return header;
  }
  const auto guessed = guess(message);
  if (!guessed) return std::nullopt;
  protocol_ = guessed;
  return parse_transport_header(*protocol_, message);
}

void RpcDecoder::on_send(const Send& send, Frame& frame) {
  if (send.octets.empty() || (!protocol_ && num_foreign_ >= kMaxForeign)) return;
  const auto header = header_of(send.octets);
  if (!header) {
    ++num_foreign_;
    if (protocol_) LayerWriter(frame, LayerKind::kRpcRdma, options_).line("no RPC-over-RDMA header");
    return;
  }
  tell_header(*header, send, frame);
  if (header->has_payload) on_payload(*header, send, frame);
  if (header->external && !header->lists.call_chunk.empty()) remember(*header, send.from, frame);
}

void RpcDecoder::tell_header(const TransportHeader& header, const Send& send, Frame& frame) {
  frame.facts.xid = header.xid;
  frame.facts.credit = header.credit;
  LayerWriter layer(frame, LayerKind::kRpcRdma, options_, Source::kMessage);
  layer.line("{} {}, XID {:#010x}, {} credits{}", rpcrdma::protocol_str(*protocol_), header.type, header.xid,
             header.credit, header.text);
  tell_lists(header.lists, layer);
  layer.field("rdma_xid", 0, 4, "{:#010x}", header.xid);
  layer.field("rdma_vers", 4, 4, "{}", header.version);
  layer.field("rdma_credit", 8, 4, "{}", header.credit);
  layer.field("type", 12, 4, "{}", header.type);
  layer.field("header", 0, header.len, "{} bytes", header.len);
  if (layer.wants_fields()) tell_segments(header.lists, send.octets.first(header.len), layer);
  if (send.len > send.octets.size()) layer.line(" (the capture has {} of {} bytes)", send.octets.size(), send.len);
}

void RpcDecoder::on_payload(const TransportHeader& header, const Send& send, Frame& frame) {
  const ConstBytes payload = send.octets.subspan(header.len);
  XdrReader in(payload);
  std::uint32_t xid = 0, type = 0;
  if (!in.u32(xid) || !in.u32(type)) return;
  LayerWriter layer(frame, LayerKind::kRpc, options_, Source::kMessage);
  if (type == static_cast<std::uint32_t>(rpcrdma::MsgType::kCall)) {
    remember(header, send.from, frame);
    tell_call(half(send.from).calls[header.xid], payload, header, header.len, frame, layer);
  } else {
    tell_reply(other(send.from), payload, header, header.len, frame, layer);
  }
}

void RpcDecoder::tell_call(Call& call, ConstBytes payload, const TransportHeader& header, std::size_t at, Frame& frame,
                           LayerWriter& layer) {
  XdrReader in(payload);
  rpcrdma::CallHeaderView rpc;
  if (rpcrdma::parse_call(in, rpc) != rpcrdma::CallParse::kOk) {
    layer.line("CALL with a broken RPC header");
    return;
  }
  call.program = rpc.program;
  call.version = rpc.version;
  call.procedure = rpc.procedure;
  call.is_known = true;
  const auto positions = positions_of(header.lists);
  // Positions count from the beginning of the Payload stream, and arguments from behind the RPC header.
  std::vector<std::size_t> reduced;
  for (const std::size_t position : positions) {
    if (position >= in.position()) reduced.push_back(position - in.position());
  }
  frame.facts.rpc = {.xid = rpc.xid, .procedure = procedure_name(rpc.program, rpc.version, rpc.procedure)};
  layer.line("CALL {}{}", frame.facts.rpc->procedure,
             argument_text(rpc.program, rpc.version, rpc.procedure, in.rest(), reduced));
  layer.field("xid", at, 4, "{:#010x}", rpc.xid);
  layer.field("program", at + 12, 4, "{}", rpc.program);
  layer.field("version", at + 16, 4, "{}", rpc.version);
  layer.field("procedure", at + 20, 4, "{}", rpc.procedure);
  layer.field("credential flavor", at + 24, 4, "{}", rpc.cred.flavor);
  layer.field("arguments", at + in.position(), in.remaining(), "{} bytes", in.remaining());
}

void RpcDecoder::tell_reply(Side caller, ConstBytes payload, const TransportHeader& header, std::size_t at,
                            Frame& frame, LayerWriter& layer) {
  XdrReader in(payload);
  rpcrdma::ReplyHeader rpc;
  if (!rpcrdma::parse_reply(in, rpc)) {
    layer.line("REPLY with a broken RPC header");
    return;
  }
  layer.field("xid", at, 4, "{:#010x}", rpc.xid);
  layer.field("results", at + in.position(), in.remaining(), "{} bytes", in.remaining());
  const auto call = half(caller).calls.find(rpc.xid);
  if (call == half(caller).calls.end()) {
    layer.line("REPLY to a Call that is not in the capture");
    return;
  }
  const Call& of = call->second;
  RpcFact& fact = frame.facts.rpc.emplace(RpcFact{.is_reply = true, .xid = rpc.xid});
  fact.latency = frame.arrival.time - of.time;
  fact.failed = rpc.denied || rpc.accept != rpcrdma::AcceptStat::kSuccess;
  if (of.is_known) fact.procedure = procedure_name(of.program, of.version, of.procedure);
  layer.line("REPLY");
  if (of.is_known) layer.line(" {}", fact.procedure);
  if (fact.failed) {
    layer.line(": {}", rpcrdma::describe(rpc));
  } else if (of.is_known) {
    layer.line("{}", result_text(of.program, of.version, of.procedure, in.rest(), brought_by(header.lists)));
  }
  layer.line(", {}", format_duration_ns(static_cast<double>(fact.latency->count())));
}

void RpcDecoder::remember(const TransportHeader& header, Side from, Frame& frame) {
  forget(from, header.xid);
  Half& own = half(from);
  if (own.calls.size() >= kMaxCalls || own.segments.size() >= kMaxSegments) {
    // Calls without a Reply in the capture.
    own.calls.clear();
    own.segments.clear();
  }
  Call& call = own.calls[header.xid];
  call.time = frame.arrival.time;
  const auto offer = [&](std::uint32_t handle, Segment segment) {
    if (own.segments.size() >= kMaxSegments) return;
    segment.xid = header.xid;
    own.segments[handle] = segment;
    call.handles.push_back(handle);
  };
  using Use = Segment::Use;
  for (const rpcrdma::Segment& segment : header.lists.call_chunk) {
    offer(segment.handle, {.use = Use::kCall, .is_first = &segment == header.lists.call_chunk.data()});
  }
  for (const rpcrdma::ReadSegment& segment : header.lists.read_list) {
    offer(segment.target.handle, {.use = Use::kArgument, .index = segment.position});
  }
  std::uint32_t index = 0;
  for (const rpcrdma::SegmentArray& chunk : header.lists.write_list) {
    ++index;
    for (const rpcrdma::Segment& segment : chunk) offer(segment.handle, {.use = Use::kResult, .index = index});
  }
  if (!header.lists.reply_chunk) return;
  for (const rpcrdma::Segment& segment : *header.lists.reply_chunk) {
    offer(segment.handle, {.use = Use::kReply, .is_first = &segment == header.lists.reply_chunk->data()});
  }
}

void RpcDecoder::forget(Side from, std::uint32_t xid) {
  Half& own = half(from);
  const auto call = own.calls.find(xid);
  if (call == own.calls.end()) return;
  for (const std::uint32_t handle : call->second.handles) {
    const auto segment = own.segments.find(handle);
    if (segment != own.segments.end() && segment->second.xid == xid) own.segments.erase(segment);
  }
  own.calls.erase(call);
}

void RpcDecoder::on_transfer(const Transfer& transfer, Frame& frame, LayerWriter& layer) {
  const Side owner = transfer.kind == Transfer::Kind::kReadResponse ? transfer.from : other(transfer.from);
  const Half& memory = half(owner);
  std::uint32_t stag = transfer.stag;
  if (transfer.kind == Transfer::Kind::kReadResponse) {
    const auto source = half(other(transfer.from)).read_sources.find(transfer.stag);
    if (source == half(other(transfer.from)).read_sources.end()) return;
    stag = source->second;
  }
  const auto found = memory.segments.find(stag);
  if (found == memory.segments.end()) return;
  const Segment& segment = found->second;
  frame.facts.xid = segment.xid;
  if (transfer.kind == Transfer::Kind::kReadRequest) {
    auto& sources = half(transfer.from).read_sources;
    if (sources.size() >= kMaxSegments) sources.clear();
    sources[transfer.sink_stag] = transfer.stag;
  }
  switch (segment.use) {
    case Segment::Use::kCall: layer.line(" (Call {:#010x})", segment.xid); break;
    case Segment::Use::kArgument: layer.line(" (argument at {} of Call {:#010x})", segment.index, segment.xid); break;
    case Segment::Use::kResult: layer.line(" (result {} of Call {:#010x})", segment.index, segment.xid); break;
    case Segment::Use::kReply: layer.line(" (Reply of Call {:#010x})", segment.xid); break;
  }
  if (segment.is_first && !transfer.head.empty()) tell_in_chunk(transfer, owner, segment, frame);
}

// The RPC message of a header without Payload stream is in a chunk: its beginning names the procedure.
void RpcDecoder::tell_in_chunk(const Transfer& transfer, Side owner, const Segment& segment, Frame& frame) {
  const auto call = half(owner).calls.find(segment.xid);
  if (call == half(owner).calls.end()) return;
  // No field: the octets are parts of several frames.
  const Options no_fields;
  LayerWriter layer(frame, LayerKind::kRpc, no_fields);
  const TransportHeader header{.xid = segment.xid};
  if (transfer.kind == Transfer::Kind::kReadResponse) {
    tell_call(call->second, transfer.head, header, 0, frame, layer);
  } else {
    tell_reply(owner, transfer.head, header, 0, frame, layer);
  }
}

}  // namespace weft::apps::dissect
