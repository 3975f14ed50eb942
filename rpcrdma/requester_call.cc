#include <algorithm>
#include <cassert>
#include <utility>

#include "rpcrdma/requester.h"
#include "rpcrdma/requester_state.h"

// The part of the Requester that sends: forms of Calls, chunks, registrations.
namespace weft::rpcrdma {

namespace {

// PROG_MISMATCH and RPC_MISMATCH Replies have no results but are longer than a plain header.
constexpr std::size_t kLongestErrorReply = 32;

constexpr std::uint8_t kZeros[4] = {};

// Of the send queue: what binds and invalidations of one Call usually take, and what one with many segments may.
constexpr std::uint32_t kRequestsPerCall = 4;
constexpr std::uint32_t kRequestsForWindows = 64;

// R1-10.2.2.2-02: with RPCSEC_GSS nobody knows beforehand how long the verifier is.
std::size_t verf_room(const CallSpec& spec) {
  const bool is_gss = spec.cred != nullptr && spec.cred->flavor == static_cast<std::uint32_t>(AuthFlavor::kRpcsecGss);
  return is_gss ? kMaxAuthBody : xdr::round_up(spec.max_verf);
}

}  // namespace

void Requester::widen_for_windows(Channel::Config& shape, std::uint32_t max) {
  const std::uint32_t most = shape.max_send_wr + kRequestsPerCall * shape.num_sends + kRequestsForWindows;
  shape.max_send_wr = std::max(shape.max_send_wr, std::min(most, max));
}

Requester::Transmitted Requester::transmit(Call& call) {
  if (channel_->send_queue_room() == 0) return Transmitted::kNoRoom;
  const auto send = channel_->take_send();
  if (!send) return Transmitted::kNoRoom;
  if (call.spec.xid) {
    call.xid = *call.spec.xid;
  } else if (!call.keeps_xid) {
    call.xid = 0;
    do {
      ++next_xid_;
    } while (xid_is_used(next_xid_));
    call.xid = next_xid_;
  }
  call.header = v1::Header{};
  call.header.xid = call.xid;
  call.header.credit = config_.credits;

  choose_reply_form(call);
  if (!register_reply(call) || !register_call(call)) {
    channel_->give_send(*send);
    return Transmitted::kFailed;
  }
  if (const auto bound = bind_windows(call); bound != Transmitted::kSent) {
    channel_->give_send(*send);
    return bound;
  }
  const std::size_t len = emit(call, channel_->send_buffer(*send));
  if (!channel_->post_send(*send, len)) return not_posted(call);
  if (call.keeps_xid) ++counters_.retransmitted;
  if (!call.spec.is_health_check) {
    last_program_ = call.spec.program;
    last_version_ = call.spec.version;
  }
  ++counters_.calls_sent;
  return Transmitted::kSent;
}

Requester::Transmitted Requester::not_posted(Call& call) const {
  call.text = *channel_->failure();
  if (!config_.retransmits) return Transmitted::kFailed;
  // The connection is over before anybody said so: nothing is wrong with this Call.
  call.unsend();
  return Transmitted::kNoRoom;
}

// Binds what the Send that follows tells of, or nothing.
Requester::Transmitted Requester::bind_windows(Call& call) {
  const std::size_t need = call.registrations.num_to_bind() + 1;
  if (need > channel_->config().max_send_wr) {
    call.text = "the Call needs more memory windows than the send queue takes";
    return Transmitted::kFailed;
  }
  if (need > channel_->send_queue_room()) {
    call.unsend();
    return Transmitted::kNoRoom;
  }
  return call.registrations.bind(*channel_) ? Transmitted::kSent : not_posted(call);
}

// RFC 8166 sections 4.3.2 and 4.3.3, from the bound of the Reply.
void Requester::choose_reply_form(Call& call) const {
  if (config_.short_only) return;
  const CallSpec& spec = call.spec;
  std::size_t whole = std::max(kPlainReplyHeader + verf_room(spec) + spec.max_results, kLongestErrorReply);
  for (const ScatteredBytes& item : spec.result_items) whole += xdr::round_up(len_of(item));
  std::size_t transport = v1::kMinHeader, payload = whole;
  // A retry has a Reply chunk in any case: where that excludes Write chunks, all results come in it.
  const bool all_in_reply_chunk = call.min_reply_chunk != 0 && !config_.chunks.write_list_with_reply_chunk;
  if (transport + payload > reply_threshold_ && !all_in_reply_chunk) {
    // R1-4.4.6.2-06: no Write list where nothing is to come through it.
    std::size_t num = std::min(spec.result_items.size(), config_.chunks.max_write_chunks);
    while (num > 0 && len_of(spec.result_items[num - 1]) == 0) --num;
    call.num_writes = num;
    for (std::size_t i = 0; i < num; ++i) {
      transport += 8 + v1::kSegmentLen * num_segments_of(spec.result_items[i]);
      payload -= xdr::round_up(len_of(spec.result_items[i]));
    }
    if (transport + payload > reply_threshold_ && !config_.chunks.write_list_with_reply_chunk) {
      call.num_writes = 0;
      transport = v1::kMinHeader;
      payload = whole;
    }
  }
  // R1-5.3.3-01: strictly larger than the threshold, transport header included.
  call.reply_chunk_len = transport + payload > reply_threshold_ ? xdr::round_up(payload) : 0;
  call.reply_chunk_len = std::max(call.reply_chunk_len, call.min_reply_chunk);
}

bool Requester::register_memory(Call& call, const void* octets, std::size_t len, verbs::Access access,
                                Segment& segment) {
  // What is only read by the peer is never written through this pointer.
  const auto status = call.registrations.add(pd_, config_.windows, const_cast<void*>(octets), len, access, segment);
  if (!status.ok()) call.text = "cannot register memory: " + status.error().message;
  return status.ok();
}

bool Requester::register_reply(Call& call) {
  const auto writable = verbs::Access::kRemoteWrite;
  Segment segment;
  for (std::size_t i = 0; i < call.num_writes; ++i) {
    SegmentArray& chunk = call.header.lists.write_list.emplace_back();
    for (const MutBytes room : call.spec.result_items[i]) {
      if (room.empty()) continue;
      if (!register_memory(call, room.data(), room.size(), writable, segment)) return false;
      chunk.push_back(segment);
    }
    ++counters_.write_chunks;
  }
  if (call.reply_chunk_len != 0) {
    call.reply_memory.resize(call.reply_chunk_len);
    if (!register_memory(call, call.reply_memory.data(), call.reply_chunk_len, writable, segment)) return false;
    call.header.lists.reply_chunk = SegmentArray{segment};
    ++counters_.reply_chunks;
  }
  return true;
}

// Segments of the Read chunk of an item.
std::size_t Requester::num_read_segments(const GatheredBytes& data) const {
  const bool has_pad = config_.chunks.roundup_in_read_chunks && xdr::padding(len_of(data)) != 0;
  return num_segments_of(data) + (has_pad && num_segments_of(data) < config_.chunks.max_segments ? 1 : 0);
}

// Chooses the items that get a Read chunk so that the Call fits the threshold: the longest first, and no more of them
// than servers are known to take. `need`: octets of the Call with all items inline; then with those chosen reduced.
void Requester::choose_reduced(Call& call, std::size_t& need) const {
  const auto& items = call.spec.items;
  for (std::size_t num = 0; need > call_threshold_ && num < config_.chunks.max_read_chunks; ++num) {
    std::size_t longest = 0;
    std::size_t longest_len = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::size_t len = len_of(items[i].data);
      if (call.is_reduced(i) || len <= longest_len) continue;
      longest = i;
      longest_len = len;
    }
    if (longest_len == 0) return;
    call.reduced |= std::uint64_t{1} << longest;
    need -= xdr::round_up(longest_len);
    need += v1::kReadSegmentLen * num_read_segments(items[longest].data);
  }
}

