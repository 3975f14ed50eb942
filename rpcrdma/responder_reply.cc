#include <algorithm>
#include <cassert>
#include <utility>

#include "requirements/violates.h"
#include "rpcrdma/responder.h"
#include "rpcrdma/responder_state.h"

// The part of the Responder that answers: forms of Replies, RDMA Writes, RDMA_ERROR.
namespace weft::rpcrdma {

namespace {

std::uint64_t address_of(const std::uint8_t* octets) {
  return reinterpret_cast<std::uintptr_t>(octets);
}

verbs::Sge sge_of(ConstBytes octets, std::uint32_t lkey) {
  return {address_of(octets.data()), static_cast<std::uint32_t>(octets.size()), lkey};
}

// An inline piece of the Payload stream as long as this is sent from where it stands; for a shorter one a copy costs
// less than another gather element.
constexpr std::size_t kGatherFrom = 1024;

// The roundup of an item, wherever it stands.
constexpr std::uint8_t kZeros[4] = {};

std::size_t rpc_header_len(const ReplyHeader& rpc, const ServedReply& reply) {
  return reply.header.empty() ? reply_header_len(rpc) : reply.header.size();
}

void emit_rpc_header(xdr::XdrWriter& out, const ReplyHeader& rpc, const ServedReply& reply) {
  if (reply.header.empty()) {
    emit_reply(out, rpc);
  } else {
    out.raw(reply.header);
  }
}

// The Call's Write list and Reply chunk as they go back: same segments, nothing filled yet (R1-4.4.6-04, R1-5.3.3-05).
ChunkListsView unused_lists(const ChunkLists& lists) {
  const auto copy = [](const Chunk& chunk) {
    SegmentArray segments = chunk.segments;
    for (Segment& segment : segments) segment.length = 0;
    return segments;
  };
  ChunkListsView view;
  for (const Chunk& chunk : lists.write_chunks()) view.write_list.push_back(copy(chunk));
  if (lists.reply_chunk() != nullptr) view.reply_chunk = copy(*lists.reply_chunk());
  return view;
}

// Fills `returned` with how much of each segment `len` octets take, in order (R1-4.4.6-03).
void fill_segments(std::span<const Segment> offered, std::size_t len, SegmentArray& returned) {
  for (std::size_t i = 0; i < offered.size(); ++i) {
    returned[i].length = static_cast<std::uint32_t>(std::min<std::size_t>(offered[i].length, len));
    len -= returned[i].length;
  }
}

}  // namespace

void Responder::answer_error(std::uint32_t slot, v1::Err err, const char* why) {
  tell(verbs::LogLevel::kWarn, calls_[slot].xid, err == v1::Err::kVers ? "ERR_VERS" : "ERR_CHUNK", why);
  ++(err == v1::Err::kVers ? counters_.err_vers : counters_.err_chunk);
  calls_[slot].state = CallSlot::State::kAnswering;
  Answer& answer = answers_.emplace_back();
  answer.slot = slot;
  answer.err = err;
  pump();
}

void Responder::answer_stat(std::uint32_t slot, AcceptStat stat, const char* why) {
  tell(verbs::LogLevel::kWarn, calls_[slot].xid, accept_stat_str(stat), why);
  if (stat == AcceptStat::kGarbageArgs) ++counters_.garbage_args;
  ReplyHeader rpc{.xid = calls_[slot].xid, .verf = {}, .accept = stat};
  answer(slot, std::move(rpc), {});
}

// While Sends are under way one of them ends and leaves its buffer.
void Responder::tell_sends_are_short() {
  if (sends_under_way_ != 0 || std::exchange(told_short_, true)) return;
  tell(verbs::LogLevel::kWarn, calls_[answers_.front().slot].xid, "its answer waits",
       "there is no memory for Send buffers, or it cannot be registered");
}

// What RPC says of a Call that no service gets.
void Responder::refuse(std::uint32_t slot, ReplyHeader&& rpc) {
  tell(verbs::LogLevel::kInfo, rpc.xid, "refused", describe(rpc));
  answer(slot, std::move(rpc), {});
}

void Responder::answer(std::uint32_t slot, ReplyHeader&& rpc, ServedReply&& reply) {
  calls_[slot].state = CallSlot::State::kAnswering;
  Answer& answer = answers_.emplace_back();
  answer.slot = slot;
  answer.rpc = std::move(rpc);
  answer.reply = std::move(reply);
  pump();
}

void Responder::release_call(std::uint32_t slot) {
  CallSlot& call = calls_[slot];
  share_.give_back(call.held);
  --calls_under_way_;
  call.reset();
}

void Responder::pump() {
  if (pumping_) return;
  pumping_ = true;
  while (!channel_.failure()) {
    if (posting_) {
      if (!post(outgoing_[*posting_], *posting_)) break;
      posting_.reset();
      continue;
    }
    if (answers_.empty()) break;
    const auto send = channel_.take_send();
    if (!send) {
      tell_sends_are_short();
      break;
    }
    told_short_ = false;
    if (*send >= outgoing_.size()) outgoing_.resize(*send + 1);
    ++sends_under_way_;
    Answer& answer = answers_.front();
    Outgoing& out = outgoing_[*send];
    out.call_slot = answer.slot;
    out.xid = calls_[answer.slot].xid;
    build(answer, out, *send);
    out.in_use = true;
    out.held = std::exchange(calls_[answer.slot].held, 0);
    answers_.pop_front();
    posting_ = send;
  }
  pumping_ = false;
}

// Posts the Writes and then the Send of one answer; false where the send queue is full.
bool Responder::post(Outgoing& out, std::uint32_t send) {
  for (; out.next_write < out.writes.size(); ++out.next_write) {
    if (channel_.send_queue_room() == 0) return false;
    const Outgoing::Write& write = out.writes[out.next_write];
    const auto sges = std::span(out.sges).subspan(write.first_sge, write.num_sges);
    if (!channel_.post_rdma(verbs::WrOpcode::kRdmaWrite, sges, write.remote_addr, write.rkey, send,
                            channel_.wants_signal())) {
      return false;
    }
    std::uint64_t len = 0;
    for (const verbs::Sge& sge : sges) len += sge.length;
    remember_write(out.xid, write.rkey, write.remote_addr, len);
  }
  if (channel_.send_queue_room() == 0) return false;
  // R1-4.3.1-09: the Receive for the peer's next Call is there before the answer that lets it send one.
  release_call(out.call_slot);
  if (!channel_.post_receive(out.call_slot)) return false;
  if (out.invalidate) ++counters_.invalidations;
  if (!out.send_sges.empty()) return channel_.post_send(send, out.send_sges, out.invalidate);
  const verbs::Sge sge = sge_of(channel_.send_buffer(send).first(out.send_len), channel_.send_lkey(send));
  return channel_.post_send(send, std::span(&sge, 1), out.invalidate);
}

// On iWARP a Write and the Reply behind it have completed when TCP took them, a round trip before the peer can refuse.
void Responder::remember_write(std::uint32_t xid, std::uint32_t handle, std::uint64_t offset, std::uint64_t len) {
  const Written written{xid, handle, offset, len};
  if (written_.size() < kMaxWritten) {
    written_.push_back(written);
  } else {
    written_[next_written_] = written;
    next_written_ = (next_written_ + 1) % kMaxWritten;
  }
}

void Responder::on_write_refused(std::uint32_t send) {
  if (is_sending(send)) on_fatal(outgoing_[send].xid, "an RDMA Write");
}

// A peer may use one handle for several Calls, and for one after the other the same memory: the last one counts.
void Responder::on_write_refused(std::uint32_t handle, std::uint64_t offset) {
  for (std::size_t i = 0; i < written_.size(); ++i) {
    const std::size_t back = next_written_ + written_.size() - 1 - i;
    const Written& written = written_[back % written_.size()];
    if (written.handle != handle || offset < written.offset || offset - written.offset >= written.len) continue;
    return on_fatal(written.xid, refused_str("an RDMA Write", handle, offset));
  }
}

void Responder::on_send_done(std::uint32_t slot) {
  --sends_under_way_;
  share_.give_back(outgoing_[slot].held);
  outgoing_[slot].reset();
  channel_.give_send(slot);
  admit();
  pump();
  pump_reads();
}

void Responder::on_write_done() {
  pump();
  pump_reads();
}

void Responder::build(Answer& answer, Outgoing& out, std::uint32_t send) {
  if (!answer.err) {
    const char* why = build_rpc(answer, out, send);
    if (why == nullptr) return;
    // R1-5.5.3-02, U1-3.1-01: nothing was offered that this Reply fits, and nothing of it was sent (U1-3.1-08).
    ++counters_.err_chunk;
    // What failed here ends the connection, which has a line of its own.
    if (!channel_.failure()) tell(verbs::LogLevel::kInfo, out.xid, "ERR_CHUNK", why);
    out.reset();
    answer.err = v1::Err::kChunk;
  }
  build_error(calls_[answer.slot], *answer.err, out, send);
}

void Responder::build_error(const CallSlot& call, v1::Err err, Outgoing& out, std::uint32_t send) {
  v1::Header header;
  header.xid = call.xid;    // R1-5.5-04
  header.vers = call.vers;  // R1-5.5-05
  header.credit = credits_.grant();
  header.proc = v1::Proc::kError;
  header.err = err;
  header.vers_low = header.vers_high = v1::kVersion;
  xdr::XdrWriter writer(channel_.send_buffer(send));
  v1::emit_header(writer, header);
  out.send_len = writer.size();
}

// A handle of the Call's own chunks (R1-4.3.2-16), with which the peer is done when it has the Reply.
std::optional<std::uint32_t> Responder::handle_of(const CallSlot& call) const {
  if (!config_.invalidates) return {};
  const auto is_used = [](const Segment& segment) { return segment.length != 0; };
  const auto first = [&](std::span<const Chunk> chunks) -> std::optional<std::uint32_t> {
    for (const Chunk& chunk : chunks) {
      const auto at = std::ranges::find_if(chunk.segments, is_used);
      if (at != chunk.segments.end()) return at->handle;
    }
    return {};
  };
  if (const auto handle = first(call.lists.write_chunks())) return handle;
  if (call.lists.reply_chunk() != nullptr) {
    if (const auto handle = first(std::span(call.lists.reply_chunk(), 1))) return handle;
  }
  if (const auto handle = first(call.lists.read_chunks())) return handle;
  return call.lists.position_zero() == nullptr ? std::nullopt : first(std::span(call.lists.position_zero(), 1));
}

// Chooses and builds the form of an RPC Reply (RFC 8166 sections 3.5 and 4.3); why not, where no form carries it.
const char* Responder::build_rpc(Answer& answer, Outgoing& out, std::uint32_t send) {
  const CallSlot& call = calls_[answer.slot];
  out.reply = std::move(answer.reply);
  ServedReply& reply = out.reply;
  if (answer.rpc.denied || answer.rpc.accept != AcceptStat::kSuccess) {
    reply.results.clear();
    reply.more_results.clear();
    reply.items.clear();
  }
  v1::Header header;
  header.xid = call.xid;
  header.credit = credits_.grant();  // R1-4.3.1-05: never 0
  header.lists = unused_lists(call.lists);
  out.invalidate = handle_of(call);

  // First items go to their Write chunks (R1-5.3.2-02), then the rest is measured (R1-4.5.3-05).
  pair_items(call, reply);
  if (!reduce_items(call, reply, header, out)) return "a result is longer than its Write chunk";
  const std::size_t header_len = v1::header_len(header.lists);
  const std::size_t payload_len = rpc_header_len(answer.rpc, reply) + gather_payload(reply);
  if (violates("R1-5.2.4-05", header_len > config_.reply_threshold)) {
    return "its chunk lists leave no room for a Reply";
  }
  if (payload_len <= config_.reply_threshold - header_len) {
    build_inline(header, answer.rpc, out, send);
    return nullptr;
  }
  // R1-4.5.3-06: what is left goes through the Reply chunk.
  const Chunk* reply_chunk = call.lists.reply_chunk();
  if (violates("R1-5.5.3-02", reply_chunk == nullptr || payload_len > reply_chunk->length)) {
    return reply_chunk == nullptr ? "its Reply is too long to be inline, and it has no Reply chunk"
                                  : "its Reply is longer than its Reply chunk";
  }
  fill_segments(reply_chunk->segments, payload_len, *header.lists.reply_chunk);
  return build_long(header, answer.rpc, out, send) ? nullptr : "no memory for its Reply";
}

// Says which items of a Reply have a Write chunk: the n-th chunk belongs to the n-th result that can have an item (RFC
// 8267 section 6.4.1, U1-6.4.1-03), and only what the binding finds there is reduced.
void Responder::pair_items(const CallSlot& call, const ServedReply& reply) {
  is_reduced_.assign(reply.items.size(), false);
  const auto chunks = call.lists.write_chunks();
  if (reply.items.empty() || chunks.empty() || call.program == nullptr) return;
  const auto walk = call.program->binding->walk_results;
  if (walk == nullptr || !call.may_reduce) return;
  // U1-6.4.1-05, U1-6.4.1-07: results without a chunk, or with an empty one, stay inline.
  const auto has_chunk = [chunks](const ResultItem& item) {
    return item.operation < chunks.size() && !chunks[item.operation].segments.empty();
  };
  item_lens_.assign(reply.items.back().operation + 1, 0);
  for (const ResultItem& item : reply.items) {
    if (item.operation >= item_lens_.size()) return;
    item_lens_[item.operation] = static_cast<std::uint32_t>(item.data.octets.size());
  }
  ConstBytes results(reply.results);
  if (!reply.more_results.empty()) {
    walked_ = reply.results;
    for (const Slice& slice : reply.more_results) {
      walked_.insert(walked_.end(), slice.octets.begin(), slice.octets.end());
    }
    results = walked_;
  }
  found_results_.clear();
  if (walk(call.rpc.procedure, results, item_lens_, found_results_) == Walked::kGarbage) return;
  for (std::size_t i = 0; i < reply.items.size(); ++i) {
    const ResultItem& item = reply.items[i];
    if (item.operation >= found_results_.size() || !has_chunk(item)) continue;
    const auto& found = found_results_[item.operation];
    is_reduced_[i] = found && found->offset == item.position && found->len == item.data.octets.size();
  }
}

namespace {

// Spreads the octets of `sources`, none of which is empty, over the segments of a chunk: one RDMA Write to each
// segment, more where one would need too many sources.
template <typename Write>
void spread(std::span<const verbs::Sge> sources, std::span<const Segment> targets, std::size_t max_sge,
            std::vector<verbs::Sge>& sges, std::vector<Write>& writes) {
  std::size_t source = 0;
  std::uint32_t taken = 0;  // octets of sources[source]
  for (const Segment& target : targets) {
    std::uint32_t filled = 0;
    while (filled < target.length && source < sources.size()) {
      Write write{sges.size(), 0, target.offset + filled, target.handle};
      while (filled < target.length && source < sources.size() && write.num_sges < max_sge) {
        const verbs::Sge& from = sources[source];
        const std::uint32_t len = std::min(from.length - taken, target.length - filled);
        sges.push_back({from.addr + taken, len, from.lkey});
        ++write.num_sges;
        filled += len;
        taken += len;
        if (taken == from.length) {
          ++source;
          taken = 0;
        }
      }
      writes.push_back(write);
    }
  }
}

}  // namespace

// Sends the reduced items to their chunks; false where one does not fit (U1-3.1-08: before anything is written).
bool Responder::reduce_items(const CallSlot& call, const ServedReply& reply, v1::Header& header, Outgoing& out) {
  for (std::size_t i = 0; i < reply.items.size(); ++i) {
    if (!is_reduced_[i]) continue;
    const ResultItem& item = reply.items[i];
    const Chunk& chunk = call.lists.write_chunks()[item.operation];
    const std::size_t len = item.data.octets.size();
    if (violates("U1-3.1-08", len > chunk.length)) return false;
    SegmentArray& returned = header.lists.write_list[item.operation];
    fill_segments(chunk.segments, len, returned);
    if (len == 0) continue;  // its chunk is used all the same
    // R1-4.4.6.1-02: the octets and no roundup.
    const verbs::Sge source = sge_of(item.data.octets, item.data.lkey);
    spread(std::span(&source, 1), returned, config_.max_sge, out.sges, out.writes);
    ++counters_.write_chunks;
  }
  return true;
}

// Lays out the Payload stream behind its RPC header: the results with the items that are not reduced between them.
// Returns its length in octets.
std::size_t Responder::gather_payload(const ServedReply& reply) {
  pieces_.clear();
  std::size_t item = 0;
  std::size_t done = 0;  // octets of the results
  std::size_t total = 0;
  const auto add = [this, &total](Slice piece) {
    total += piece.octets.size();
    if (!piece.octets.empty()) pieces_.push_back(piece);
  };
  const auto add_part = [&](Slice part, bool is_last) {
    for (; item < reply.items.size(); ++item) {
      const ResultItem& next = reply.items[item];
      if (is_reduced_[item]) continue;
      if (!is_last && next.position >= done + part.octets.size()) break;
      const std::size_t before = std::min(next.position - std::min(next.position, done), part.octets.size());
      add({part.octets.first(before), part.lkey});
      part.octets = part.octets.subspan(before);
      done += before;
      add(next.data);
      add({ConstBytes(kZeros).first(xdr::padding(next.data.octets.size())), 0});
    }
    done += part.octets.size();
    add(part);
  };
  add_part({reply.results, 0}, reply.more_results.empty());
  for (std::size_t i = 0; i < reply.more_results.size(); ++i) {
    add_part(reply.more_results[i], i + 1 == reply.more_results.size());
  }
  return total;
}

// RDMA_MSG: header and payload in one Send, long pieces from where they stand (R1-5.2.4-06).
void Responder::build_inline(const v1::Header& header, const ReplyHeader& rpc, Outgoing& out, std::uint32_t send) {
  const MutBytes buffer = channel_.send_buffer(send);
  xdr::XdrWriter writer(buffer);
  v1::emit_header(writer, header);
  emit_rpc_header(writer, rpc, out.reply);
  std::size_t gathered = 0;  // octets of the buffer that have an element
  const auto gather_written = [&] {
    if (writer.size() == gathered) return;
    out.send_sges.push_back(sge_of(buffer.subspan(gathered, writer.size() - gathered), channel_.send_lkey(send)));
    gathered = writer.size();
  };
  for (const Slice& piece : pieces_) {
    // Two elements now, and one for what may follow.
    const bool gather = piece.lkey != 0 && piece.octets.size() >= kGatherFrom &&
                        out.send_sges.size() + 3 <= channel_.config().max_send_sge;
    if (!gather) {
      writer.raw(piece.octets);
      continue;
    }
    gather_written();
    out.send_sges.push_back(sge_of(piece.octets, piece.lkey));
  }
  out.send_len = writer.size();
  if (!out.send_sges.empty()) gather_written();
}

// RDMA_NOMSG: the payload through the Reply chunk, whose lengths `header` has already.
bool Responder::build_long(v1::Header& header, const ReplyHeader& rpc, Outgoing& out, std::uint32_t send) {
  header.proc = v1::Proc::kNomsg;
  ServedReply& reply = out.reply;
  if (!reply.results.empty()) {
    auto mr = pd_.reg_mr(reply.results.data(), reply.results.size(), verbs::Access::kNone);
    if (!mr.ok()) {
      channel_.fail("cannot register a Reply: " + mr.error().message);
      return false;
    }
    out.results_mr = std::move(*mr);
  }
  // Behind the transport header the Send buffer holds the RPC header and zeros for roundup, to be written from there.
  const MutBytes buffer = channel_.send_buffer(send);
  xdr::XdrWriter writer(buffer);
  v1::emit_header(writer, header);
  out.send_len = writer.size();
  const std::size_t rpc_len = rpc_header_len(rpc, reply);
  MutBytes spare = buffer.subspan(out.send_len);
  std::uint32_t spare_lkey = channel_.send_lkey(send);
  if (spare.size() < rpc_len + sizeof(kZeros)) {
    // A long verifier.
    Buffer taken = pool_.take(rpc_len + sizeof(kZeros));
    if (!taken) return false;
    spare = taken.octets();
    spare_lkey = taken.lkey();
    reply.buffers.push_back(std::move(taken));
  }
  xdr::XdrWriter rest(spare);
  emit_rpc_header(rest, rpc, reply);
  rest.zeros(sizeof(kZeros));
  std::vector<verbs::Sge> sources{sge_of(spare.first(rpc_len), spare_lkey)};
  for (const Slice& piece : pieces_) {
    if (piece.lkey != 0) {
      sources.push_back(sge_of(piece.octets, piece.lkey));
    } else if (piece.octets.data() == kZeros) {
      sources.push_back(sge_of(spare.subspan(rpc_len, piece.octets.size()), spare_lkey));
    } else {
      sources.push_back(sge_of(piece.octets, out.results_mr->lkey()));
    }
  }
  spread(sources, *header.lists.reply_chunk, config_.max_sge, out.sges, out.writes);
  ++counters_.reply_chunks;
  return true;
}

}  // namespace weft::rpcrdma
