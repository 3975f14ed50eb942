#include "apps/common/global_options.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "rpcrdma/framing.h"

namespace weft::apps {
namespace {

// Parsed is the result of one command line: the options, or the sentence that refused it.
struct Parsed {
  GlobalOptions options;
  std::string error;
  bool ran = false;
};

Parsed parse(std::vector<std::string> words) {
  Parsed result;
  CLI::App root("test", "weft");
  add_global_options(root, result.options);
  root.parse_complete_callback([&] { check_global_options(root, result.options); });
  for (const char* name : {"go", "dissect", "doctor", "top"}) {
    root.add_subcommand(name, "runs")->callback([&result] { result.ran = true; });
  }
  std::reverse(words.begin(), words.end());
  try {
    root.parse(words);
  } catch (const CLI::ParseError& error) {
    result.error = error.what();
  }
  return result;
}

TEST(GlobalOptions, DefaultsAreThoseOfTheDocumentation) {
  Parsed parsed = parse({"go"});
  ASSERT_EQ(parsed.error, "");
  EXPECT_TRUE(parsed.ran);
  EXPECT_EQ(parsed.options.backend, "soft");
  EXPECT_FALSE(parsed.options.progress.has_value());
  EXPECT_TRUE(parsed.options.crc);
  EXPECT_EQ(parsed.options.mpa_revision, 2);
  EXPECT_EQ(parsed.options.tell_after, std::chrono::seconds(5));
}

TEST(GlobalOptions, ThoseOfConnectionsAreRefusedWhereThereIsNone) {
  for (const char* name : {"dissect", "doctor", "top"}) {
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"--trace", "x.pcapng"}, {"--markers"}, {"--backend", "soft"}, {"--credits", "3"}}) {
      std::vector<std::string> line = words;
      line.emplace_back(name);
      const Parsed parsed = parse(line);
      EXPECT_EQ(parsed.error, words[0] + " does not apply to weft " + name + ": it makes no RDMA connection");
      EXPECT_FALSE(parsed.ran);
    }
    EXPECT_TRUE(parse({name}).ran);
    EXPECT_TRUE(parse({name, "--log-level", "debug"}).ran);
  }
}

TEST(GlobalOptions, AreTakenBeforeAndAfterTheCommand) {
  for (auto words : {std::vector<std::string>{"--crc", "off", "--ird", "3", "go"},
                     std::vector<std::string>{"go", "--crc", "off", "--ird=3"}}) {
    Parsed parsed = parse(words);
    ASSERT_EQ(parsed.error, "");
    EXPECT_FALSE(parsed.options.crc);
    EXPECT_EQ(parsed.options.ird, 3);
  }
}

TEST(GlobalOptions, EveryOptionIsStored) {
  Parsed parsed = parse({"--progress", "block", "--mpa-rev",   "1",      "--fpdu", "1460", "--ord",       "2",
                         "--inline",   "8192",  "--credits",   "7",      "--cc",   "reno", "--log-level", "info",
                         "--rtr",      "none",  "--placement", "direct", "--peer", "auto", "--nudge",     "off",
                         "--rpcrdma",  "1",     "--backend",   "soft",   "go"});
  ASSERT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.options.progress, ProgressMode::kBlock);
  EXPECT_EQ(parsed.options.mpa_revision, 1);
  EXPECT_EQ(parsed.options.fpdu_limit, 1460u);
  EXPECT_TRUE(parsed.options.direct_placement);
  EXPECT_EQ(parsed.options.ord, 2);
  EXPECT_EQ(parsed.options.inline_threshold, 8192u);
  EXPECT_EQ(parsed.options.credits, 7u);
  EXPECT_EQ(parsed.options.congestion_control, "reno");
  EXPECT_EQ(parsed.options.log_level, "info");
}

TEST(GlobalOptions, RpcrdmaIsAListOfVersions) {
  using rpcrdma::Protocol;
  const std::pair<const char*, std::vector<Protocol>> lists[] = {
      {"1", {Protocol::k1}},
      {"2-cel05", {Protocol::k2Cel05}},
      {"2-cel05,1", {Protocol::k2Cel05, Protocol::k1}},
      {"2-wg07", {Protocol::k2Wg07}},
      {"auto", {Protocol::k2Wg07, Protocol::k2Cel05, Protocol::k1}}};
  for (const auto& [list, protocols] : lists) {
    const Parsed parsed = parse({"--rpcrdma", list, "go"});
    EXPECT_EQ(parsed.error, "") << list;
    EXPECT_EQ(parsed.options.protocols, protocols) << list;
  }
  for (const char* list : {"", "2", "1,1", "1,", "1;2-cel05", "2-wg", "1,auto", "auto,1"}) {
    EXPECT_NE(parse({"--rpcrdma", list, "go"}).error, "") << list;
  }
}

