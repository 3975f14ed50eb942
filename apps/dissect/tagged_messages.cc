#include "apps/dissect/tagged_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apps/dissect/effect.h"
#include "apps/dissect/segment_rules.h"

namespace weft::apps::dissect {

void TaggedMessages::on_gap() {
  stretch_.num_segments = 0;
  extent_ = {};
  is_broken_ = true;
}

void TaggedMessages::judge(const ddp::TaggedHeader& header, std::size_t len, bool is_response, Frame& frame) {
  if (is_broken_) return;
  if (stretch_.num_segments != 0 && stretch_.stag != header.stag.value) {
    frame.findings.push_back(
        {"DDP-4.2-08",
         fmt::format("STag {:#010x} inside a message that began with {:#010x}", header.stag.value, stretch_.stag),
         may_end("the receiver places the message in several buffers, or ends the connection")});
    extent_.is_mixed = true;
  }
  const bool is_alone = header.last && extent_.num_segments == 0;
  if (!is_alone) judge_extent(header, len, is_response, frame);
}

// RFC 5041 section 5.2: the segments of a message are beside each other. Their order is of no matter.
void TaggedMessages::judge_extent(const ddp::TaggedHeader& header, std::size_t len, bool is_response, Frame& frame) {
  const std::uint64_t before = extent_.len;
  extent_.is_mixed |= header.to > UINT64_MAX - len;
  if (len != 0 && !extent_.is_mixed) extent_.add({header.to, header.to + len});
  extent_.len += len;
  ++extent_.num_segments;
  if (before <= UINT32_MAX && extent_.len > UINT32_MAX) find_too_long(frame);
  if (!header.last) return;
  const Extent whole = std::exchange(extent_, {});
  if (whole.len == 0 && whole.num_segments > 1) find_empty_segments(whole.num_segments, frame);
  if (is_response || whole.is_mixed || whole.len == 0 || whole.is_one_run()) return;
  frame.findings.push_back({"DDP-5.2-09",
                            fmt::format("{} bytes from TO {:#x} to {:#x}: the segments are not beside each other",
                                        whole.len, whole.begin, whole.end),
                            "the receiver places them by their TOs, and leaves bytes as they were"});
}

void TaggedMessages::Extent::add(Run run) {
  if (!is_scattered && end != 0 && run.begin != end) {
    is_scattered = true;
    runs.add({begin, end});
  }
  if (is_scattered) runs.add(run);
  begin = std::min(begin, run.begin);
  end = std::max(end, run.end);
}

bool TaggedMessages::continues(const ddp::TaggedHeader& header) const {
  return stretch_.num_segments != 0 && stretch_.stag == header.stag.value && stretch_.to + stretch_.len == header.to;
}

void TaggedMessages::keep(const ddp::TaggedHeader& header, ConstBytes payload, std::size_t len, Timestamp now) {
  const bool begins = !continues(header);
  if (begins) {
    stretch_ = {.stag = header.stag.value, .to = header.to, .began = now};
    head_.clear();
  }
  if (begins && header.last) {
    stretch_.head = payload.first(std::min(payload.size(), kMaxHead));  // it stays where it is
  } else if (head_.size() == stretch_.len) {
    const ConstBytes kept = payload.first(std::min(payload.size(), kMaxHead - std::min(kMaxHead, head_.size())));
    head_.insert(head_.end(), kept.begin(), kept.end());
    stretch_.head = head_;
  }
  stretch_.len += len;
  ++stretch_.num_segments;
}

}  // namespace weft::apps::dissect
