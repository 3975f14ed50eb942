#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "rpcrdma/responder.h"
#include "rpcrdma/responder_state.h"

// The half of the Responder that sends: forms of Replies, RDMA Writes, RDMA_ERROR.
namespace weft::rpcrdma {

namespace {

std::uint64_t address_of(const std::uint8_t* octets) {
  return reinterpret_cast<std::uintptr_t>(octets);
}

verbs::Sge sge_of(ConstBytes octets, std::uint32_t lkey) {
  return {address_of(octets.data()), static_cast<std::uint32_t>(octets.size()), lkey};
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

void Responder::answer_error(std::uint32_t slot, v1::Err err) {
  ++(err == v1::Err::kVers ? counters_.err_vers : counters_.err_chunk);
  calls_[slot].state = CallSlot::State::kAnswering;
  Answer answer;
  answer.slot = slot;
  answer.err = err;
  answers_.push_back(std::move(answer));
  pump();
}

void Responder::answer_stat(std::uint32_t slot, AcceptStat stat) {
  if (stat == AcceptStat::kGarbageArgs) ++counters_.garbage_args;
  ReplyHeader rpc{.xid = calls_[slot].xid, .verf = {}, .accept = stat};
  answer(slot, std::move(rpc), {});
}

void Responder::answer(std::uint32_t slot, ReplyHeader rpc, ServedReply reply) {
  calls_[slot].state = CallSlot::State::kAnswering;
  Answer answer;
  answer.slot = slot;
  answer.rpc = std::move(rpc);
  answer.reply = std::move(reply);
  answers_.push_back(std::move(answer));
  pump();
}

void Responder::release_call(std::uint32_t slot) {
  CallSlot& call = calls_[slot];
  give_back(call.held);
  const std::uint32_t generation = call.generation + 1;
  call = CallSlot{};
  call.generation = generation;
}

void Responder::give_back(std::size_t octets) {
  held_ -= octets;
  budget_.used -= octets;
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
    if (!send) break;
    Answer answer = std::move(answers_.front());
    answers_.pop_front();
    Outgoing& out = outgoing_[*send];
    out.call_slot = answer.slot;
    out.send_len = build(answer, out, *send);
    out.held = std::exchange(calls_[answer.slot].held, 0);
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
  }
  if (channel_.send_queue_room() == 0) return false;
  // R1-4.3.1-09: the Receive for the peer's next Call is there before the answer that lets it send one.
  release_call(out.call_slot);
  if (!channel_.post_receive(out.call_slot)) return false;
  return channel_.post_send(send, out.send_len);
}

void Responder::on_send_done(std::uint32_t slot) {
  give_back(outgoing_[slot].held);
  outgoing_[slot] = Outgoing{};
  channel_.give_send(slot);
  admit();
  pump();
  pump_reads();
}

void Responder::on_write_done() {
  pump();
  pump_reads();
}

std::size_t Responder::build(Answer& answer, Outgoing& out, std::uint32_t send) {
  if (!answer.err) {
    const std::size_t len = build_rpc(answer, out, send);
    if (len != 0) return len;
    // R1-5.5.3-02: nothing was offered that this Reply fits.
    ++counters_.err_chunk;
    out.reply = ServedReply{};
    out.results_mr.reset();
    out.sges.clear();
    out.writes.clear();
    answer.err = v1::Err::kChunk;
  }
  return build_error(calls_[answer.slot], *answer.err, out, send);
}

std::size_t Responder::build_error(const CallSlot& call, v1::Err err, Outgoing&, std::uint32_t send) {
  v1::Header header;
  header.xid = call.xid;    // R1-5.5-04
  header.vers = call.vers;  // R1-5.5-05
  header.credit = config_.credits;
  header.proc = v1::Proc::kError;
  header.err = err;
  header.vers_low = header.vers_high = v1::kVersion;
  scratch_.clear();
  xdr::XdrWriter writer(scratch_);
  v1::emit_header(writer, header);
  std::memcpy(channel_.send_buffer(send).data(), scratch_.data(), scratch_.size());
  return scratch_.size();
}

namespace {

// Spreads the octets of `sources` over the segments of a chunk: one RDMA Write to each segment, more where one would
// need too many sources.
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
        if (len != 0) {
          sges.push_back({from.addr + taken, len, from.lkey});
          ++write.num_sges;
        }
        filled += len;
        taken += len;
        if (taken == from.length) {
          ++source;
          taken = 0;
        }
      }
      if (write.num_sges != 0) writes.push_back(write);
    }
  }
}

}  // namespace