TEST(GlobalOptions, CreditFormulaIsFor2Wg07) {
  EXPECT_FALSE(parse({"--rpcrdma", "auto", "go"}).options.literal_credits);
  for (const char* list : {"2-wg07", "auto"}) {
    EXPECT_FALSE(parse({"--rpcrdma", list, "--credit-formula", "sane", "go"}).options.literal_credits);
    const Parsed parsed = parse({"--credit-formula", "literal", "go", "--rpcrdma", list});
    EXPECT_EQ(parsed.error, "");
    EXPECT_TRUE(parsed.options.literal_credits);
  }
  EXPECT_EQ(parse({"--credit-formula", "sane", "go"}).error, "");
  for (const char* list : {"1", "2-cel05"}) {
    EXPECT_EQ(parse({"--credit-formula", "literal", "--rpcrdma", list, "go"}).error,
              "--credit-formula literal needs 2-wg07 in --rpcrdma: other versions have one formula");
  }
}

TEST(GlobalOptions, PartsAreOf2Wg07) {
  EXPECT_EQ(parse({"--rpcrdma", "auto", "--parts", "auto", "go"}).options.parts, std::nullopt);
  for (const std::size_t octets : {std::size_t{0}, std::size_t{16384}, rpcrdma::kMaxContinued}) {
    const Parsed parsed = parse({"--rpcrdma", "2-wg07", "--parts", std::to_string(octets), "go"});
    EXPECT_EQ(parsed.error, "");
    EXPECT_EQ(parsed.options.parts, octets);
  }
  for (const char* list : {"1", "2-cel05"}) {
    EXPECT_EQ(parse({"--parts", "0", "--rpcrdma", list, "go"}).error,
              "--parts needs 2-wg07 in --rpcrdma: other versions have no calls in several messages");
  }
}

TEST(GlobalOptions, RemoteInvalidationIsForServersUnlessAskedFor) {
  const auto parsed = [](const char* value) {
    return parse({"--remote-invalidation", value, "go"}).options.remote_invalidation;
  };
  EXPECT_EQ(parse({"go"}).options.remote_invalidation, RemoteInvalidation::kAuto);
  EXPECT_EQ(parsed("auto"), RemoteInvalidation::kAuto);
  EXPECT_EQ(parsed("on"), RemoteInvalidation::kOn);
  EXPECT_EQ(parsed("off"), RemoteInvalidation::kOff);
}

TEST(GlobalOptions, EachProgramHasItsOwnDefaultOfCredits) {
  EXPECT_EQ(parse({"go"}).options.credits, std::nullopt);
}

TEST(GlobalOptions, StartupOptionsAreStored) {
  EXPECT_FALSE(parse({"go"}).options.port_map);
  EXPECT_TRUE(parse({"--port-map", "go"}).options.port_map);
  EXPECT_TRUE(parse({"go", "--port-map"}).options.port_map);
  EXPECT_FALSE(parse({"go"}).options.markers);
  EXPECT_EQ(parse({"go"}).options.rtr, "auto");
  EXPECT_EQ(parse({"go"}).options.peer, "auto");
  EXPECT_TRUE(parse({"--markers", "go"}).options.markers);
  EXPECT_EQ(parse({"--mpa-rev", "0", "go"}).options.mpa_revision, 0);
  for (const char* rtr : {"none", "auto", "send", "write", "read"}) {
    const Parsed parsed = parse({"--rtr", rtr, "go"});
    EXPECT_EQ(parsed.error, "");
    EXPECT_EQ(parsed.options.rtr, rtr);
  }
  for (const char* peer : {"auto", "siw", "cxgb4", "irdma", "strict"}) {
    const Parsed parsed = parse({"--peer", peer, "go"});
    EXPECT_EQ(parsed.error, "");
    EXPECT_EQ(parsed.options.peer, peer);
  }
}

TEST(GlobalOptions, ANudgeIsMillisecondsOrOff) {
  using std::chrono::milliseconds;
  EXPECT_EQ(parse({"go"}).options.nudge, std::nullopt);
  EXPECT_EQ(parse({"--nudge", "off", "go"}).options.nudge, milliseconds(0));
  EXPECT_EQ(parse({"--nudge", "20", "go"}).options.nudge, milliseconds(20));
  for (const char* nonsense : {"0", "-1", "x", "5s", "60001"}) {
    const Parsed parsed = parse({"--nudge", nonsense, "go"});
    EXPECT_FALSE(parsed.ran) << nonsense;
    EXPECT_NE(parsed.error.find("must be off or milliseconds"), std::string::npos) << parsed.error;
  }
}

TEST(GlobalOptions, WithWorkersTheCommandItselfBlocks) {
  EXPECT_EQ(parse({"go"}).options.num_workers, 0u);
  EXPECT_EQ(parse({"--progress", "spin", "go"}).options.num_workers, 0u);
  for (const std::uint32_t num : {1u, 2u, 64u}) {
    const Parsed parsed = parse({"--progress", "threads=" + std::to_string(num), "go"});
    EXPECT_EQ(parsed.error, "");
    EXPECT_EQ(parsed.options.num_workers, num);
    EXPECT_EQ(parsed.options.progress_or(ProgressMode::kSpin), ProgressMode::kBlock);
  }
}

TEST(GlobalOptions, TheTraceIsAFileOfTheSoftRnic) {
  EXPECT_EQ(parse({"go", "--trace", "x.pcapng"}).options.trace.file, "x.pcapng");
  EXPECT_NE(parse({"go", "--backend", "ibv", "--trace", "x.pcapng"}).error, "");
}

