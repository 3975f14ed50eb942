// Holds DDP against ddp-vectors.txt: a sink model of nothing but the DDP layer's own parts and a table of arrays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <map>

#include "ddp/range.h"
#include "ddp/segment.h"
#include "ddp/tagged.h"
#include "ddp/untagged_queue.h"
#include "tests/vectors/vector_file.h"

namespace weft::ddp {
namespace {

using vectors::Record;
using Octets = std::vector<std::uint8_t>;

constexpr std::uint8_t kFill = 0xa5;
constexpr std::size_t kGuardLen = 64;
constexpr StreamScope kScope{.pd = 7, .stream = 1};

const std::vector<Record>& records() {
  static const std::vector<Record> all = vectors::read_vector_file("tests/vectors/ddp-vectors.txt");
  return all;
}

struct Region {
  std::string name;
  Stag stag;
  std::uint32_t pd = 7;
  std::uint32_t stream = 0;  // 0: any stream of the PD
  std::uint64_t base = 0;
  std::size_t len = 4096;
  bool remote_write = false;
  bool valid = true;
  Octets octets = {};  // the region, and kGuardLen octets on either side of it
};

// The regions of state S0, as the head of the vector file describes them.
class FakeTable : public MemoryTable {
 public:
  FakeTable() {
    regions_ = {
        {.name = "W1", .stag = {0x1a2b3c01}, .base = 0x00007f0000001000, .len = 8192, .remote_write = true},
        {.name = "Z2", .stag = {0x5d6e7f02}, .remote_write = true},
        {.name = "P3", .stag = {0x33445503}, .pd = 9, .remote_write = true},
        {.name = "S4", .stag = {0x77889904}, .stream = 2, .remote_write = true},
        {.name = "R5", .stag = {0x0badf005}},
        {.name = "L6", .stag = {0x0c0ffe06}},
        {.name = "X7", .stag = {0x2468ac07}, .remote_write = true, .valid = false},
        {.name = "E8", .stag = {0x9abcde08}, .len = 65536, .remote_write = true},
    };
    for (Region& region : regions_) region.octets.assign(kGuardLen + region.len + kGuardLen, kFill);
  }

  std::variant<MutBytes, AccessError> resolve(StreamScope scope, Stag stag, std::uint64_t to, std::size_t len,
                                              Right right) override {
    ++num_asked_;
    for (Region& region : regions_) {
      if (region.stag != stag) continue;
      if (!region.valid) return AccessError::kInvalidStag;
      if (region.pd != scope.pd || (region.stream != 0 && region.stream != scope.stream))
        return AccessError::kNotAssociated;
      if (right == Right::kRemoteWrite && !region.remote_write) return AccessError::kAccessRights;
      if (const auto error = check_range(region.base, region.len, to, len)) return *error;
      return MutBytes(region.octets).subspan(kGuardLen + (to - region.base), len);
    }
    return AccessError::kInvalidStag;
  }

  std::variant<std::monostate, AccessError> invalidate(StreamScope, Stag) override { return AccessError::kInvalidStag; }

  const std::vector<Region>& regions() const { return regions_; }
  int num_asked() const { return num_asked_; }

 private:
  std::vector<Region> regions_;
  int num_asked_ = 0;
};

// A receiver made of the DDP layer alone. Read Responses are matched as RDMAP would, by the one open Read.
class Sink {
 public:
  explicit Sink(const std::string& state) {
    buffers_[0] = {Octets(4096, kFill), Octets(4096, kFill), Octets(4096, kFill), Octets(64, kFill)};
    buffers_[1] = {Octets(28, kFill), Octets(28, kFill)};
    buffers_[2] = {Octets(64, kFill)};
    if (state == "S0+NOBUF") buffers_[0].clear();
    if (state == "S0+WRAP") queues_[0] = UntaggedQueue(Msn{0xffffffff});
    if (state == "S0+WRAPPED") queues_[0] = UntaggedQueue(Msn{0});
    read_open_ = state == "S0+READ";
  }

