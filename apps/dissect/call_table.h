#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apps/dissect/frame.h"
#include "apps/dissect/gss.h"
#include "apps/dissect/held_entries.h"
#include "apps/dissect/program_text.h"
#include "apps/dissect/ring.h"
#include "apps/dissect/runs.h"
#include "base/bytes.h"
#include "rpcrdma/chunk_lists.h"

namespace weft::apps::dissect {

// CallTable remembers the Calls of one side that have no Reply yet, and the memory that they offer. Beyond its limits
// and those of HeldEntries it forgets everything at once: so many Calls are open only where the capture misses their
// Replies.
class CallTable {
 public:
  struct Call;
  class Pool;

  // The references outlive the table.
  CallTable(HeldEntries& held, Pool& pool) : pool_(pool), count_(held) {}

  static constexpr std::size_t kMaxCalls = 4096;
  static constexpr std::size_t kMaxSegments = 65536;  // and Write chunks
  static constexpr std::size_t kMaxPast = 1024;
  static constexpr std::size_t kMaxLooks = 64;    // segments that find_memory looks at
  static constexpr std::size_t kMaxHoled = 1024;  // segments with Runs behind a hole that Writes left
  static constexpr std::size_t kEntriesOfHoled = 2;
  // Octets of a Call's Reply, and ended Calls, that count as one entry.
  static constexpr std::size_t kHeadOfEntry = 128;
  static constexpr std::size_t kPastOfEntry = 16;

  // Had: whether a Call that is not open now was there.
  enum class Had : std::uint8_t { kNever, kAnswered, kUnknown };

  // CallWords: what is known of a Call, beside its lists.
  struct CallWords {
    std::uint32_t program = 0, version = 0, procedure = 0;
    bool is_known = false;  // the capture has its RPC header
    ProcedureFacts facts = {};
    // How many results of a Reply to this Call may be in Write chunks, where it offers some. Empty: not known.
    std::optional<std::size_t> num_eligible = {};
    bool is_repeated = false;  // another Call with its XID was open
    GssUse gss = GssUse::kNone;
    std::uint64_t num_lost = 0;  // CallTable::num_lost_ before it
    std::uint64_t num_gaps = 0;  // CallTable::num_gaps_ before it
    Timestamp time{};
    std::uint32_t inv_handle = 0;                             // TransportHeader::inv_handle
    std::uint32_t transport_version = 0, transport_type = 0;  // words of its RPC-over-RDMA header
    bool is_sound = false;   // the capture has all of it in one Send, and it breaks no rule
    bool has_fault = false;  // it breaks a rule
  };
  struct Call : CallWords {
    rpcrdma::ChunkListsView offered = {};
    std::size_t num_entries = 0;                // of offered
    std::vector<std::uint8_t> reply_head = {};  // see keep_reply_head
  };
  // Pool keeps the memory of Calls that have ended, of all connections, for the next ones.
  class Pool {
   public:
    static constexpr std::size_t kMax = 1024;
    static constexpr std::size_t kMaxEntries = 16;  // of a Call whose memory is kept

    // take returns a Call of which `offered` has any value.
    std::unique_ptr<Call> take();
    void give(std::unique_ptr<Call> call);

   private:
    std::vector<std::unique_ptr<Call>> calls_;
  };
  // Segment: memory that a Call offers.
  struct Segment {
    using Use = dissect::Use;
    Use use = Use::kArgument;
    std::uint32_t xid = 0;
    std::uint32_t index = 0;  // kArgument: the Position. kResult: the number of the Write chunk, from 1
    bool is_first = false;    // kCall, kReply: of its chunk
    std::uint64_t offset = 0;
    std::uint32_t len = 0;
    std::uint32_t written = 0;   // octets from the start that RDMA Writes brought, without a hole
    std::uint32_t end = 0;       // octets up to the last one that an RDMA Write reached
    bool is_shared = false;      // an RDMA Write reached another segment, too: it may not be for this one
    bool has_forgotten = false;  // more runs of octets behind a hole than are remembered
  };

