// Holds MPA against every record of mpa-vectors.txt whose half connection has no Markers, and against every startup
// frame there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>

#include "mpa/fpdu.h"
#include "mpa/fpdu_reader.h"
#include "mpa/fpdu_writer.h"
#include "mpa/staging.h"
#include "mpa/startup.h"
#include "mpa/startup_frame.h"
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

// What a reader made of a stream: the ULPDUs, and the error that ended it.
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
      outcome.ulpdus.push_back(ulpdu->to_vector());
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

Outcome read_in_pieces(ConstBytes stream, bool crc, std::vector<std::size_t> cuts) {
  Staging staging;
  FpduReader reader(crc);
  Outcome outcome;
  cuts.push_back(stream.size());
  std::size_t at = 0;
  for (const std::size_t cut : cuts) {
    arrive(staging, stream.subspan(at, cut - at));
    at = cut;
    take_all(reader, staging, outcome);
  }
  outcome.partial = !outcome.error && !staging.pending().empty();
  return outcome;
}

std::vector<Octets> ulpdus_of(const Record& record) {
  std::vector<Octets> ulpdus;
  for (const auto& hex : record.all("ulpdu")) ulpdus.push_back(from_hex(hex));
  return ulpdus;
}

Octets written(const std::vector<Octets>& ulpdus, bool crc) {
  FpduWriter writer(crc);
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
  if (std::sscanf(expect.c_str(), "error %u after %zu", &code, &after) != 2)
    return {std::nullopt, record.all("ulpdu").size()};
  if (code == 1) return {std::nullopt, after};
  return {static_cast<Error>(code), after};
}

bool is_unmarked_stream(const Record& record) {
  return record.find("kind") == "stream" && record.find("markers") == "0";
}

TEST(MpaVectors, StreamsWithoutMarkersAreEmittedOctetForOctet) {
  RecordProperty("proves",
                 "MPA-4.1-01 MPA-4.1-02 MPA-4.1-03 MPA-4.1-05 MPA-4.1-07 MPA-4.4-12 MPA-4.4-13 MPA-4.4-14 MPA-4.4-18 "
                 "MPA-3-01 MPA-8-14");
  int num_checked = 0;
  for (const Record& record : records()) {
    // A sender never makes the PAD and CRC fields of these two (MPA-4.1-03).
    if (!is_unmarked_stream(record) || record.name == "TOL-PAD" || record.name == "OFF-NOCRC-JUNK") continue;
    if (expected_of(record).error) continue;
    SCOPED_TRACE(record.name);
    EXPECT_EQ(written(ulpdus_of(record), record.find("crc") == "1"), from_hex(record.find("stream").value()));
    ++num_checked;
  }
  EXPECT_EQ(num_checked, 10);
}

TEST(MpaVectors, StreamsWithoutMarkersAreReadWholeAndSplitAtEveryOctet) {
  RecordProperty("proves",
                 "MPA-1.2-03 MPA-3-10 MPA-4.1-04 MPA-4.1-06 MPA-4.3-14 MPA-4.3-15 MPA-4.4-19 MPA-4.4-20 MPA-6-01 "
                 "MPA-6-04 MPA-8-04 MPA-8-11 MPA-5.1-07 MPA-5.2-01");
  int num_checked = 0;
  for (const Record& record : records()) {
    if (!is_unmarked_stream(record)) continue;
    SCOPED_TRACE(record.name);
    const Octets stream = from_hex(record.find("stream").value());
    const bool crc = record.find("crc") == "1";
    const Expected expected = expected_of(record);
    Outcome want;
    want.error = expected.error;
    want.ulpdus = ulpdus_of(record);
    want.ulpdus.resize(expected.num_ulpdus);
    EXPECT_EQ(read_in_pieces(stream, crc, {}), want);
    std::vector<std::size_t> every_octet;
    for (std::size_t cut = 1; cut < stream.size(); ++cut) {
      EXPECT_EQ(read_in_pieces(stream, crc, {cut}), want) << "cut at " << cut;
      every_octet.push_back(cut);
    }
    EXPECT_EQ(read_in_pieces(stream, crc, every_octet), want);
    ++num_checked;
  }
  EXPECT_EQ(num_checked, 15);
}

TEST(MpaVectors, SingleFpdusComeOutAndAreReadBack) {
  RecordProperty("proves", "MPA2-8-01 MPA-8-14");
  int num_checked = 0;
  for (const Record& record : records()) {
    if (record.find("kind") != "fpdu") continue;
    SCOPED_TRACE(record.name);
    const Octets stream = from_hex(record.find("stream").value());
    const Outcome outcome = read_in_pieces(stream, true, {});
    EXPECT_FALSE(outcome.error);
    ASSERT_EQ(outcome.ulpdus.size(), 1u);
    EXPECT_EQ(written(outcome.ulpdus, true), stream);
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
    // REV3-REQ is well formed; who cannot talk Rev 3 finds out one step later.
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
