#include "apps/dissect/stream_rules.h"

#include <fmt/format.h>

#include <utility>

#include "apps/dissect/effect.h"

namespace weft::apps::dissect {

void StreamRules::on_start(Side side, std::optional<std::uint16_t> ird, bool is_responder) {
  half(side).started = true;
  half(side).ird = ird;
  half(side).is_responder = is_responder;
}

// RFC 5040 section 5.4: nothing follows a Terminate. RFC 5044 section 7.1.2: the initiator's first FPDU comes first.
void StreamRules::on_fpdu(Side from, Frame& frame) {
  Half& own = half(from);
  const bool is_first = !std::exchange(own.has_sent, true);
  if (!is_judging()) return;
  const Half& peer = half(other(from));
  if (is_first && own.is_responder && !peer.has_sent && !peer.has_begun) {
    frame.findings.push_back({"MPA-7.1.2-14", "the responder sends an FPDU before the initiator's first one",
                              "the initiator may not be ready for it, and end the connection"});
  }
  if (!own.terminated) return;
  frame.findings.push_back(
      {"RDMAP-5.4-09", "a message behind a Terminate of the same side", "the receiver drops it: the stream has ended"});
}

// RFC 5040 section 5.1: a message is not interrupted by another message of its model.
void StreamRules::on_tagged(Side from, rdmap::Opcode opcode, bool last, Frame& frame) {
  Half& own = half(from);
  if (is_judging() && own.tagged_open && *own.tagged_open != opcode) {
    frame.findings.push_back({"RDMAP-7.2-02", "a tagged message begins inside another tagged message",
                              terminated(rdmap::kUnexpectedOpcode)});
  }
  own.tagged_open = last ? std::nullopt : std::optional(opcode);
}

void StreamRules::on_read_request(Side from, const rdmap::ReadRequestHeader& request, Frame& frame) {
  if (!is_judging()) return;
  half(from).reads.push_back({request});
  count_outstanding(from, frame);
}

void StreamRules::on_atomic_request(Side from, std::uint32_t request_id, Frame& frame) {
  if (!is_judging()) return;
  half(from).atomics.push_back(request_id);
  count_outstanding(from, frame);
}

void StreamRules::count_outstanding(Side from, Frame& frame) {
  const std::size_t num = half(from).reads.size() + half(from).atomics.size();
  if (num > kMaxOutstanding) stop("more RDMA Reads and Atomics are under way than are remembered");
  const auto ird = half(other(from)).ird;
  if (!ird || num <= *ird) return;
  frame.findings.push_back({"DDP-7.1-02", fmt::format("{} requests at once, where the other side takes {}", num, *ird),
                            terminated(rdmap::to_terminate(ddp::Error::kNoBuffer))});
}

// Read Responses come in the order of their requests, and each has what its request asked for.
void StreamRules::on_read_response(Side from, const ddp::TaggedHeader& header, std::uint64_t len, Frame& frame) {
  if (!is_judging()) return;
  Queue<Read>& reads = half(other(from)).reads;
  if (reads.empty()) {
    frame.findings.push_back({"RDMAP-5.2.2-05", "an RDMA Read Response without an RDMA Read Request",
                              terminated(rdmap::to_terminate(ddp::Error::kInvalidStag))});
    return;
  }
  Read& read = reads.front();
  const std::uint64_t at = header.to - read.request.sink_to;
  const bool has_right_place =
      read.request.size == 0 || (header.stag == read.request.sink_stag && at <= read.request.size);
  const bool is_in_order = read.request.size == 0 || at == read.received;
  read.received += len;
  const bool has_right_len = header.last ? read.received == read.request.size : read.received <= read.request.size;
  const bool is_right = has_right_place && has_right_len;
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
  if (header.last) reads.pop_front();
}

void StreamRules::on_atomic_response(Side from, std::uint32_t request_id, Frame& frame) {
  if (!is_judging()) return;
  Queue<std::uint32_t>& atomics = half(other(from)).atomics;
  if (atomics.empty()) {
    frame.findings.push_back({"DDP-7.1-02", "an Atomic Response without an Atomic Request",
                              terminated(rdmap::to_terminate(ddp::Error::kNoBuffer))});
    return;
  }
  if (atomics.front() != request_id) {
    frame.findings.push_back({"EXT-5.2.1-05",
                              fmt::format("Request Identifier {:#x}, where {:#x} is due", request_id, atomics.front()),
                              terminated(rdmap::kStreamCatastrophic)});
  }
  atomics.pop_front();
}

}  // namespace weft::apps::dissect
