#include "apps/dissect/stream_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apps/dissect/effect.h"

namespace weft::apps::dissect {

namespace {

constexpr std::string_view kTooMany = "more RDMA Reads and Atomics are under way than are remembered";

}  // namespace

void StreamRules::stop(std::string_view why) {
  if (!why_stopped_.empty()) return;
  why_stopped_ = why;
  for (Half& each : halves_) {
    each.reads = Queue<Read>();
    each.atomics = Queue<Atomic>();
  }
  count();
}

bool StreamRules::has_room() {
  if (count_.has_room(1)) return true;
  stop(kTooMany);
  return false;
}

void StreamRules::count() {
  std::size_t num = 0;
  for (const Half& each : halves_) num += each.reads.size() + each.atomics.size();
  count_.set(num);
}

void StreamRules::on_start(Side side, std::optional<std::uint16_t> ird, bool is_responder) {
  half(side).started = true;
  half(side).ird = ird;
  half(side).is_responder = is_responder;
}

// RFC 5040 section 5.4: nothing follows a Terminate. RFC 5044 section 7.1.2: the initiator's first FPDU comes first.
void StreamRules::judge_fpdu(Side from, Frame& frame) {
  Half& own = half(from);
  const bool is_first = !std::exchange(own.has_sent, true);
  const Half& peer = half(other(from));
  if (is_judging() && is_first && own.is_responder && peer.num_gaps == 0 && !peer.has_sent && !peer.has_begun) {
    frame.findings.push_back({"MPA-7.1.2-14", "the responder sends an FPDU before the initiator's first one",
                              may_end("the initiator may not be ready for it, and end the connection")});
  }
  if (!own.terminated) return;
  frame.findings.push_back(
      {"RDMAP-5.4-09", "a message behind a Terminate of the same side", "the receiver drops it: the stream has ended"});
}

// RFC 5040 section 5.1: a message is not interrupted by another message of its model.
void StreamRules::on_tagged(Side from, rdmap::Opcode opcode, bool last, Frame& frame) {
  Half& own = half(from);
  if (own.tagged_open && *own.tagged_open != opcode) {
    frame.findings.push_back({"RDMAP-7.2-02", "a tagged message begins inside another tagged message",
                              terminated(rdmap::kUnexpectedOpcode)});
  }
  own.tagged_open = last ? std::nullopt : std::optional(opcode);
}

void StreamRules::on_read_request(Side from, const rdmap::ReadRequestHeader& request, Frame& frame) {
  if (!is_judging() || !has_room()) return;
  half(from).reads.push_back({.request = request, .num_gaps = half(from).num_gaps});
  judge_outstanding(from, frame);
  count();
}

void StreamRules::on_atomic_request(Side from, std::uint32_t request_id, Frame& frame) {
  if (!is_judging() || !has_room()) return;
  half(from).atomics.push_back({request_id, half(from).num_gaps});
  judge_outstanding(from, frame);
  count();
}

void StreamRules::judge_outstanding(Side from, Frame& frame) {
  Half& own = half(from);
  const std::size_t num = own.reads.size() + own.atomics.size();
  if (!own.knows_reads() || !own.knows_atomics()) {
    if (own.reads.size() > kMaxOutstanding) own.reads.pop_front();
    if (own.atomics.size() > kMaxOutstanding) own.atomics.pop_front();
    return;
  }
  if (num > kMaxOutstanding) stop(kTooMany);
  const auto ird = half(other(from)).ird;
  if (!ird || num <= *ird) return;
  frame.findings.push_back({"DDP-7.1-02", fmt::format("{} requests at once, where the other side takes {}", num, *ird),
                            terminated(rdmap::to_terminate(ddp::Error::kNoBuffer))});
}

void StreamRules::on_gap(Side of) {
  half(of).tagged_open.reset();
  for (Half& each : halves_) ++each.num_gaps;
}

// Where Requests or Responses may be missing: the one Request to which a Response can belong. Those before it have had
// theirs.
StreamRules::Read* StreamRules::find_read(Half& asker, const ddp::TaggedHeader& header, std::uint64_t len) {
  const auto fits = [&](const Read& read) {
    const std::uint64_t at = header.to - read.request.sink_to;
    return header.stag == read.request.sink_stag && at <= read.request.size && len <= read.request.size - at;
  };
  if (std::ranges::count_if(asker.reads, fits) != 1) return nullptr;
  while (!fits(asker.reads.front())) asker.reads.pop_front();
  count();
  Read& read = asker.reads.front();
  asker.num_gaps_of_reads = read.num_gaps;
  if (!asker.knows_reads()) read.is_wrong = read.is_scattered = true;  // segments before this one may be missing
  return &read;
}

// Read Responses come in the order of their requests, and each has what its request asked for.
bool StreamRules::on_read_response(Side from, const ddp::TaggedHeader& header, std::uint64_t len, Frame& frame) {
  if (!is_judging()) return false;
  Half& asker = half(other(from));
  Queue<Read>& reads = asker.reads;
  const bool is_certain = asker.knows_reads();
  if (!is_certain && find_read(asker, header, len) == nullptr) return false;
  if (reads.empty()) {
    frame.findings.push_back({"RDMAP-5.2.2-05", "an RDMA Read Response without an RDMA Read Request",
                              terminated(rdmap::to_terminate(ddp::Error::kInvalidStag))});
    return false;
  }
  Read& read = reads.front();
  const std::uint64_t at = header.to - read.request.sink_to;
  const bool has_right_place =
      read.request.size == 0 || (header.stag == read.request.sink_stag && at <= read.request.size &&
                                 (at == read.received || len <= read.request.size - at));
  const bool is_in_order = read.request.size == 0 || at == read.received;
  read.received += len;
  const bool has_right_len = header.last ? read.received == read.request.size : read.received <= read.request.size;
  const bool is_right = has_right_place && has_right_len;
  const bool is_asked = is_certain && is_right && !read.is_wrong && read.request.size != 0;
  if (!is_right && !std::exchange(read.is_wrong, true)) {
    frame.findings.push_back(
        {"RDMAP-5.2.2-08",
         has_right_place ? fmt::format("an RDMA Read Response of {} bytes{} answers a Request for {}", read.received,
                                       header.last ? "" : " and more", read.request.size)
                         : std::string("an RDMA Read Response for another place than its Request names"),
         terminated(rdmap::to_terminate(has_right_place ? ddp::Error::kBaseBounds : ddp::Error::kInvalidStag))});
  } else if (!is_in_order && !read.is_wrong && !std::exchange(read.is_scattered, true)) {
    frame.findings.push_back({"DDP-5.3-02", "the segments of an RDMA Read Response are not in the order of their TOs",
                              "the receiver places them by their TOs, unless it takes them in order alone"});
  }
  if (!header.last) return is_asked;
  reads.pop_front();
  count();
  return is_asked;
}

void StreamRules::on_atomic_response(Side from, std::uint32_t request_id, Frame& frame) {
  if (!is_judging()) return;
  Half& asker = half(other(from));
  Queue<Atomic>& atomics = asker.atomics;
  if (!asker.knows_atomics()) {
    const auto has_id = [request_id](const Atomic& one) { return one.id == request_id; };
    if (std::ranges::count_if(atomics, has_id) != 1) return;
    while (!has_id(atomics.front())) atomics.pop_front();
    asker.num_gaps_of_atomics = atomics.front().num_gaps;
  }
  if (atomics.empty()) {
    frame.findings.push_back({"DDP-7.1-02", "an Atomic Response without an Atomic Request",
                              terminated(rdmap::to_terminate(ddp::Error::kNoBuffer))});
    return;
  }
  if (atomics.front().id != request_id) {
    frame.findings.push_back(
        {"EXT-5.2.1-05", fmt::format("Request Identifier {:#x}, where {:#x} is due", request_id, atomics.front().id),
         terminated(rdmap::kStreamCatastrophic)});
  }
  atomics.pop_front();
  count();
}

}  // namespace weft::apps::dissect