  // add remembers a Call in place of an open one with the same XID. Its Reply can be that of either, and what the older
  // one offers is forgotten.
  Call& add(std::uint32_t xid, Timestamp time, const rpcrdma::ChunkListsView& offered);
  // keep_reply_head remembers the first octets of the Reply chunk of an open Call, if there is room for them.
  void keep_reply_head(Call& call, ConstBytes head);
  // find returns the open Call with this XID; null for none.
  Call* find(std::uint32_t xid);
  const Call* find(std::uint32_t xid) const;
  // answer forgets a Call that has its Reply.
  void answer(std::uint32_t xid) { end_call(xid, Had::kAnswered); }
  // refuse forgets a Call that has an error. Other rules hold whether a Reply follows.
  void refuse(std::uint32_t xid) { end_call(xid, Had::kUnknown); }
  // note_unread: a message with this XID cannot be read. It may be a Call.
  void note_unread(std::uint32_t xid) { note_past({xid, Had::kUnknown}); }
  // Memory: what open Calls offer at a place.
  struct Memory {
    // The segment at this place, or the one that reaches farthest behind it; else any one with this handle; null for
    // none.
    const Segment* segment = nullptr;
    bool is_offered = false;  // every octet, by one segment or by several
    bool is_certain = true;   // false: more segments have this handle than were looked at
  };
  // note_write remembers that an RDMA Write reached a place, in each segment that has it.
  void note_write(std::uint32_t handle, std::uint64_t to, std::uint64_t len);
  // Written: the octets that RDMA Writes brought into a segment.
  struct Written {
    std::uint32_t len = 0;             // Segment::len
    std::uint32_t whole = 0;           // Segment::written
    std::optional<std::uint32_t> end;  // Segment::end. Empty: it may be another segment's
  };
  // written looks at a segment that the Call with this XID offers. Empty: unknown.
  std::optional<Written> written(std::uint32_t xid, const rpcrdma::Segment& offered) const;
  Memory find_memory(std::uint32_t handle, std::uint64_t to, std::uint64_t len) const;

  // The capture misses octets of the side that answers: RDMA Writes, too.
  void on_gap_of_answers() { ++num_gaps_; }
  // The capture misses octets of the side that calls. Until on_resumed, another Call may have taken the XID of an open
  // one, and any memory may be offered.
  void on_gap() { has_gap_ = true; }
  // num_lost: how many Sends of the side that calls are missing; empty if this is not known. Each may be a Call, whose
  // memory is offered until its Reply.
  void on_resumed(std::optional<std::uint32_t> num_lost);
  // The capture has answers of the other side before the Calls. Until on_caught_up the RDMA Writes and the answers of a
  // Call may come before it.
  void on_overtaken() { is_late_ = true; }
  void on_caught_up();
  // on_unknown_answer: an answer has an XID that no known Call has.
  void on_unknown_answer(std::uint32_t xid);
  // Whether the answer to a Call with this XID came before the Call. Each answer counts once.
  bool takes_early_answer(std::uint32_t xid);
  // Whether a Reply with the XID of this Call answers this Call.
  bool is_certain(const Call& call) const { return !call.is_repeated && !has_gap_ && call.num_lost == num_lost_; }
  // Whether the capture has all RDMA Writes since this Call.
  bool knows_writes(const Call& call) const { return call.num_gaps == num_gaps_; }

  std::size_t num_open() const { return calls_.size(); }
  // had looks for a Call among the last kMaxPast XIDs. kAnswered: one Call, which got its Reply.
  Had had(std::uint32_t xid) const;
  // Whether memory may be offered of which the table does not know: open Calls were forgotten, or one of the last Calls
  // had the XID of another open one.
  bool has_forgotten() const { return lacks_calls() || num_repeated_ > 0; }
  bool has_overflowed() const { return has_overflowed_; }
  // Whether one of the open or last Calls had the XID of another open one.
  bool has_repeated_xid() const { return num_repeated_ > 0; }

