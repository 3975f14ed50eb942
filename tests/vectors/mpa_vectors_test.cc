// Holds MPA against every record of mpa-vectors.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <map>

#include "mpa/crc32c.h"
#include "mpa/fpdu.h"
#include "mpa/fpdu_reader.h"
#include "mpa/fpdu_writer.h"
#include "mpa/staging.h"
#include "mpa/startup.h"
#include "mpa/startup_frame.h"
#include "mpa/testing/octets_of.h"
#include "tests/vectors/vector_file.h"

namespace weft::mpa {
namespace {

using vectors::from_hex;
using vectors::Record;
using Octets = std::vector<std::uint8_t>;

const std::vector<Record>& records() {
  static const std::vector<Record> all = vectors::read_vector_file("tests/vectors/mpa-vectors.txt");
  return all;
}

// A reader's outcome for a stream: the ULPDUs, and the error that ended it.
struct Outcome {
  std::vector<Octets> ulpdus;
  std::optional<Error> error;
  bool partial = false;  // octets of an unfinished FPDU are left over
  bool operator==(const Outcome&) const = default;
};

void take_all(FpduReader& reader, Staging& staging, Outcome& outcome) {
  while (true) {
    const auto next = reader.next(staging);
    if (const auto* ulpdu = std::get_if<Ulpdu>(&next)) {
      outcome.ulpdus.push_back(testing::octets_of(*ulpdu));
      continue;
    }
    if (const auto* error = std::get_if<Error>(&next)) outcome.error = *error;
    return;
  }
}

void arrive(Staging& staging, ConstBytes octets) {
  if (octets.empty()) return;
  std::memcpy(staging.space(octets.size()).data(), octets.data(), octets.size());
  staging.commit(octets.size());
}

// One half connection's reading of a stream's octets.
struct Half {
  bool crc = true;
  bool markers = false;
  std::uint64_t offset = 0;  // in the half connection, of the first octet
};

Outcome read_in_pieces(ConstBytes stream, const Half& half, std::vector<std::size_t> cuts,
                       std::vector<std::size_t>* delivered_at = nullptr) {
  Staging staging;
  FpduReader reader(half.crc, half.markers);
  reader.skip(half.offset);
  Outcome outcome;
  cuts.push_back(stream.size());
  std::size_t at = 0;
  for (const std::size_t cut : cuts) {
    arrive(staging, stream.subspan(at, cut - at));
    at = cut;
    take_all(reader, staging, outcome);
    if (delivered_at != nullptr) delivered_at->resize(outcome.ulpdus.size(), at);
  }
  outcome.partial = !outcome.error && !staging.pending().empty();
  return outcome;
}

std::vector<std::size_t> every(std::size_t step, std::size_t len) {
  std::vector<std::size_t> cuts;
  for (std::size_t cut = step; cut < len; cut += step) cuts.push_back(cut);
  return cuts;
}

std::vector<Octets> ulpdus_of(const Record& record) {
  std::vector<Octets> ulpdus;
  for (const auto& hex : record.all("ulpdu")) ulpdus.push_back(from_hex(hex));
  return ulpdus;
}

Half half_of(const Record& record) {
  return {record.find("crc") == "1", record.find("markers") == "1", std::stoull(record.find("offset").value())};
}

Octets written(const std::vector<Octets>& ulpdus, const Half& half) {
  FpduWriter writer(half.crc, half.markers, half.offset);
  for (const Octets& ulpdu : ulpdus) {
    const std::size_t head = std::min<std::size_t>(ulpdu.size(), 14);
    const ConstBytes payload = ConstBytes(ulpdu).subspan(head);
    EXPECT_TRUE(writer.add(ConstBytes(ulpdu).first(head), {&payload, 1}, false));
  }
  Octets out;
  for (const ConstBytes& piece : writer.buffers()) out.insert(out.end(), piece.begin(), piece.end());
  return out;
}

// "error C after N", where the code is one that MPA itself finds (1 is the driver's to find, at the FIN).
struct Expected {
  std::optional<Error> error;
  std::size_t num_ulpdus = 0;
};

Expected expected_of(const Record& record) {
  const std::string expect = record.find("expect").value();
  unsigned code = 0;
  std::size_t after = 0;
  if (std::sscanf(expect.c_str(), "error %u after %zu", &code, &after) != 2) {
    EXPECT_EQ(expect, "ok");
    return {std::nullopt, record.all("ulpdu").size()};
  }
  if (code == 1) return {std::nullopt, after};
  return {static_cast<Error>(code), after};
}

bool is_stream(const Record& record) {
  return record.find("kind") == "stream" && record.name != "ON-MAX";  // whose octets the file does not spell out
}

// A sender never makes these: PAD and reserved octets other than zero, low bits in FPDUPTR, junk for a CRC, and an FPDU
// that a FIN cuts short.
bool is_never_sent(const Record& record) {
  return record.name.starts_with("TOL-") || record.name.starts_with("ERR") || record.name == "OFF-NOCRC-JUNK";
}

TEST(MpaVectors, NoRecordIsMissing) {
  std::map<std::string, int> count;
  for (const Record& record : records()) ++count[record.find("kind").value_or("none")];
  EXPECT_EQ(count, (std::map<std::string, int>{{"stream", 37}, {"startup", 23}, {"fpdu", 6}}));
}

TEST(MpaVectors, StreamsAreEmittedOctetForOctet) {
  RecordProperty(
      "proves",
      "MPA-4.1-02 MPA-4.1-03 MPA-4.1-05 MPA-4.2-01 MPA-4.3-05 MPA-4.3-11 MPA-4.3-12 MPA-4.3-13 MPA-4.4-12 MPA-4.2-04 "
      "MPA-4.4-15 MPA-4.4-16");
  int num_checked = 0;
  for (const Record& record : records()) {
    if (!is_stream(record) || is_never_sent(record)) continue;
    SCOPED_TRACE(record.name);
    EXPECT_EQ(written(ulpdus_of(record), half_of(record)), from_hex(record.find("stream").value()));
    ++num_checked;
  }
  EXPECT_EQ(num_checked, 23);
}

// The streams are short enough for every place to cut them once; beyond this, every 7th.
constexpr std::size_t kEveryCutLen = 1024;

TEST(MpaVectors, StreamsAreReadWholeAndSplitAtEveryOctet) {
  RecordProperty(
      "proves",
      "MPA-1.2-03 MPA-3-10 MPA-4.1-04 MPA-4.1-05 MPA-4.1-06 MPA-4.2-03 MPA-4.2-06 MPA-4.3-07 MPA-4.3-14 "
      "MPA-4.4-19 MPA-4.4-20 MPA-6-04 MPA-8-04 MPA-8-11 MPA-5.1-07 MPA-5.2-01 MPA-5.2-02 MPA-5.2-03 MPA-8-05 "
      "MPA-8-06 MPA-8-07");
  int num_checked = 0;
  for (const Record& record : records()) {
    if (!is_stream(record)) continue;
    SCOPED_TRACE(record.name);
    const Octets stream = from_hex(record.find("stream").value());
    const Half half = half_of(record);
    const Expected expected = expected_of(record);
    Outcome want;
    want.error = expected.error;
    want.ulpdus = ulpdus_of(record);
    want.ulpdus.resize(expected.num_ulpdus);
    want.partial = record.name == "ERR1-MIDFPDU";
    EXPECT_EQ(read_in_pieces(stream, half, {}), want);
    for (std::size_t cut = 1; cut<stream.size(); cut += stream.size()> kEveryCutLen ? 7 : 1)
      EXPECT_EQ(read_in_pieces(stream, half, {cut}), want) << "cut at " << cut;
    for (const std::size_t step : {1u, 7u, 4096u})
      EXPECT_EQ(read_in_pieces(stream, half, every(step, stream.size())), want);
    // Each ULPDU comes with the last octet of its FPDU: no earlier, and not with the next.
    std::vector<std::size_t> delivered_at;
    read_in_pieces(stream, half, every(1, stream.size()), &delivered_at);
    std::vector<std::size_t> ends;
    for (std::size_t n = 1; n <= want.ulpdus.size(); ++n)
      ends.push_back(written({want.ulpdus.begin(), want.ulpdus.begin() + static_cast<std::ptrdiff_t>(n)}, half).size());
    EXPECT_EQ(delivered_at, ends);
    ++num_checked;
  }
  EXPECT_EQ(num_checked, 36);
}

TEST(MpaVectors, TheLongestUlpduBothWays) {
  RecordProperty("proves", "MPA-3-06 MPA-3-08");
  static_assert(kMaxMulpdu == 64768);
  Octets ulpdu(kMaxMulpdu);
  for (std::size_t i = 0; i < ulpdu.size(); ++i) ulpdu[i] = static_cast<std::uint8_t>(7 * i + (i >> 8));
  const Half half{.crc = true, .markers = true, .offset = 0};
  const Octets stream = written({ulpdu}, half);
  EXPECT_EQ(stream.size(), 65288u);
  EXPECT_EQ(crc32c(stream), 0x48674bc7u);
  EXPECT_EQ(Octets(stream.end() - 4, stream.end()), from_hex("bbb45adc"));
  EXPECT_EQ((stream.size() + kMarkerSpacing - 1) / kMarkerSpacing, 128u);
  const std::size_t last = 127 * kMarkerSpacing;
  EXPECT_EQ(Octets(stream.begin() + last, stream.begin() + last + 4), from_hex("0000fdfc"));
  Outcome want;
  want.ulpdus = {ulpdu};
  EXPECT_EQ(read_in_pieces(stream, half, every(1448, stream.size())), want);
  const Outcome least{.ulpdus = {{0x41}}, .error = std::nullopt};
  EXPECT_EQ(read_in_pieces(written(least.ulpdus, {}), {}, {}), least);
}

TEST(MpaVectors, AFlippedMarkerBitIsACrcError) {
  RecordProperty("proves", "MPA-4.3-01");
  for (const Record& record : records()) {
    if (record.name != "ON-MULTI") continue;
    const Octets stream = from_hex(record.find("stream").value());
    Outcome want;
    want.error = Error::kCrc;
    for (std::size_t marker = 0; marker < stream.size(); marker += kMarkerSpacing) {
      for (std::size_t bit = 0; bit < kMarkerLen * 8; ++bit) {
        Octets bad = stream;
        bad[marker + bit / 8] = static_cast<std::uint8_t>(bad[marker + bit / 8] ^ 1 << bit % 8);
        EXPECT_EQ(read_in_pieces(bad, half_of(record), {}), want) << marker << " bit " << bit;
      }
    }
    return;
  }
  FAIL() << "no record ON-MULTI";
}

// Which octets a CRC covers, computed from the file's octets alone.
TEST(MpaVectors, WhatTheCrcCovers) {
  RecordProperty("proves", "MPA-4.3-08 MPA-4.4-14 MPA-4.4-17 MPA-4.4-21 MPA-4.4-22");
  const auto stream_of = [](std::string_view name) {
    for (const Record& record : records())
      if (record.name == name) return from_hex(record.find("stream").value());
    ADD_FAILURE() << "no record " << name;
    return Octets{};
  };
  const auto crc_octets = [](const Octets& octets, std::size_t from, std::size_t to) {
    Octets out(4);
    emit_crc(std::span(out).first<4>(), crc32c(ConstBytes(octets).subspan(from, to - from)));
    return out;
  };
  const Octets figure5 = stream_of("FIG5");
  EXPECT_EQ(Octets(figure5.begin() + 0x30, figure5.begin() + 0x34), from_hex("52239983"));
  EXPECT_EQ(crc_octets(figure5, 0x00, 0x30), from_hex("52239983"));
  EXPECT_EQ(crc32c(ConstBytes(figure5).first(0x30)), 0x83992352u);
  EXPECT_EQ(read_in_pieces(stream_of("ERR2-BYTEORDER"), {}, {}).error, Error::kCrc);
  EXPECT_EQ(crc_octets(figure5, 0x04, 0x30), from_hex("b7243ec3"));
  const Octets between = stream_of("ON-BETWEEN");
  const Octets second(between.end() - 4, between.end());
  EXPECT_EQ(crc_octets(between, 0x200, between.size() - 4), second);
  EXPECT_NE(crc_octets(between, 0x204, between.size() - 4), second);
  const Octets figure6 = stream_of("FIG6-STREAM");
  EXPECT_EQ(Octets(figure6.begin() + 0x200, figure6.begin() + 0x204), from_hex("00000014"));
  EXPECT_EQ(crc_octets(figure6, 0x1ec, 0x21c), from_hex("84925898"));
  // Both ends agree on all of it.
  for (const char* name : {"FIG5", "ON-BETWEEN", "FIG6-STREAM"}) {
    const Outcome outcome = read_in_pieces(stream_of(name), {.crc = true, .markers = true}, {});
    EXPECT_FALSE(outcome.error) << name;
    EXPECT_EQ(written(outcome.ulpdus, {.crc = true, .markers = true}), stream_of(name)) << name;
  }
}

TEST(MpaVectors, SingleFpdusComeOutAndAreReadBack) {
  RecordProperty("proves", "MPA2-8-01 MPA-8-14");
  int num_checked = 0;
  for (const Record& record : records()) {
    if (record.find("kind") != "fpdu") continue;
    SCOPED_TRACE(record.name);
    const Octets stream = from_hex(record.find("stream").value());
    const Outcome outcome = read_in_pieces(stream, {}, {});
    EXPECT_FALSE(outcome.error);
    ASSERT_EQ(outcome.ulpdus.size(), 1u);
    EXPECT_EQ(written(outcome.ulpdus, {}), stream);
    ++num_checked;
  }
  EXPECT_EQ(num_checked, 6);
}

FrameKind receiver_expects(const Record& record) {
  return record.find("to") == "initiator" ? FrameKind::kReply : FrameKind::kRequest;
}

TEST(MpaVectors, StartupFramesAreParsedAndEmittedOctetForOctet) {
  RecordProperty("proves",
                 "MPA-7.1.1-01 MPA-7.1.1-02 MPA-7.1.1-03 MPA-7.1.1-04 MPA-7.1.1-05 MPA-7.1.1-14 MPA-7.1.1-19 "
                 "MPA-7.1.1-20 MPA-7.1.1-22 MPA-7.1.2-15 MPA-7.1.2-18 MPA-7.1.2-20 MPA2-6-01 MPA2-6-02 MPA2-9-02");
  int num_checked = 0;
  for (const Record& record : records()) {
    if (record.find("kind") != "startup") continue;
    SCOPED_TRACE(record.name);
    const Octets stream = from_hex(record.find("stream").value());
    const auto parsed = parse_startup_frame(stream, receiver_expects(record));
    ++num_checked;
    // REV3-REQ is well formed. An end without Rev 3 refuses it one step later.
    if (record.find("expect") == "error 4" && record.name != "REV3-REQ") {
      ASSERT_TRUE(std::holds_alternative<BadFrame>(parsed));
      EXPECT_EQ(std::get<BadFrame>(parsed).error, Error::kStartupFrame);
      continue;
    }
    ASSERT_TRUE(std::holds_alternative<ParsedFrame>(parsed));
    const auto& [frame, len] = std::get<ParsedFrame>(parsed);
    EXPECT_EQ(len, stream.size());
    Octets emitted(7, 0xa5);
    emit_startup_frame(frame, emitted);
    emitted.erase(emitted.begin(), emitted.begin() + 7);
    EXPECT_EQ(emitted, stream);
    for (std::size_t cut = 0; cut < stream.size(); ++cut) {
      const auto part = parse_startup_frame(ConstBytes(stream).first(cut), receiver_expects(record));
      ASSERT_TRUE(std::holds_alternative<NeedMore>(part)) << "first " << cut << " octets";
      EXPECT_LE(std::get<NeedMore>(part).len, stream.size() - cut);
      EXPECT_GT(std::get<NeedMore>(part).len, 0u);
    }
  }
  EXPECT_EQ(num_checked, 23);
}

TEST(MpaVectors, StartupFramesAreJudgedAsTheVectorsSay) {
  RecordProperty("proves",
                 "MPA-7.1.1-11 MPA-7.1.1-14 MPA-7.1.1-16 MPA-7.1.1-17 MPA-7.1.2-04 MPA-7.1.2-12 MPA-C.2.1-01 "
                 "MPA-C.2.2-01 MPA2-6-09");
  for (const Record& record : records()) {
    if (record.find("kind") != "startup" || record.find("expect") == "error 4") continue;
    SCOPED_TRACE(record.name);
    const auto parsed = parse_startup_frame(from_hex(record.find("stream").value()), receiver_expects(record));
    const StartupFrame& frame = std::get<ParsedFrame>(parsed).frame;
    if (receiver_expects(record) == FrameKind::kRequest) {
      const auto judged = evaluate_request(frame, {});
      // RDMAC (Rev 0) is for permissive ends only.
      EXPECT_EQ(std::holds_alternative<Refused>(judged), frame.rev == 0);
      EXPECT_EQ(std::holds_alternative<Acceptable>(judged), frame.rev != 0);
      EXPECT_TRUE(std::holds_alternative<Acceptable>(evaluate_request(frame, {.permissive = true})));
      continue;
    }
    StartupOptions options;
    options.revision = std::max<std::uint8_t>(frame.rev, 1);
    options.rtr_offered.write = true;
    const auto judged = evaluate_reply(frame, make_request(options, {}), options);
    EXPECT_EQ(std::holds_alternative<RejectedReply>(judged), record.find("expect") == "reject");
    EXPECT_EQ(std::holds_alternative<Agreement>(judged), record.find("expect") == "ok");
  }
  const auto rev3 = parse_startup_frame(from_hex("4d504120494420526571204672616d6540030000"), FrameKind::kRequest);
  EXPECT_TRUE(std::holds_alternative<BadFrame>(evaluate_request(std::get<ParsedFrame>(rev3).frame, {})));
}

}  // namespace
}  // namespace weft::mpa