// Adds the Read chunk of item i, whose Position counts what stands before it in the unreduced Payload stream, items
// with their roundup (R1-4.4.5-02, R1-4.4.5-03).
bool Requester::register_item(Call& call, std::size_t i) {
  const CallSpec& spec = call.spec;
  std::size_t position = call.rpc_len() + spec.items[i].position;
  for (std::size_t before = 0; before < i; ++before) position += xdr::round_up(len_of(spec.items[before].data));
  ReadSegment segment{static_cast<std::uint32_t>(position), {}};
  const auto add = [&](ConstBytes octets) {
    if (octets.empty()) return true;
    if (!register_memory(call, octets.data(), octets.size(), verbs::Access::kRemoteRead, segment.target)) return false;
    call.header.lists.read_list.push_back(segment);
    return true;
  };
  const GatheredBytes& data = spec.items[i].data;
  for (const ConstBytes octets : data) {
    if (!add(octets)) return false;
  }
  ++counters_.read_chunks;
  // R1-4.4.5.1-01: without roundup, unless asked for.
  if (num_read_segments(data) == num_segments_of(data)) return true;
  return add(ConstBytes(kZeros).first(xdr::padding(len_of(data))));
}

// Chooses the form of the Call: all inline, items as Read chunks, or all of it as a Position Zero Read chunk whose
// segments gather it from where it stands.
bool Requester::register_call(Call& call) {
  const CallSpec& spec = call.spec;
  std::size_t need = v1::header_len(call.header.lists) + call.rpc_len() + spec.args.size();
  for (const ArgumentItem& item : spec.items) need += xdr::round_up(len_of(item.data));
  if (config_.short_only && need > call_threshold_) {
    call.text = "the Call does not fit the inline threshold, and the peer takes no chunks";
    return false;
  }
  choose_reduced(call, need);
  if (need > call_threshold_) return register_long_call(call);
  return register_items(call);
}

