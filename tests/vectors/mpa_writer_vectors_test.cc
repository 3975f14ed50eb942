// Holds FpduWriter against the records of mpa-vectors.txt whose half connection has Markers.
#include <gtest/gtest.h>

#include "mpa/crc32c.h"
#include "mpa/fpdu_writer.h"
#include "tests/vectors/vector_file.h"

namespace weft::mpa {
namespace {

using vectors::from_hex;
using Octets = std::vector<std::uint8_t>;

Octets written(const std::vector<Octets>& ulpdus, bool crc, std::uint64_t position) {
  FpduWriter writer(crc, true, position);
  for (const Octets& ulpdu : ulpdus) {
    const std::size_t head = std::min<std::size_t>(ulpdu.size(), 14);
    const ConstBytes payload = ConstBytes(ulpdu).subspan(head);
    EXPECT_TRUE(writer.add(ConstBytes(ulpdu).first(head), {&payload, 1}, false));
  }
  Octets out;
  for (const ConstBytes& piece : writer.buffers()) out.insert(out.end(), piece.begin(), piece.end());
  return out;
}

TEST(MpaVectors, StreamsWithMarkersAreEmittedOctetForOctet) {
  RecordProperty(
      "proves",
      "MPA-4.2-01 MPA-4.2-02 MPA-4.2-04 MPA-4.3-05 MPA-4.3-07 MPA-4.3-09 MPA-4.3-11 MPA-4.3-12 MPA-4.3-13 MPA-4.3-16 "
      "MPA-4.4-15 MPA-4.4-16 MPA-4.4-17 MPA-7.1.2-17");
  int num_checked = 0;
  for (const vectors::Record& record : vectors::read_vector_file("tests/vectors/mpa-vectors.txt")) {
    // No sender makes the Markers of the TOL records; ON-MAX is the test below.
    if (record.find("kind") != "stream" || record.find("markers") != "1" || record.find("expect") != "ok" ||
        record.name.starts_with("TOL-") || !record.find("stream"))
      continue;
    SCOPED_TRACE(record.name);
    std::vector<Octets> ulpdus;
    for (const auto& hex : record.all("ulpdu")) ulpdus.push_back(from_hex(hex));
    EXPECT_EQ(written(ulpdus, record.find("crc") == "1", std::stoull(record.find("offset").value())),
              from_hex(record.find("stream").value()));
    ++num_checked;
  }
  EXPECT_EQ(num_checked, 14);
}

TEST(MpaVectors, TheLargestUlpduWithMarkers) {
  Octets ulpdu(kMaxMulpdu);
  for (std::size_t i = 0; i < ulpdu.size(); ++i) ulpdu[i] = static_cast<std::uint8_t>(7 * i + (i >> 8));
  const Octets stream = written({ulpdu}, true, 0);
  ASSERT_EQ(stream.size(), 65288u);
  EXPECT_EQ(Octets(stream.begin() + 127 * 512, stream.begin() + 127 * 512 + 4), (Octets{0, 0, 0xfd, 0xfc}));
  EXPECT_EQ(Octets(stream.end() - 4, stream.end()), (Octets{0xbb, 0xb4, 0x5a, 0xdc}));
  EXPECT_EQ(crc32c(stream), 0x48674bc7u);
}

}  // namespace
}  // namespace weft::mpa
