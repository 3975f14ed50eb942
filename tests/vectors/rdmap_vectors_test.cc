// Holds the codecs of MPA startup, DDP and RDMAP against every record of rdmap-vectors.txt, in both directions, and
// against a reading of the octets by bit positions alone. tests/sim shows a stream's reaction to each record.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "ddp/segment.h"
#include "mpa/fpdu_writer.h"
#include "mpa/startup_frame.h"
#include "rdmap/header.h"
#include "rdmap/terminate.h"
#include "tests/vectors/vector_file.h"

namespace weft::rdmap {
namespace {

using vectors::from_hex;
using vectors::Record;
using Octets = std::vector<std::uint8_t>;

const std::vector<Record>& records() {
  static const auto all = vectors::read_vector_file("tests/vectors/rdmap-vectors.txt");
  return all;
}

// One ULPDU, or startup frame, of a record: its octets, and their meaning by the file.
struct Item {
  std::string name;
  Octets octets;
  std::map<std::string, std::string> fields;
  std::uint64_t number(const std::string& field) const { return std::stoull(fields.at(field), nullptr, 0); }
  bool has(const std::string& field) const { return fields.count(field) == 1; }
};

std::map<std::string, std::string> split_fields(const std::string& text) {
  std::map<std::string, std::string> fields;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    const std::size_t equals = word.find('=');
    fields[word.substr(0, equals)] = equals == std::string::npos ? "" : word.substr(equals + 1);
  }
  return fields;
}

std::vector<Item> items(const std::string& letters) {
  std::vector<Item> all;
  for (const Record& record : records()) {
    if (letters.find(record.name[0]) == std::string::npos) continue;
    if (record.find("hex")) {
      all.push_back({record.name, from_hex(*record.find("hex")), split_fields(*record.find("fields"))});
      EXPECT_EQ(std::stoul(*record.find("len")), all.back().octets.size()) << record.name;
      continue;
    }
    for (int i = 1; record.find("seg" + std::to_string(i) + ".hex"); ++i) {
      const std::string key = "seg" + std::to_string(i);
      all.push_back(
          {record.name + "." + key, from_hex(*record.find(key + ".hex")), split_fields(*record.find(key + ".fields"))});
      EXPECT_EQ(std::stoul(*record.find(key + ".len")), all.back().octets.size()) << record.name;
    }
  }
  return all;
}

bool is_startup_frame(const Item& item) {
  return item.has("Key");
}

std::uint64_t bits(const Octets& octets, std::size_t at, std::size_t len) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < len; ++i) value = value << 8 | octets.at(at + i);
  return value;
}

TEST(RdmapVectors, EveryRecordBelongsToATest) {
  std::map<char, std::size_t> num;
  std::set<std::string> extensions;
  for (const Record& record : records()) {
    ++num[record.name[0]];
    const std::string state = record.find("state").value_or("");
    // RFC 7306: the E records, and the hostile ones of a stream that understands it.
    if (record.name[0] == 'E' || state.find("+EXT") != std::string::npos) extensions.insert(record.name);
  }
  EXPECT_EQ(num, (std::map<char, std::size_t>{{'R', 16}, {'T', 23}, {'E', 8}, {'M', 13}, {'F', 6}, {'H', 65}}));
  EXPECT_EQ(extensions, (std::set<std::string>{"E01", "E02", "E03", "E04", "E05", "E06", "E07", "E08", "H49", "H50",
                                               "H51", "H52", "H53", "H54", "H55"}));
  EXPECT_EQ(items("RTEMFH").size(), 131u + 1 + 1 + 1 + 2 + 2 + 1 + 4 + 1);  // records with segments have several
}

TEST(RdmapVectors, OctetsMeanWhatTheFieldsSay) {
  RecordProperty("proves", "RDMAP-A-01");
  std::size_t num = 0;
  for (const Item& item : items("RTEFH")) {
    if (is_startup_frame(item)) continue;
    SCOPED_TRACE(item.name);
    ++num;
    const Octets& u = item.octets;
    EXPECT_EQ(u[0] >> 7, static_cast<int>(item.number("T")));
    EXPECT_EQ(u[0] >> 6 & 1, static_cast<int>(item.number("L")));
    EXPECT_EQ(u[0] >> 2 & 0xf, static_cast<int>(item.number("Resrv")));
    EXPECT_EQ(u[0] & 3, static_cast<int>(item.number("DV")));
    EXPECT_EQ(u[1] >> 6, static_cast<int>(item.number("RV")));
    EXPECT_EQ(u[1] >> 4 & 3, static_cast<int>(item.number("Rsv")));
    EXPECT_EQ(u[1] & 0xf, static_cast<int>(item.number("Op")));
    const bool tagged = (u[0] & 0x80) != 0;
    if (tagged) {
      EXPECT_EQ(bits(u, 2, 4), item.number("STag"));
      EXPECT_EQ(bits(u, 6, 8), item.number("TO"));
    } else {
      EXPECT_EQ(bits(u, 2, 4), item.number("InvSTag"));
      EXPECT_EQ(bits(u, 6, 4), item.number("QN"));
      EXPECT_EQ(bits(u, 10, 4), item.number("MSN"));
      EXPECT_EQ(bits(u, 14, 4), item.number("MO"));
    }
    if (item.has("payload")) {
      EXPECT_EQ(u.size() - (tagged ? 14 : 18), item.number("payload"));
    }
    if (item.has("RDMARDSZ")) {
      EXPECT_EQ(bits(u, 18, 4), item.number("SinkSTag"));
      EXPECT_EQ(bits(u, 22, 8), item.number("SinkTO"));
      EXPECT_EQ(bits(u, 30, 4), item.number("RDMARDSZ"));
      EXPECT_EQ(bits(u, 34, 4), item.number("SrcSTag"));
      EXPECT_EQ(bits(u, 38, 8), item.number("SrcTO"));
    }
  }
  EXPECT_EQ(num, 121u);
}

