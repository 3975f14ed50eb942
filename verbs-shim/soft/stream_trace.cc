#include "verbs-shim/soft/stream_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "verbs-shim/api/types.h"
#include "verbs-shim/soft/translate.h"

namespace weft::verbs::soft {

namespace {

// The turns of a loop are longer than the times that readers of a trace look for, so each packet has its own time.
using Clock = std::chrono::steady_clock;

FrameCutter::Limits limits_of(const TraceConfig& config) {
  return {.tagged = config.tagged_len,
          .tagged_more = config.tagged_len == 0 ? 0 : config.tagged_more_len,
          .other = config.other_len};
}

std::string_view name_of(rdmap::WorkOp op) {
  switch (op) {
    case rdmap::WorkOp::kSend: return "Send";
    case rdmap::WorkOp::kRdmaWrite: return "RDMA Write";
    case rdmap::WorkOp::kRdmaRead: return "RDMA Read";
    case rdmap::WorkOp::kAtomic: return "Atomic";
    case rdmap::WorkOp::kBindWindow: return "bind of a window";
    case rdmap::WorkOp::kInvalidateWindow: return "invalidation of a window";
    case rdmap::WorkOp::kRecv: return "Receive";
  }
  return "";
}

std::string words_of(const rdmap::Completion& done) {
  std::string words =
      fmt::format("{} {:#x} ended: {}", name_of(done.op), done.wr_id, wc_status_str(to_wc(done).status));
  if (done.byte_len != 0) words += fmt::format(", {} bytes", done.byte_len);
  if (done.invalidated) words += fmt::format(", STag {:#x} invalidated", done.invalidated->value);
  if (done.terminate) words += "; Terminate " + rdmap::describe(*done.terminate);
  return words;
}

std::string words_of(const rdmap::Established& begun) {
  return fmt::format(
      "established: MPA revision {}, IRD {}, ORD {}, CRC {}, Markers {}", begun.revision, begun.ird, begun.ord,
      begun.crc ? "on" : "off",
      begun.markers_tx ? (begun.markers_rx ? "both ways" : "sent") : (begun.markers_rx ? "received" : "off"));
}

}  // namespace

StreamTrace::StreamTrace(std::shared_ptr<TraceFile> file, const sockaddr_storage& local, const sockaddr_storage& peer,
                         bool client)
    : file_(std::move(file)),
      local_(local),
      peer_(peer),
      now_(Clock::now()),
      out_(limits_of(file_->config()), [this](std::vector<std::uint8_t>& kept, std::size_t len,
                                              bool is_cut) { put(Way::kOut, kAck | kPush, kept, len, is_cut); }),
      in_(limits_of(file_->config()), [this](std::vector<std::uint8_t>& kept, std::size_t len, bool is_cut) {
        put(Way::kIn, kAck | kPush, kept, len, is_cut);
      }) {
  const Way first = client ? Way::kOut : Way::kIn;
  const Way second = client ? Way::kIn : Way::kOut;
  std::vector<std::uint8_t> none;
  put(first, kSyn, none, 0, false);
  put(second, kSyn | kAck, none, 0, false);
  put(first, kAck, none, 0, false);
}

StreamTrace::~StreamTrace() {
  now_ = Clock::now();
  std::vector<std::uint8_t> none;
  put(Way::kOut, kFin | kAck, none, 0, false);
  comment(reason_);
  write();
}

template <typename Views>
void StreamTrace::take(Way way, const Views& buffers, std::size_t n) {
  if (!file_->is_open()) return;
  now_ = Clock::now();
  FrameCutter& cutter = way == Way::kOut ? out_ : in_;
  FrameCutter& other = way == Way::kOut ? in_ : out_;
  // The receiver of a direction chose its Markers by its startup frame.
  cutter.set_markers(other.wants_markers().value_or(false));
  for (const auto& buffer : buffers) {
    if (n == 0) break;
    const std::size_t len = std::min(n, buffer.size());
    cutter.add(buffer.first(len));
    n -= len;
  }
  cutter.end_turn();
}

void StreamTrace::on_rx(std::span<const MutBytes> buffers, std::size_t n, TimePoint /*now*/) {
  take(Way::kIn, buffers, n);
}

void StreamTrace::on_tx(std::span<const ConstBytes> buffers, std::size_t n, TimePoint /*now*/) {
  take(Way::kOut, buffers, n);
  // The Terminate is the last FPDU of a stream.
  if (n != 0 && !terminate_.empty()) comment(std::exchange(terminate_, {}));
}

void StreamTrace::on_failure(const rdmap::Closed& why) {
  const std::string text = in_words(why.text);
  comment(text);
  if (why.reason == rdmap::CloseReason::kTerminateSent) terminate_ = text;
}

void StreamTrace::on_event(const rdmap::Event& event) {
  if (const auto* done = std::get_if<rdmap::Completion>(&event)) {
    if (is_told(*done)) comment(words_of(*done));
  } else if (const auto* begun = std::get_if<rdmap::Established>(&event)) {
    comment(words_of(*begun));
  } else if (const auto* closed = std::get_if<rdmap::Closed>(&event)) {
    reason_ = in_words(closed->text);
  } else if (const auto* rejected = std::get_if<rdmap::Rejected>(&event)) {
    reason_ = in_words(rejected->text);
    comment(reason_);
  }
}

void StreamTrace::put(Way way, std::uint8_t flags, std::vector<std::uint8_t>& kept, std::size_t len, bool is_cut) {
  write();
  last_.way = way;
  last_.flags = flags;
  last_.kept.swap(kept);
  last_.len = len;
  last_.is_cut = is_cut;
  last_.time = now_;
  last_.waits = true;
}

void StreamTrace::comment(std::string_view text) {
  static constexpr std::string_view kMore = "; and more";
  std::string& all = last_.comment;
  if (!last_.waits || text.empty() || all.ends_with(kMore)) return;
  if (all.size() + text.size() > kMaxComment) {
    all += kMore;
    return;
  }
  if (!all.empty()) all += "; ";
  all += text;
}

std::string StreamTrace::in_words(const std::string& advice) const {
  const auto& translate = file_->config().in_words;
  return translate ? translate(advice) : advice;
}

void StreamTrace::write() {
  if (!std::exchange(last_.waits, false)) return;
  const bool is_out = last_.way == Way::kOut;
  std::uint32_t& seq = next_seq(last_.way);
  const std::uint32_t ack = (last_.flags & kAck) != 0 ? (is_out ? seq_in_ : seq_out_) : 0;
  const PacketHead head(is_out ? local_ : peer_, is_out ? peer_ : local_,
                        {.seq = seq, .ack = ack, .flags = last_.flags}, last_.kept, last_.len);
  std::string_view comment = last_.comment;
  if (last_.is_cut) {
    comment = file_->cut_note();
    if (!last_.comment.empty()) comment = last_.comment.insert(0, file_->cut_note() + "; ");
  }
  file_->put(head.octets(), last_.kept, head.octets().size() + last_.len, last_.time, comment);
  // SYN and FIN count as one octet each.
  seq += static_cast<std::uint32_t>(last_.len) + ((last_.flags & (kSyn | kFin)) != 0 ? 1 : 0);
  last_.kept.clear();
  last_.comment.clear();
}

}  // namespace weft::verbs::soft
