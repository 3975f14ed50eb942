#include "apps/perf/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace weft::apps::perf {
namespace {

Measured sample() {
  Measured measured;
  measured.op = Op::kWrite;
  measured.size = 1000;
  measured.depth = 16;
  measured.seconds = 2;
  measured.octets = 4000000;
  measured.ops = 4000;
  measured.congestion_control = measured.peer_congestion_control = "reno";
  measured.crc = true;
  return measured;
}

TEST(PerfReport, JsonIsOneObjectWithUnitsInItsKeys) {
  std::string text = to_json(sample());
  EXPECT_EQ(text.find('\n'), std::string::npos);
  auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["op"], "write");
  EXPECT_EQ(json["octets"], 4000000);
  EXPECT_EQ(json["octets_per_s"], 2e6);
  EXPECT_EQ(json["ops_per_s"], 2e3);
  EXPECT_EQ(json["seconds"], 2.0);
  EXPECT_EQ(json["cc"], "reno");
  EXPECT_EQ(json["crc"], true);
  EXPECT_FALSE(json.contains("p50_ns"));
  EXPECT_FALSE(json.contains("mss"));
}

TEST(PerfReport, RoundTripsAndMssStandWhereTheyWereMeasured) {
  Measured measured = sample();
  measured.op = Op::kTcpLat;
  measured.mss = 65483;
  Samples samples;
  for (const std::uint64_t ns : {3000u, 1000u, 2000u}) samples.add(ns);
  take_quantiles(measured, samples);
  auto json = nlohmann::json::parse(to_json(measured));
  EXPECT_EQ(json["p50_ns"], 2000);
  EXPECT_EQ(json["p99_ns"], 3000);
  EXPECT_EQ(json["mss"], 65483);
  EXPECT_FALSE(json.contains("crc"));
  EXPECT_NE(to_line(measured).find("median 2.00 us p99 3.00 us"), std::string::npos) << to_line(measured);
}

TEST(PerfReport, TheLineHasTheMssOfTcpAndTheCrcOfRdma) {
  Measured measured = sample();
  measured.mss = 65483;
  EXPECT_NE(to_line(measured).find("  crc on  "), std::string::npos) << to_line(measured);
  EXPECT_EQ(to_line(measured).find("mss"), std::string::npos) << to_line(measured);
  measured.op = Op::kTcp;
  EXPECT_NE(to_line(measured).find("  mss 65483  "), std::string::npos) << to_line(measured);
  EXPECT_EQ(to_line(measured).find("crc"), std::string::npos) << to_line(measured);
}

TEST(PerfReport, TheLineSaysWhenTheEndsDiffer) {
  Measured measured = sample();
  EXPECT_EQ(to_line(measured).find("peer"), std::string::npos);
  measured.peer_congestion_control = "bbr";
  EXPECT_NE(to_line(measured).find("cc reno (peer bbr)"), std::string::npos) << to_line(measured);
}

}  // namespace
}  // namespace weft::apps::perf