// Chooses and builds the form of an RPC Reply (RFC 8166 sections 3.5 and 4.3); 0 where no form carries it.
std::size_t Responder::build_rpc(Answer& answer, Outgoing& out, std::uint32_t send) {
  const CallSlot& call = calls_[answer.slot];
  ServedReply& reply = answer.reply;
  const bool success = !answer.rpc.denied && answer.rpc.accept == AcceptStat::kSuccess;
  if (!success) {
    reply.results.clear();
    reply.item_position.reset();
  }
  const std::size_t item_len = reply.item_position ? std::min(reply.item_len, reply.item.octets().size()) : 0;
  const std::size_t split = std::min(reply.item_position.value_or(reply.results.size()), reply.results.size());
  const ConstBytes item = ConstBytes(reply.item.octets()).first(item_len);

  v1::Header header;
  header.xid = call.xid;
  header.credit = config_.credits;  // R1-4.3.1-05: never 0
  header.lists = unused_lists(call.lists);

  // First the item goes to its Write chunk (R1-5.3.2-02), then the rest is measured (R1-4.5.3-05).
  const auto offered = call.lists.write_chunks();
  const auto eligible = call.program != nullptr ? call.program->binding->has_eligible_result : nullptr;
  const bool reduce = reply.item_position && eligible != nullptr && eligible(call.rpc.procedure) && !offered.empty() &&
                      !offered.front().segments.empty();
  if (reduce) {
    if (item_len > offered.front().length) return 0;
    fill_segments(offered.front().segments, item_len, header.lists.write_list.front());
    const verbs::Sge source = sge_of(item, reply.item.lkey());
    // R1-4.4.6.1-02: the octets and no roundup.
    spread(std::span(&source, item_len != 0 ? 1u : 0u), header.lists.write_list.front(), config_.max_sge, out.sges,
           out.writes);
    if (item_len != 0) ++counters_.write_chunks;
  }
  const std::size_t pad = reduce ? 0 : xdr::padding(item_len);
  scratch_.clear();
  xdr::XdrWriter rpc(scratch_);
  emit_reply(rpc, answer.rpc);
  const std::size_t rpc_len = scratch_.size();
  const std::size_t payload_len = rpc_len + reply.results.size() + (reduce ? 0 : item_len + pad);
  const std::size_t header_len = v1::header_len(header.lists);
  const MutBytes buffer = channel_.send_buffer(send);
  const ConstBytes results(reply.results);

  if (header_len <= config_.reply_threshold && payload_len <= config_.reply_threshold - header_len) {
    std::vector<std::uint8_t> message;
    message.reserve(header_len + payload_len);
    xdr::XdrWriter writer(message);
    v1::emit_header(writer, header);
    writer.raw(scratch_);
    writer.raw(results.first(split));
    if (!reduce) writer.opaque_fixed(item);
    writer.raw(results.subspan(split));
    std::memcpy(buffer.data(), message.data(), message.size());
    out.reply = std::move(reply);
    return message.size();
  }

  // R1-4.5.3-06: what is left goes through the Reply chunk.
  const Chunk* reply_chunk = call.lists.reply_chunk();
  if (reply_chunk == nullptr || payload_len > reply_chunk->length || header_len > config_.reply_threshold) return 0;
  header.proc = v1::Proc::kNomsg;
  fill_segments(reply_chunk->segments, payload_len, *header.lists.reply_chunk);
  if (!results.empty()) {
    auto mr = pd_.reg_mr(reply.results.data(), results.size(), verbs::Access::kNone);
    if (!mr.ok()) {
      channel_.fail("cannot register a Reply: " + mr.error().message);
      return 0;
    }
    out.results_mr = std::move(*mr);
  }
  // Behind the transport header the Send buffer holds the RPC header and the item's roundup, to be written from there.
  assert(header_len + rpc_len + 4 <= buffer.size());
  const MutBytes rpc_at = buffer.subspan(header_len, rpc_len + 4);
  std::memcpy(rpc_at.data(), scratch_.data(), rpc_len);
  std::memset(rpc_at.data() + rpc_len, 0, 4);
  const std::uint32_t results_lkey = out.results_mr ? out.results_mr->lkey() : 0;
  std::vector<verbs::Sge> sources{sge_of(rpc_at.first(rpc_len), channel_.lkey()),
                                  sge_of(results.first(split), results_lkey)};
  if (!reduce) {
    sources.push_back(sge_of(item, reply.item.lkey()));
    sources.push_back(sge_of(rpc_at.subspan(rpc_len, pad), channel_.lkey()));
  }
  sources.push_back(sge_of(results.subspan(split), results_lkey));
  spread(sources, *header.lists.reply_chunk, config_.max_sge, out.sges, out.writes);
  ++counters_.reply_chunks;
  scratch_.clear();
  xdr::XdrWriter writer(scratch_);
  v1::emit_header(writer, header);
  std::memcpy(buffer.data(), scratch_.data(), scratch_.size());
  out.reply = std::move(reply);
  return scratch_.size();
}

}  // namespace weft::rpcrdma
