// The healthy captures of tests/dissect, cut in every way that tcpdump cuts them: what a capture lacks is no violation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <vector>

#include "apps/dissect/capture.h"
#include "apps/dissect/testing/wire.h"

namespace weft::apps::dissect {
namespace {

using ::testing::IsEmpty;
using testing::Octets;
using testing::Told;

struct Kept {
  Packet packet;
  Octets octets;
};

std::vector<Kept> read(const std::string& path) {
  std::vector<Kept> kept;
  auto capture = Capture::open(path);
  EXPECT_TRUE(capture.ok()) << path;
  for (Packet packet; capture->next(packet) == Capture::Next::kPacket;) {
    kept.push_back({packet, {packet.octets.begin(), packet.octets.end()}});
  }
  EXPECT_FALSE(kept.empty()) << path;
  return kept;
}

// has: whether the capture has the packet of this segment.
std::vector<std::string> findings_of(const std::vector<Kept>& capture, std::size_t snap_len,
                                     const std::function<bool(const TcpSegment&)>& has = {}) {
  Told told;
  Dissector dissector({}, told);
  for (const Kept& kept : capture) {
    Packet packet = kept.packet;
    packet.octets = ConstBytes(kept.octets).first(std::min(snap_len, kept.octets.size()));
    const auto segment = parse_tcp_segment(packet);
    if (segment && (!has || has(*segment))) dissector.on_segment(*segment);
  }
  dissector.finish();
  return told.findings;
}

struct Healthy : ::testing::TestWithParam<std::string> {
  std::vector<Kept> capture = read("tests/dissect/captures/" + GetParam());
};

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("tests/dissect/captures")) {
    names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

TEST_P(Healthy, AnySnapLengthIsQuiet) {
  for (std::size_t snap_len = 54; snap_len < 3000; snap_len += snap_len < 400 ? 1 : 97) {
    EXPECT_THAT(findings_of(capture, snap_len), IsEmpty()) << "-s " << snap_len;
  }
}

TEST_P(Healthy, ABeginningInTheMiddleIsQuiet) {
  const std::size_t step = capture.size() / 25 + 1;
  for (std::size_t first = 1; first < capture.size(); first += step) {
    const std::vector<Kept> rest(capture.begin() + static_cast<std::ptrdiff_t>(first), capture.end());
    EXPECT_THAT(findings_of(rest, SIZE_MAX), IsEmpty()) << "from packet " << first + 1;
  }
}

TEST_P(Healthy, OneDirectionAloneIsQuiet) {
  // Servers have the smaller ports.
  const auto is_server = [](const TcpSegment& segment) { return segment.src.port < segment.dst.port; };
  for (const bool from_server : {false, true}) {
    for (const std::size_t first : {0u, 3u, 7u, 20u}) {
      std::size_t num = 0;
      const auto has = [&](const TcpSegment& segment) { return is_server(segment) == from_server && num++ >= first; };
      EXPECT_THAT(findings_of(capture, SIZE_MAX, has), IsEmpty()) << from_server << " without the first " << first;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Captures, Healthy, ::testing::ValuesIn(names()), [](const auto& info) {
  std::string name = std::filesystem::path(info.param).stem();
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace weft::apps::dissect