  std::optional<Error> receive(ConstBytes ulpdu) {
    const auto segment = parse_segment(ulpdu);
    if (!segment) return segment.error();
    if (const auto* header = std::get_if<TaggedHeader>(&segment->header)) return receive(*header, segment->payload);
    return receive(std::get<UntaggedHeader>(segment->header), segment->payload);
  }

  // Every octet of every region and buffer, guards included, by the names that the vectors use.
  std::map<std::string, Octets> memory() const {
    std::map<std::string, Octets> all;
    for (const Region& region : table_.regions()) all[region.name] = region.octets;
    for (std::size_t qn = 0; qn < kNumQueues; ++qn)
      for (std::size_t i = 0; i < buffers_[qn].size(); ++i)
        all["Q" + std::to_string(qn) + "." + std::to_string(i)] = buffers_[qn][i];
    return all;
  }

  const std::string& events() const { return events_; }
  const FakeTable& table() const { return table_; }

 private:
  std::optional<Error> receive(const TaggedHeader& header, ConstBytes payload) {
    Right right = Right::kRemoteWrite;
    if (header.rsvd_ulp == 0x42 && read_open_) right = Right::kLocalWrite;
    const auto place = resolve_tagged(table_, kScope, header.stag, header.to, payload.size(), right);
    if (const auto* error = std::get_if<Error>(&place)) return *error;
    if (!payload.empty()) std::memcpy(std::get<MutBytes>(place).data(), payload.data(), payload.size());
    if (header.last) {
      char text[64];
      if (payload.empty()) {
        std::snprintf(text, sizeof text, "tagged-last ulp=0x%02x len=0", header.rsvd_ulp);
      } else {
        std::snprintf(text, sizeof text, "tagged-last ulp=0x%02x stag=0x%08x", header.rsvd_ulp, header.stag.value);
      }
      add_event(text);
    }
    return std::nullopt;
  }

  std::optional<Error> receive(const UntaggedHeader& header, ConstBytes payload) {
    if (const auto error = check_qn(header.qn)) return error;
    UntaggedQueue& queue = queues_[header.qn];
    std::size_t& used = num_used_[header.qn];
    std::optional<std::uint64_t> buffer_len;
    if (used < buffers_[header.qn].size()) buffer_len = buffers_[header.qn][used].size();
    if (const auto error = queue.check(header, payload.size(), buffer_len)) return error;
    if (!payload.empty())
      std::memcpy(buffers_[header.qn][used].data() + queue.received(), payload.data(), payload.size());
    if (const auto len = queue.advance(header, payload.size())) {
      ++used;
      char text[96];
      std::snprintf(text, sizeof text, "deliver qn=%u msn=0x%08x len=%u ulp=0x%02x%08x", header.qn, header.msn.value,
                    *len, header.rsvd_ulp, header.rsvd_ulp_8_39);
      add_event(text);
    }
    return std::nullopt;
  }

  void add_event(const char* text) {
    if (!events_.empty()) events_ += "; ";
    events_ += text;
  }