TEST(RdmapVectors, DdpHeadersReadAndComeOutTheSame) {
  RecordProperty("proves", "RDMAP-A-01 RDMAP-4-02");
  for (const Item& item : items("RTEFH")) {
    if (is_startup_frame(item)) continue;
    SCOPED_TRACE(item.name);
    const auto segment = ddp::parse_segment_wire(item.octets);
    ASSERT_TRUE(segment);
    Octets out(ddp::kUntaggedHeaderLen, 0xa5);
    const Control control = parse_control(item.octets[1]);
    EXPECT_EQ(control.rv, item.number("RV"));
    EXPECT_EQ(control.opcode, item.number("Op"));
    if (const auto* h = std::get_if<ddp::TaggedHeader>(&segment->header)) {
      EXPECT_EQ(h->last, item.number("L") == 1);
      EXPECT_EQ(h->rsvd, item.number("Resrv"));
      EXPECT_EQ(h->dv, item.number("DV"));
      EXPECT_EQ(h->stag.value, item.number("STag"));
      EXPECT_EQ(h->to, item.number("TO"));
      out.resize(ddp::kTaggedHeaderLen);
      ddp::emit_header(*h, std::span(out).first<ddp::kTaggedHeaderLen>());
    } else {
      const auto& u = std::get<ddp::UntaggedHeader>(segment->header);
      EXPECT_EQ(u.last, item.number("L") == 1);
      EXPECT_EQ(u.rsvd_ulp_8_39, item.number("InvSTag"));
      EXPECT_EQ(u.qn, item.number("QN"));
      EXPECT_EQ(u.msn.value, item.number("MSN"));
      EXPECT_EQ(u.mo, item.number("MO"));
      ddp::emit_header(u, std::span(out).first<ddp::kUntaggedHeaderLen>());
    }
    out.insert(out.end(), segment->payload.begin(), segment->payload.end());
    // An emitted header has its reserved bits clear, also where the parsed header had them set.
    Octets expected = item.octets;
    expected[0] = static_cast<std::uint8_t>(expected[0] & ~0x3c);
    out[0] = static_cast<std::uint8_t>(out[0] & ~0x3c);
    EXPECT_EQ(out, expected);
  }
}

TEST(RdmapVectors, ReadRequestsReadAndComeOutTheSame) {
  RecordProperty("proves", "RDMAP-4.4-02");
  std::size_t num = 0;
  for (const Item& item : items("RFH")) {
    if (!item.has("RDMARDSZ")) continue;
    SCOPED_TRACE(item.name);
    const Octets body(item.octets.begin() + 18, item.octets.end());
    const auto request = parse_read_request_header(body);
    if (item.has("extra")) {  // one octet too many is no header
      EXPECT_FALSE(request);
      continue;
    }
    ++num;
    ASSERT_TRUE(request);
    EXPECT_EQ(request->sink_stag.value, item.number("SinkSTag"));
    EXPECT_EQ(request->sink_to, item.number("SinkTO"));
    EXPECT_EQ(request->size, item.number("RDMARDSZ"));
    EXPECT_EQ(request->src_stag.value, item.number("SrcSTag"));
    EXPECT_EQ(request->src_to, item.number("SrcTO"));
    const auto out = emit_read_request_header(*request);
    EXPECT_EQ(Octets(out.begin(), out.end()), body);
    for (std::size_t len = 0; len < body.size(); ++len)
      EXPECT_FALSE(parse_read_request_header(ConstBytes(body).first(len)));
  }
  EXPECT_EQ(num, 19u);
}

TEST(RdmapVectors, TerminatesReadAndComeOutTheSame) {
  std::size_t num = 0;
  for (const Item& item : items("TF")) {
    if (!item.has("Layer")) continue;
    SCOPED_TRACE(item.name);
    ++num;
    const Octets body(item.octets.begin() + 18, item.octets.end());
    const auto message = parse_terminate(body);
    ASSERT_TRUE(message);
    EXPECT_EQ(static_cast<unsigned>(message->what.layer), item.number("Layer"));
    EXPECT_EQ(message->what.etype, item.number("EType"));
    EXPECT_EQ(message->what.code, item.number("Code"));
    EXPECT_EQ(message->segment_len.has_value(), item.number("M") == 1);
    if (message->segment_len) {
      EXPECT_EQ(*message->segment_len, item.number("SegLen"));
    }
    EXPECT_EQ(Octets(message->ddp().begin(), message->ddp().end()),
              item.number("D") == 1 ? from_hex(item.fields.at("DDPHdr")) : Octets{});
    ASSERT_EQ(message->has_rdma_header, item.number("R") == 1);
    if (message->has_rdma_header) {
      EXPECT_EQ(Octets(message->rdma_header.begin(), message->rdma_header.end()), from_hex(item.fields.at("RDMAHdr")));
    }
    Octets out(kTerminateMaxLen, 0xa5);
    out.resize(emit_terminate(*message, out));
    EXPECT_EQ(out, body);
  }
  EXPECT_EQ(num, 26u);
}