TEST(GlobalOptions, BackendAndItsDeviceAreStored) {
  const Parsed parsed = parse({"go", "--backend", "ibv", "--device", "siw0"});
  ASSERT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.options.backend, "ibv");
  EXPECT_EQ(parsed.options.device, "siw0");
}

TEST(GlobalOptions, WhatMeansNothingToTheBackendIsRefusedBeforeAnythingRuns) {
  for (auto words : {std::vector<std::string>{"--crc", "on"},
                     {"--markers"},
                     {"--mpa-rev", "1"},
                     {"--rtr", "auto"},
                     {"--placement", "verify"},
                     {"--peer", "auto"},
                     {"--fpdu", "1460"},
                     {"--cc", "reno"},
                     {"--port-map"}}) {
    words.insert(words.end(), {"--backend", "ibv", "go"});
    const Parsed parsed = parse(words);
    EXPECT_FALSE(parsed.ran) << words[0];
    EXPECT_NE(parsed.error.find(words[0] + " does not apply to --backend ibv"), std::string::npos) << parsed.error;
  }
  const Parsed parsed = parse({"--device", "siw0", "go"});
  EXPECT_FALSE(parsed.ran);
  EXPECT_EQ(parsed.error, "--device needs --backend ibv");
}

// docs/linux-siw-rtr.md
TEST(GlobalOptions, HelpSaysWhichOptionsStopALinuxServer) {
  CLI::App root;
  GlobalOptions options;
  add_global_options(root, options);
  for (const char* name : {"--rtr", "--peer"}) {
    const std::string text = root.get_option(name)->get_description();
    EXPECT_NE(text.find("the kernel of a Linux NFS/RDMA server over siw"), std::string::npos) << name << ": " << text;
  }
}

TEST(GlobalOptions, ToAskForAnRtrTakesRevisionTwo) {
  for (const char* rtr : {"send", "write", "read"}) {
    EXPECT_TRUE(parse({"--mpa-rev", "2", "--rtr", rtr, "go"}).ran) << rtr;
    for (const char* revision : {"0", "1"}) {
      const Parsed parsed = parse({"--mpa-rev", revision, "--rtr", rtr, "go"});
      EXPECT_FALSE(parsed.ran) << rtr;
      EXPECT_NE(parsed.error.find(std::string("--rtr ") + rtr + " needs --mpa-rev 2"), std::string::npos)
          << parsed.error;
    }
  }
  for (const char* rtr : {"none", "auto"}) EXPECT_TRUE(parse({"--mpa-rev", "1", "--rtr", rtr, "go"}).ran) << rtr;
}

TEST(GlobalOptions, NumbersAreTakenUpToTheirBounds) {
  for (const auto& words : {std::vector<std::string>{"--fpdu", "0"},
                            {"--fpdu", "140"},
                            {"--fpdu", "65535"},
                            {"--ird", "0"},
                            {"--ird", "255"},
                            {"--mpa-rev", "0"},
                            {"--progress", "threads=1"},
                            {"--progress", "threads=64"}}) {
    EXPECT_TRUE(parse({words[0], words[1], "go"}).ran) << words[0] << " " << words[1];
  }
  for (const auto& words : {std::vector<std::string>{"--fpdu", "65536"}, {"--fpdu", "-1"}}) {
    EXPECT_FALSE(parse({words[0], words[1], "go"}).ran) << words[0] << " " << words[1];
  }
  // A connection would send larger ones all the same.
  for (const char* octets : {"1", "139"}) {
    const Parsed parsed = parse({"--fpdu", octets, "go"});
    EXPECT_FALSE(parsed.ran) << octets;
    EXPECT_NE(parsed.error.find("must be 0 or from 140 to 65535"), std::string::npos) << parsed.error;
  }
}

TEST(GlobalOptions, NonsenseIsRefusedButNotAsUnbuilt) {
  for (auto words : {std::vector<std::string>{"--crc", "maybe"},
                     {"--mpa-rev", "3"},
                     {"--ird", "256"},
                     {"--ird", "-1"},
                     {"--fpdu", "x"},
                     {"--credits", "0"},
                     {"--credit-formula", "printed"},
                     {"--remote-invalidation", "yes"},
                     {"--rpcrdma=2-wg07", "--parts=x"},
                     {"--rpcrdma=2-wg07", "--parts=-1"},
                     {"--rpcrdma=2-wg07", "--parts=1114113"},
                     {"--progress", "sideways"},
                     {"--progress", "threads"},
                     {"--progress", "threads="},
                     {"--progress", "threads=0"},
                     {"--progress", "threads=65"},
                     {"--progress", "threads=2x"},
                     {"--progress", "threads=-1"},
                     {"--no-such-option"}}) {
    words.push_back("go");
    Parsed parsed = parse(words);
    EXPECT_FALSE(parsed.ran) << words[0];
    EXPECT_NE(parsed.error, "") << words[0];
  }
}

}  // namespace
}  // namespace weft::apps