 private:
  // Past: a message whose XID is not open any more.
  struct Past {
    std::uint32_t xid = 0;
    Had had = Had::kAnswered;
    bool is_repeated = false;  // Call::is_repeated
  };

  static constexpr std::uint64_t kUnknownGaps = UINT64_MAX;  // Call::num_gaps of a late Call

  bool lacks_calls() const { return has_forgotten_ || has_gap_ || is_late_ || num_unknown_ > 0; }
  void forget_all();
  void end_call(std::uint32_t xid, Had had);
  void note_past(Past past);
  bool was_repeated(std::uint32_t xid) const;
  void forget_oldest_past();
  // count tells how many entries there are.
  void count() {
    count_.set(calls_.size() + num_offered_ + num_heads_ + (past_.size() + answered_.size()) / kPastOfEntry +
               ahead_.size() * kEntriesOfHoled);
  }
  using Calls = absl::flat_hash_map<std::uint32_t, std::unique_ptr<Call>>;
  void forget(Calls::iterator call);
  void forget_segments(std::uint32_t xid, const Call& call);
  void note_run(Segment& segment, Run run);
  void note_run_ahead(Segment& segment, Run run);

  Pool& pool_;
  Calls calls_;  // by XID
  // By handle, offset and XID: several Calls can offer the same memory.
  std::multimap<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>, Segment> segments_;
  std::unordered_map<const Segment*, Runs> ahead_;  // behind a hole; by offsets in the segment
  std::size_t num_offered_ = 0;                     // entries for the chunks of all open Calls
  std::size_t num_heads_ = 0;                       // entries for the heads of their Replies
  Ring<Past> past_;                                 // the last ones
  std::size_t num_repeated_ = 0;                    // Calls that are open or in past_
  std::uint64_t num_gaps_ = 0, num_lost_ = 0;
  bool has_gap_ = false;
  bool is_late_ = false;                 // between on_overtaken and on_caught_up
  std::vector<std::uint32_t> answered_;  // XIDs of answers that came before their Calls, while is_late_
  std::uint64_t num_unknown_ = 0;        // Calls that the capture may lack, and that may be open
  std::uint64_t num_answered_ = 0;       // answers to unknown Calls while has_gap_
  bool has_forgotten_ = false;
  bool has_overflowed_ = false;  // forget_all
  EntryCount count_;
  bool knows_written_ = true;  // note_write has looked at all segments
};

// for_each_segment calls visit(handle, segment) for each segment of the lists. The XID of the segment is 0.
template <typename Visit>
void for_each_segment(const rpcrdma::ChunkListsView& lists, Visit visit) {
  using Segment = CallTable::Segment;
  using Use = Segment::Use;
  const auto visit_chunk = [&](const rpcrdma::SegmentArray& chunk, Use use, std::uint32_t index) {
    for (const rpcrdma::Segment& segment : chunk) {
      visit(segment.handle, Segment{.use = use,
                                    .index = index,
                                    .is_first = &segment == chunk.data(),
                                    .offset = segment.offset,
                                    .len = segment.length});
    }
  };
  visit_chunk(lists.call_chunk, Use::kCall, 0);
  for (const rpcrdma::ReadSegment& read : lists.read_list) {
    visit(read.target.handle,
          Segment{
              .use = Use::kArgument, .index = read.position, .offset = read.target.offset, .len = read.target.length});
  }
  std::uint32_t index = 0;
  for (const rpcrdma::SegmentArray& chunk : lists.write_list) visit_chunk(chunk, Use::kResult, ++index);
  if (lists.reply_chunk) visit_chunk(*lists.reply_chunk, Use::kReply, 0);
}

}  // namespace weft::apps::dissect