  FakeTable table_;
  UntaggedQueue queues_[kNumQueues];
  std::vector<Octets> buffers_[kNumQueues];
  std::size_t num_used_[kNumQueues] = {};
  bool read_open_ = false;
  std::string events_;
};

// Applies "W1+0x7fd e0e1e2" or "Q0.0+0x0 ramp=0x80 len=300" to the earlier contents of memory.
void apply_mem_line(const std::string& line, std::map<std::string, Octets>& memory) {
  const std::size_t plus = line.find('+');
  const std::size_t space = line.find(' ');
  ASSERT_TRUE(plus != std::string::npos && space != std::string::npos) << line;
  auto offset = std::stoul(line.substr(plus + 1, space - plus - 1), nullptr, 0);
  if (line[0] != 'Q') offset += kGuardLen;
  const Octets octets = vectors::from_pattern(line.substr(space + 1));
  Octets& target = memory.at(line.substr(0, plus));
  ASSERT_LE(offset + octets.size(), target.size());
  std::copy(octets.begin(), octets.end(), target.begin() + static_cast<std::ptrdiff_t>(offset));
}

Octets emitted(const Segment& segment) {
  Octets out(kUntaggedHeaderLen, 0xa5);
  if (const auto* tagged = std::get_if<TaggedHeader>(&segment.header)) {
    emit_header(*tagged, std::span(out).first<kTaggedHeaderLen>());
    out.resize(kTaggedHeaderLen);
  } else {
    emit_header(std::get<UntaggedHeader>(segment.header), std::span(out).first<kUntaggedHeaderLen>());
  }
  out.insert(out.end(), segment.payload.begin(), segment.payload.end());
  return out;
}

std::vector<Octets> segments_of(const Record& record, const std::string& stem) {
  std::vector<Octets> segments;
  for (int i = 1;; ++i) {
    auto octets = record.octets(stem + std::to_string(i));
    if (!octets) return segments;
    segments.push_back(std::move(*octets));
  }
}

// "T=1 L=0 Rsvd=0x0 DV=1 ..." as the vectors spell a header.
std::string fields_of(const Segment& segment) {
  char text[160];
  if (const auto* tagged = std::get_if<TaggedHeader>(&segment.header)) {
    std::snprintf(text, sizeof text, "T=1 L=%d Rsvd=0x%x DV=%d RsvdULP=0x%02x STag=0x%08x TO=0x%016llx payload=%zu",
                  tagged->last, tagged->rsvd, tagged->dv, tagged->rsvd_ulp, tagged->stag.value,
                  static_cast<unsigned long long>(tagged->to), segment.payload.size());
  } else {
    const auto& untagged = std::get<UntaggedHeader>(segment.header);
    std::snprintf(text, sizeof text, "T=0 L=%d Rsvd=0x%x DV=%d RsvdULP=0x%02x%08x QN=%u MSN=0x%08x MO=%u payload=%zu",
                  untagged.last, untagged.rsvd, untagged.dv, untagged.rsvd_ulp, untagged.rsvd_ulp_8_39, untagged.qn,
                  untagged.msn.value, untagged.mo, segment.payload.size());
  }
  return text;
}

// The octets of a segment from the fields that the vectors spell out, and from the payload.
Octets emitted_from_fields(const std::string& fields, ConstBytes payload) {
  unsigned t = 0, l = 0, rsvd = 0, dv = 0, stag = 0, qn = 0, msn = 0, mo = 0;
  unsigned long long ulp = 0, to = 0;
  std::size_t payload_len = 0;
  if (std::sscanf(fields.c_str(), "T=%u L=%u Rsvd=%x DV=%u RsvdULP=%llx STag=%x TO=%llx payload=%zu", &t, &l, &rsvd,
                  &dv, &ulp, &stag, &to, &payload_len) == 8) {
    EXPECT_EQ(payload_len, payload.size());
    return emitted({TaggedHeader{.last = l == 1,
                                 .rsvd = static_cast<std::uint8_t>(rsvd),
                                 .dv = static_cast<std::uint8_t>(dv),
                                 .rsvd_ulp = static_cast<std::uint8_t>(ulp),
                                 .stag = {stag},
                                 .to = to},
                    payload});
  }
  EXPECT_EQ(std::sscanf(fields.c_str(), "T=%u L=%u Rsvd=%x DV=%u RsvdULP=%llx QN=%u MSN=%x MO=%u payload=%zu", &t, &l,
                        &rsvd, &dv, &ulp, &qn, &msn, &mo, &payload_len),
            9);
  EXPECT_EQ(payload_len, payload.size());
  return emitted({UntaggedHeader{.last = l == 1,
                                 .rsvd = static_cast<std::uint8_t>(rsvd),
                                 .dv = static_cast<std::uint8_t>(dv),
                                 .rsvd_ulp = static_cast<std::uint8_t>(ulp >> 32),
                                 .rsvd_ulp_8_39 = static_cast<std::uint32_t>(ulp),
                                 .qn = qn,
                                 .msn = {msn},
                                 .mo = mo},
                  payload});
}

// Every segment of the file: the sent segments, the segments before and after a refused one, and the refused ones.
TEST(DdpVectors, EverySegmentComesOutOfItsFields) {
  int num_checked = 0;
  int num_short = 0;
  for (const Record& record : records()) {
    for (const auto& [key, value] : record.fields) {
      const std::size_t dot = key.find(".fields");
      if (dot == std::string::npos) continue;
      const std::string stem = key.substr(0, dot);
      SCOPED_TRACE(record.name + " " + stem);
      const Octets octets = record.octets(stem).value();
      EXPECT_EQ(std::to_string(octets.size()), record.find(stem + ".len"));
      if (value.starts_with("short segment")) {
        ++num_short;
        continue;
      }
      const std::size_t header_len = (octets[0] & 0x80) != 0 ? kTaggedHeaderLen : kUntaggedHeaderLen;
      EXPECT_EQ(emitted_from_fields(value, ConstBytes(octets).subspan(header_len)), octets);
      ++num_checked;
    }
  }
  EXPECT_EQ(num_short, 5);
  EXPECT_EQ(num_checked, 86);
}

TEST(DdpVectors, NoRecordIsMissing) {
  std::map<char, int> count;
  for (const Record& record : records()) ++count[record.name.front()];
  EXPECT_EQ(count, (std::map<char, int>{{'V', 20}, {'H', 31}, {'R', 16}}));
}

// Raw DDP: delivery passes the field on as the layer above set it.
TEST(DdpVectors, RsvdUlpReachesTheLayerAbove) {
  RecordProperty("proves", "DDP-4.2-03 DDP-5.4-05");
  for (unsigned value = 0; value < 256; ++value) {
    Sink sink("S0");
    const auto ulp = static_cast<std::uint8_t>(value);
    const Octets payload = {1, 2};
    Octets octets = emitted({TaggedHeader{.last = false, .rsvd_ulp = ulp, .stag = {0x5d6e7f02}}, payload});
    ASSERT_EQ(octets[1], ulp);
    ASSERT_EQ(sink.receive(octets), std::nullopt);
    ASSERT_EQ(sink.receive(emitted({TaggedHeader{.rsvd_ulp = ulp, .stag = {0x5d6e7f02}, .to = 2}, payload})),
              std::nullopt);
    const std::uint32_t rest = value * 0x01030507;
    ASSERT_EQ(sink.receive(emitted({UntaggedHeader{.rsvd_ulp = ulp, .rsvd_ulp_8_39 = rest}, payload})), std::nullopt);
    char want[128];
    std::snprintf(want, sizeof want,
                  "tagged-last ulp=0x%02x stag=0x5d6e7f02; deliver qn=0 msn=0x00000001 len=2 ulp=0x%02x%08x", value,
                  value, rest);
    EXPECT_EQ(sink.events(), want);
  }
}

TEST(DdpVectors, ValidSegmentsAreParsedAndEmittedOctetForOctet) {
  RecordProperty("proves", "DDP-4.1-01 DDP-4.2-01 DDP-4.3-01 DDP-4.3-02 DDP-4.3-13");
  int num_checked = 0;
  for (const Record& record : records()) {
    if (record.name.front() != 'V') continue;
    const auto segments = segments_of(record, "seg");
    ASSERT_FALSE(segments.empty()) << record.name;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      SCOPED_TRACE(record.name + " segment " + std::to_string(i + 1));
      const auto segment = parse_segment(segments[i]);
      ASSERT_TRUE(segment.ok());
      EXPECT_EQ(emitted(*segment), segments[i]);
      EXPECT_EQ(fields_of(*segment), record.find("seg" + std::to_string(i + 1) + ".fields"));
      EXPECT_EQ(std::to_string(segments[i].size()), record.find("seg" + std::to_string(i + 1) + ".len"));
      ++num_checked;
    }
  }
  EXPECT_EQ(num_checked, 36);
}

TEST(DdpVectors, ValidSegmentsArePlacedAndDeliveredAsTheVectorsSay) {
  RecordProperty("proves",
                 "DDP-1.2-01 DDP-1.2-03 DDP-4.1-09 DDP-4.1-11 DDP-4.2-07 DDP-4.2-09 DDP-4.2-10 DDP-5.1.1-01 "
                 "DDP-5.1.1-02 DDP-5.1.2-02 DDP-5.2-05 DDP-5.4-03 DDP-5.4-05");
  for (const Record& record : records()) {
    if (record.name.front() != 'V') continue;
    SCOPED_TRACE(record.name);
    Sink sink(record.find("state").value());
    auto want = sink.memory();
    for (const Octets& segment : segments_of(record, "seg")) EXPECT_EQ(sink.receive(segment), std::nullopt);
    for (int i = 1;; ++i) {
      const auto line = record.find("mem" + std::to_string(i));
      if (!line) break;
      apply_mem_line(*line, want);
    }
    EXPECT_EQ(sink.memory(), want);
    const std::string events = record.find("events").value();
    EXPECT_EQ(sink.events(), events == "none" ? "" : events);
    if (record.name == "V10") {
      EXPECT_EQ(sink.table().num_asked(), 0);
    }
  }
}

// Faults that only RDMAP can see: the records aim a Read Response at something other than the sink of the open Read.
bool needs_rdmap(const std::string& name) {
  return name == "R03" || name == "R04" || name == "R05";
}

TEST(DdpVectors, HostileSegmentsGetTheirCodeAndChangeNothing) {
  RecordProperty("proves", "DDP-4.2-05 DDP-7.1-09 DDP-7.1-10 DDP-7.2-10 DDP-8.1-01 DDP-8.3.1-03");
  int num_checked = 0;
  for (const Record& record : records()) {
    if ((record.name.front() != 'H' && record.name.front() != 'R') || needs_rdmap(record.name)) continue;
    SCOPED_TRACE(record.name);
    Sink sink(record.find("state").value());
    for (const Octets& segment : segments_of(record, "pre")) ASSERT_EQ(sink.receive(segment), std::nullopt);
    const auto memory = sink.memory();
    const std::string events = sink.events();
    const auto octets = record.octets("seg");
    ASSERT_TRUE(octets);
    const auto error = sink.receive(*octets);
    unsigned layer = 0;
    unsigned type = 0;
    unsigned code_value = 0;
    ASSERT_EQ(
        std::sscanf(record.find("report").value().c_str(), "layer=%x type=%x code=%x", &layer, &type, &code_value), 3);
    ASSERT_EQ(layer, 1u);
    ASSERT_TRUE(error);
    EXPECT_EQ(etype(*error), type);
    EXPECT_EQ(code(*error), code_value);
    EXPECT_EQ(sink.memory(), memory);
    EXPECT_EQ(sink.events(), events);
    ++num_checked;
  }
  EXPECT_EQ(num_checked, 44);  // 31 H and 16 R, less three
}

TEST(DdpVectors, EveryTruncationOfAHeaderIsLocalCatastrophic) {
  for (const Record& record : records()) {
    if (record.name != "V01" && record.name != "V09") continue;
    const Octets octets = segments_of(record, "seg").front();
    const std::size_t header_len = record.name == "V01" ? kTaggedHeaderLen : kUntaggedHeaderLen;
    for (std::size_t len = 0; len < header_len; ++len) {
      const auto segment = parse_segment(ConstBytes(octets).first(len));
      ASSERT_FALSE(segment.ok()) << record.name << " " << len;
      EXPECT_EQ(segment.error(), Error::kLocalCatastrophic);
    }
    EXPECT_TRUE(parse_segment(ConstBytes(octets).first(header_len)).ok());
  }
}

}  // namespace
}  // namespace weft::ddp