// The Terminate that each hostile record expects agrees with its `term` line, and copies the refused message.
TEST(RdmapVectors, ExpectedTerminatesAgreeWithTheirDescription) {
  std::size_t num = 0;
  for (const Record& record : records()) {
    if (!record.find("expect.hex")) continue;
    SCOPED_TRACE(record.name);
    ++num;
    const Octets expected = from_hex(*record.find("expect.hex"));
    const auto message = parse_terminate(ConstBytes(expected).subspan(18));
    ASSERT_TRUE(message);
    unsigned layer = 99, etype = 99, code = 99;
    char headers[8] = "";
    const std::string term = *record.find("term");
    ASSERT_EQ(std::sscanf(term.c_str(), "%x/%x/%x headers=%7s", &layer, &etype, &code, headers), 4) << term;
    EXPECT_EQ(static_cast<unsigned>(message->what.layer), layer);
    EXPECT_EQ(message->what.etype, etype);
    EXPECT_EQ(message->what.code, code);
    const std::string which = headers;
    EXPECT_EQ(message->segment_len.has_value(), which.find('M') != std::string::npos);
    EXPECT_EQ(message->ddp_header_len > 0, which.find('D') != std::string::npos);
    EXPECT_EQ(message->has_rdma_header, which.find('R') != std::string::npos);
  }
  EXPECT_EQ(num, 49u);
}

TEST(RdmapVectors, FpdusComeOutAsWritten) {
  std::size_t num = 0;
  for (const Record& record : records()) {
    if (record.name[0] != 'F') continue;
    SCOPED_TRACE(record.name);
    ++num;
    mpa::FpduWriter writer(true);
    ASSERT_TRUE(writer.add(from_hex(*record.find("hex")), {}, true));
    Octets out;
    for (ConstBytes view : writer.buffers()) out.insert(out.end(), view.begin(), view.end());
    EXPECT_EQ(out, from_hex(*record.find("fpdu.hex")));
  }
  EXPECT_EQ(num, 6u);
}

TEST(RdmapVectors, StartupFramesReadAndComeOutTheSame) {
  std::size_t num = 0;
  for (const Item& item : items("MH")) {
    if (!is_startup_frame(item)) continue;
    SCOPED_TRACE(item.name);
    ++num;
    const auto kind = item.fields.at("Key") == "req" ? mpa::FrameKind::kRequest : mpa::FrameKind::kReply;
    const auto parsed = mpa::parse_startup_frame(item.octets, kind);
    // Too long, and too short for the words that S=1 announces.
    if (item.name == "H56" || item.name == "H57") {
      EXPECT_TRUE(std::holds_alternative<mpa::BadFrame>(parsed));
      continue;
    }
    ASSERT_TRUE(std::holds_alternative<mpa::ParsedFrame>(parsed));
    const mpa::StartupFrame& frame = std::get<mpa::ParsedFrame>(parsed).frame;
    EXPECT_EQ(frame.m, item.number("M") == 1);
    EXPECT_EQ(frame.c, item.number("C") == 1);
    EXPECT_EQ(frame.r, item.number("R") == 1);
    EXPECT_EQ(frame.s, item.number("S") == 1);
    EXPECT_EQ(frame.rev, item.number("Rev"));
    EXPECT_EQ(frame.private_data.size(), item.number("PD_Length"));
    Octets out;
    mpa::emit_startup_frame(frame, out);
    EXPECT_EQ(out, item.octets);
    const auto words = mpa::parse_enhanced_words(frame);
    if (frame.rev < 2 || !item.has("A")) {
      EXPECT_FALSE(words);
      continue;
    }
    ASSERT_TRUE(words);
    EXPECT_EQ(words->a, item.number("A") == 1);
    EXPECT_EQ(words->b, item.number("B") == 1);
    EXPECT_EQ(words->c, item.number("Cflag") == 1);
    EXPECT_EQ(words->d, item.number("D") == 1);
    EXPECT_EQ(words->ird, item.number("IRD"));
    EXPECT_EQ(words->ord, item.number("ORD"));
    EXPECT_EQ(mpa::ulp_private_data(frame).size(), item.number("ulp"));
    out.clear();
    mpa::emit_enhanced_words(*words, out);
    EXPECT_EQ(out, Octets(frame.private_data.begin(), frame.private_data.begin() + 4));
  }
  EXPECT_EQ(num, 23u);
}

}  // namespace
}  // namespace weft::rdmap
