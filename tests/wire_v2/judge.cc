#include "tests/wire_v2/judge.h"

#include <algorithm>

#include "tests/wire_v2/parse.h"
#include "tests/wire_v2/rpc.h"
#include "tests/wire_v2/tables.h"

namespace weft::wire_v2 {
namespace {

// Keeps the first fault.
class Judge {
 public:
  explicit Judge(const Message& message) : message_(message) {}

  void require(bool holds, const Rules& rules, const char* text) {
    if (!holds && !fault_) fault_ = Fault{rules.in(message_.profile), text};
  }
  void require(std::optional<Fault> fault) {
    if (!fault_) fault_ = std::move(fault);
  }
  const std::optional<Fault>& fault() const { return fault_; }

 private:
  const Message& message_;
  std::optional<Fault> fault_;
};

bool is_cel05(const Message& message) {
  return message.profile == Profile::kCel05;
}

std::vector<Segment> segments_of(const Message& message) {
  std::vector<Segment> segments;
  for (const ReadSegment& read : message.call) segments.push_back(read.target);
  for (const ReadSegment& read : message.reads) segments.push_back(read.target);
  for (const Chunk& chunk : message.writes) segments.insert(segments.end(), chunk.begin(), chunk.end());
  if (message.reply) segments.insert(segments.end(), message.reply->begin(), message.reply->end());
  return segments;
}

void version(Judge& judge, const Message& message) {
  // Errors that tell of the version copy the one that they refuse.
  const bool tells =
      message.kind == Kind::kError &&
      (message.error.code == kErrVers || (!is_cel05(message) && message.error.code == wg07::kErrVersMismatch));
  judge.require(message.version == 2 || tells, {"R2-7.2-1", "W2-8.3-1"}, "rdma_vers is not 2");
}

void credit(Judge& judge, const Message& message) {
  if (!is_cel05(message) || message.kind == Kind::kProperties) return;
  const bool is_version_error = message.kind == Kind::kError && message.error.code == kErrVers;
  judge.require(message.credit > 0 || is_version_error, {"R2-7.2.2-10", ""}, "rdma_credit is 0");
}

void positions(Judge& judge, const Message& message) {
  const auto in_order = [](const ReadSegment& a, const ReadSegment& b) { return a.position < b.position; };
  const auto is_zero = [](const ReadSegment& read) { return read.position == 0; };
  for (const ReadSegment& read : message.reads) {
    judge.require(read.position % 4 == 0, {"R1-4.4.5-05", "W2-4.5.1-2"}, "a Position is not a multiple of four");
  }
  if (is_cel05(message)) {
    judge.require(message.kind == Kind::kExternal || std::ranges::none_of(message.reads, is_zero), {"R2-3.1-3", ""},
                  "RDMA2_MSG has a Position-Zero Read chunk");
    return;
  }
  judge.require(std::ranges::is_sorted(message.reads, in_order), {"", "W2-4.5.1.1-1"}, "the Positions decrease");
  judge.require(std::ranges::none_of(message.reads, is_zero), {"", "W2-6.3.7-2"}, "rdma_reads has Position 0");
  judge.require(std::ranges::all_of(message.call, is_zero), {"", "W2-6.6.3-1"},
                "rdma_call has a Position other than 0");
}

void chunks(Judge& judge, const Message& message) {
  const auto segments = segments_of(message);
  for (const Segment& segment : segments) {
    judge.require(segment.offset <= UINT64_MAX - segment.length, {"R2-7.2-3", "W2-3.2.2.1-1"},
                  "a segment wraps around the end of memory");
  }
  positions(judge, message);
  if (message.direction == Direction::kReply) {
    judge.require(message.reads.empty(), {"R1-5.3.1-02", ""}, "a Reply has a Read list");
    judge.require(message.inv_handle == 0, {"R2-7.2.3-7", ""}, "rdma_inv_handle of a Reply is not 0");
    const bool is_long = message.kind == Kind::kExternal;
    judge.require(is_long || !message.reply || length_of(*message.reply) == 0, {"R1-5.3.3-05", ""},
                  "an inline Reply uses its Reply chunk");
  } else if (message.inv_handle != 0) {
    judge.require(std::ranges::find(segments, message.inv_handle, &Segment::handle) != segments.end(),
                  {"R2-7.2.3-1", "W2-6.5-1"}, "rdma_inv_handle is no handle of the header");
  }
}

void error(Judge& judge, const Message& message) {
  // cel05's union has no default, so that this was no XDR.
  judge.require(error_code(message.profile, message.error.code) != nullptr, {"", "W2-7-3"}, "rdma_err is not known");
  if (message.error.code != kErrVers) return;
  judge.require(message.error.words.at(0) <= message.error.words.at(1), {"R2-7.2.4-3", "W2-7.1.1-1"},
                "no version lies between the lowest and the highest");
}

void properties(Judge& judge, const Message& message) {
  for (const Property& property : message.properties) {
    const bool is_value = is_cel05(message) ? is_value_of_cel05(property) : is_value_of_wg07(property);
    judge.require(property.value.empty() || is_value, {"R2-6.1.1-5", "W2-5.1-4"},
                  "a property has no value of its type");
  }
}

// Whether a payload begins with the whole RPC message is the option's own affair.
void option(Judge& judge, const Message& message) {
  constexpr std::size_t kTwoWords = 8;
  const Bytes& payload = message.payload;
  if (payload.size() < kTwoWords) return;
  const auto word = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = at; i < at + 4; ++i) value = value << 8 | payload[i];
    return value;
  };
  const std::uint32_t type = message.direction == Direction::kCall ? 0 : 1;
  judge.require(word(0) != message.xid || word(4) == type, {"R2-7.2.2-5", ""},
                "rdma_optdir is not the direction of the RPC message");
}

void payload(Judge& judge, const Message& message) {
  switch (message.kind) {
    case Kind::kInline:
      // In wg07 it may be the last part of a longer one, which one message alone does not tell.
      if (is_cel05(message)) judge.require(judge_payload(message, message.payload));
      return;
    case Kind::kPart: return;
    case Kind::kOption: return option(judge, message);
    case Kind::kError:
      return judge.require(message.payload.empty(), {"R2-7.2.1-2", "W2-6.1-2"}, "something follows the error");
    case Kind::kGrant: return judge.require(message.payload.empty(), {"", "W2-6.3.2-1"}, "something follows the GRANT");
    case Kind::kProperties:
      return judge.require(message.payload.empty(), {"R2-6.3-6", "W2-6.1-2"}, "something follows the properties");
    case Kind::kExternal:
      judge.require(message.payload.empty(), {"R2-7.2.1-4", "W2-6.1-2"}, "something follows the header");
      return judge.require(judge_external(message));
  }
}

}  // namespace

std::optional<Fault> judge(const Message& message) {
  Judge judge(message);
  version(judge, message);
  credit(judge, message);
  chunks(judge, message);
  if (message.kind == Kind::kError) error(judge, message);
  if (message.kind == Kind::kProperties) properties(judge, message);
  if (message.kind == Kind::kGrant) judge.require(message.xid == 0, {"", "W2-6.3.2-1"}, "the XID of a GRANT is not 0");
  payload(judge, message);
  return judge.fault();
}

}  // namespace weft::wire_v2
