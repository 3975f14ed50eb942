#include "apps/dissect/reply_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "apps/dissect/effect.h"
#include "apps/dissect/rpc_rules.h"
#include "apps/dissect/rule_ids.h"

namespace weft::apps::dissect {

using rpcrdma::Protocol;
using Call = CallTable::Call;

bool offers(const rpcrdma::ChunkListsView& lists, std::uint32_t handle) {
  bool is_there = false;
  for_each_segment(lists, [&](std::uint32_t each, const CallTable::Segment&) { is_there |= each == handle; });
  return is_there;
}

bool returns_reply_chunk(const rpcrdma::ChunkListsView& lists, const rpcrdma::ChunkListsView& offered) {
  if (!lists.reply_chunk || !offered.reply_chunk) return false;
  return std::ranges::equal(*lists.reply_chunk, *offered.reply_chunk,
                            [](const rpcrdma::Segment& a, const rpcrdma::Segment& b) {
                              return a.handle == b.handle && a.offset == b.offset;
                            });
}

void judge_unasked(CallTable::Had had, std::uint32_t xid, Frame& frame) {
  if (had == CallTable::Had::kUnknown) return;
  const bool is_second = had == CallTable::Had::kAnswered;
  frame.findings.push_back({"R1-3.1.2-01",
                            is_second ? fmt::format("the Call with XID {:#010x} has its answer already", xid)
                                      : fmt::format("no Call has XID {:#010x}", xid),
                            "the requester drops the Reply"});
}

void judge_invalidated(Protocol protocol, const Call& call, std::uint32_t invalidated, Frame& frame) {
  const auto find = [&](RpcRule rule, std::string_view why) {
    frame.findings.push_back({requirement_of(rule, protocol),
                              fmt::format("invalidates STag {:#010x}, {}", invalidated, why),
                              may_end("the requester ends the connection")});
  };
  if (protocol == Protocol::k1) {
    if (!offers(call.offered, invalidated)) find(RpcRule::kInvalidated, "which its Call did not offer");
  } else if (call.inv_handle == 0) {
    find(RpcRule::kNotSolicited, "and its Call allows none");
  } else if (call.inv_handle != invalidated) {
    find(RpcRule::kInvalidated, fmt::format("where its Call allows {:#010x}", call.inv_handle));
  }
}

void judge_written(Protocol protocol, const CallTable& calls, const Call& call, const TransportHeader& header,
                   Frame& frame) {
  const auto judge = [&](const rpcrdma::SegmentArray& chunk, bool is_reply_chunk) {
    WrittenChunk sum;
    for (const rpcrdma::Segment& segment : chunk) {
      const auto written = calls.written(header.xid, segment);
      // A segment that comes back longer than it was offered breaks another rule.
      if (!written || segment.length > written->len) return;
      sum.returned += segment.length;
      sum.whole += std::min(written->whole, segment.length);
      const std::uint32_t end = written->end.value_or(0);
      sum.more += end - std::min(end, segment.length);
    }
    judge_written_chunk(protocol, sum, is_reply_chunk, frame);
  };
  const std::size_t before = frame.findings.size();
  for (const rpcrdma::SegmentArray& chunk : header.lists.write_list) {
    judge(chunk, false);
    if (frame.findings.size() != before) break;
  }
  if (header.lists.reply_chunk && call.offered.reply_chunk) judge(*header.lists.reply_chunk, true);
}

// The header of a Reply returns the lists: with many segments it may be too long for any Send.
void judge_continued(const Call& call, const TransportHeader& header, std::size_t len, std::size_t max_send,
                     Frame& frame) {
  constexpr std::size_t kMaxSegments = 32;
  if (!call.offered.reply_chunk) return;
  std::size_t num_segments = 0;
  for_each_segment(call.offered, [&](std::uint32_t, const CallTable::Segment&) { ++num_segments; });
  const std::uint64_t room = rpcrdma::total_length(*call.offered.reply_chunk);
  if (num_segments > kMaxSegments || len > room || len + header.len <= max_send) return;
  frame.find("W2-6.6.3-3", fmt::format("a Reply of {} bytes in parts, and its Reply chunk has room for {}", len, room),
             "the requester takes it");
}

}  // namespace weft::apps::dissect