bool Requester::register_items(Call& call) {
  for (std::size_t i = 0; i < call.spec.items.size(); ++i) {
    if (call.is_reduced(i) && !register_item(call, i)) return false;
  }
  return true;
}

// Lays out the Payload stream of a Long Call: `pieces` with what stands in call.head between the items; in one piece,
// all of it copied to call.head, where `in_one`.
void Requester::gather_long_call(Call& call, bool in_one, std::vector<LongPiece>& pieces) {
  const CallSpec& spec = call.spec;
  call.head.clear();
  pieces.clear();
  xdr::XdrWriter head(call.head);
  std::size_t closed = 0;  // octets of the head that are in pieces
  const auto close_head = [&] {
    if (head.size() > closed) pieces.push_back({nullptr, closed, head.size() - closed});
    closed = head.size();
  };
  emit_call_view(head, call.rpc());
  std::size_t done = 0;
  for (std::size_t i = 0; i < spec.items.size(); ++i) {
    if (call.is_reduced(i)) continue;
    const ArgumentItem& item = spec.items[i];
    head.raw(spec.args.subspan(done, item.position - done));
    done = item.position;
    for (const ConstBytes octets : item.data) {
      if (in_one || octets.empty()) {
        head.raw(octets);
        continue;
      }
      close_head();
      pieces.push_back({octets.data(), 0, octets.size()});
    }
    head.zeros(xdr::padding(len_of(item.data)));
  }
  head.raw(spec.args.subspan(done));
  close_head();
}

bool Requester::register_long_call(Call& call) {
  if (!config_.chunks.long_calls_with_items) call.reduced = 0;
  call.long_call = true;
  ++counters_.long_calls;
  call.header.proc = v1::Proc::kNomsg;
  std::size_t header_len = v1::header_len(call.header.lists);
  for (std::size_t i = 0; i < call.spec.items.size(); ++i) {
    if (call.is_reduced(i)) header_len += v1::kReadSegmentLen * num_read_segments(call.spec.items[i].data);
  }
  std::vector<LongPiece> pieces;
  gather_long_call(call, false, pieces);
  if (pieces.size() > config_.chunks.max_segments ||
      header_len + v1::kReadSegmentLen * pieces.size() > call_threshold_) {
    gather_long_call(call, true, pieces);
  }
  if (header_len + v1::kReadSegmentLen * pieces.size() > call_threshold_) {
    call.text = "the chunk lists of the Call do not fit the inline threshold";
    return false;
  }
  Segment head;
  if (!register_memory(call, call.head.data(), call.head.size(), verbs::Access::kRemoteRead, head)) return false;
  for (const LongPiece& piece : pieces) {
    ReadSegment segment;
    if (piece.octets == nullptr) {
      segment.target = {head.handle, static_cast<std::uint32_t>(piece.len), head.offset + piece.offset};
    } else if (!register_memory(call, piece.octets, piece.len, verbs::Access::kRemoteRead, segment.target)) {
      return false;
    }
    call.header.lists.read_list.push_back(segment);
  }
  return register_items(call);
}

std::size_t Requester::emit(const Call& call, MutBytes out) const {
  xdr::XdrWriter writer(out);
  v1::emit_header(writer, call.header);
  if (!call.long_call) {
    const CallSpec& spec = call.spec;
    emit_call_view(writer, call.rpc());
    std::size_t done = 0;
    for (std::size_t i = 0; i < spec.items.size(); ++i) {
      const ArgumentItem& item = spec.items[i];
      if (call.is_reduced(i)) continue;
      writer.raw(spec.args.subspan(done, item.position - done));
      done = item.position;
      for (const ConstBytes octets : item.data) writer.raw(octets);
      writer.zeros(xdr::padding(len_of(item.data)));
    }
    writer.raw(spec.args.subspan(done));
  }
  assert(writer.size() <= call_threshold_);  // R1-5.2.4-05
  return writer.size();
}

}  // namespace weft::rpcrdma
