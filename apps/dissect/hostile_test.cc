// Every hostile record of tests/vectors, as a capture: which of them the dissector names, and by which requirement.
// hostile_findings.tsv has the requirement of each record, or the reason why no capture shows what is wrong.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "apps/dissect/testing/wire.h"
#include "tests/vectors/vector_file.h"

namespace weft::apps::dissect {
namespace {

using testing::Octets;
using testing::startup;
using testing::Told;
using testing::untagged;
using testing::Wire;
using vectors::read_vector_file;
using vectors::Record;

// Expected: the requirements that a record's findings have, with commas between, or "-".
std::map<std::string, std::string> read_expected() {
  std::map<std::string, std::string> expected;
  std::ifstream in("apps/dissect/hostile_findings.tsv");
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    std::string record, requirement;
    words >> record >> requirement;
    EXPECT_TRUE(expected.emplace(record, requirement).second) << record;
  }
  return expected;
}

// Findings: what the dissector says of one capture.
struct Findings {
  Told told;
  Dissector dissector{{}, told};

  std::set<std::string> end() {
    dissector.finish();
    return {told.findings.begin(), told.findings.end()};
  }
};

std::string text(const Record& record, std::string_view key) {
  return record.find(key).value_or("");
}

Octets hex(const Record& record, std::string_view key) {
  const auto value = record.find(key);
  return value ? vectors::from_hex(*value) : Octets();
}

std::set<std::string> dissect_startup(const Octets& octets, bool to_responder, const Octets& request) {
  Findings findings;
  Wire wire(findings.dissector);
  wire.syn(Wire::kClient);
  wire.syn(Wire::kServer);
  if (!to_responder) wire.send(Wire::kClient, request);
  wire.send(to_responder ? Wire::kClient : Wire::kServer, octets);
  return findings.end();
}

std::set<std::string> dissect_mpa(const Record& record) {
  if (text(record, "kind") == "startup") {
    return dissect_startup(hex(record, "stream"), text(record, "to") == "responder", startup(mpa::FrameKind::kRequest));
  }
  Findings findings;
  const bool markers = text(record, "markers") == "1";
  Wire wire(findings.dissector, markers);
  wire.open(markers, text(record, "crc") == "1");
  wire.send(Wire::kClient, hex(record, "stream"), 100);
  if (text(record, "fin") == "1") {
    TcpSegment fin = wire.segment(Wire::kClient, {});
    fin.fin = true;
    wire.on_segment(fin);
  }
  return findings.end();
}

// The segments of a record, and the Terminate that answers them.
std::set<std::string> dissect_segments(const Record& record, std::initializer_list<const char*> keys,
                                       const char* answer) {
  Findings findings;
  Wire wire(findings.dissector);
  wire.open();
  for (const char* key : keys) {
    if (const auto octets = record.octets(key)) wire.send(Wire::kClient, wire.fpdu(Wire::kClient, *octets), 60000);
  }
  if (const auto octets = record.octets(answer)) wire.send(Wire::kServer, wire.fpdu(Wire::kServer, *octets));
  return findings.end();
}

std::set<std::string> dissect_rdmap(const Record& record, const Octets& request) {
  const std::string state = text(record, "state");
  if (state == "+RESP" || state == "+INIT") return dissect_startup(hex(record, "hex"), state == "+RESP", request);
  Record one = record;
  if (const auto whole = record.find("hex")) one.fields.emplace_back("seg0.hex", *whole);
  return dissect_segments(one, {"seg0", "seg1", "seg2", "seg3", "seg4", "seg5"}, "expect");
}

// Healthy messages come first, so that the connection is known to carry RPC-over-RDMA. The server's settle the version.
std::set<std::string> dissect_rpc(const std::vector<Octets>& before, const std::vector<Octets>& answers,
                                  const Octets& message, bool from_client) {
  Findings findings;
  Wire wire(findings.dissector);
  wire.open();
  std::uint32_t client_msn = 0, server_msn = 0;
  for (const Octets& octets : before)
    wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(rdmap::Opcode::kSend, ++client_msn, octets)));
  for (const Octets& octets : answers)
    wire.send(Wire::kServer, wire.fpdu(Wire::kServer, untagged(rdmap::Opcode::kSend, ++server_msn, octets)));
  const Wire::End from = from_client ? Wire::kClient : Wire::kServer;
  const std::uint32_t msn = from_client ? ++client_msn : ++server_msn;
  wire.send(from, wire.fpdu(from, untagged(rdmap::Opcode::kSend, msn, message)));
  return findings.end();
}

std::uint32_t xid_of(const Octets& message) {
  return message.size() < 4
             ? 0
             : static_cast<std::uint32_t>(message[0]) << 24 | static_cast<std::uint32_t>(message[1]) << 16 |
                   static_cast<std::uint32_t>(message[2]) << 8 | message[3];
}

struct Tally {
  std::map<std::string, std::string> expected = read_expected();
  int num = 0, num_named = 0;

  void judge(const std::string& record, const std::set<std::string>& found) {
    ++num;
    const auto row = expected.find(record);
    std::string all;
    for (const std::string& one : found) all += " " + one;
    ASSERT_NE(row, expected.end()) << record << " is not in hostile_findings.tsv; found:" << all;
    if (row->second == "-") {
      EXPECT_TRUE(found.empty()) << record << ":" << all;
    } else {
      bool named = true;
      std::istringstream due(row->second);
      for (std::string one; std::getline(due, one, ',');) named &= found.contains(one);
      EXPECT_TRUE(named) << record << ": " << row->second << " is due; found:" << all;
      num_named += named ? 1 : 0;
    }
    expected.erase(row);
  }
};

bool is_hostile(const std::string& expect) {
  return expect.starts_with("error") || expect.starts_with("reject") || expect.starts_with("depends");
}

TEST(Hostile, EveryRecordIsNamedOrExcused) {
  Tally tally;
  for (const Record& record : read_vector_file("tests/vectors/mpa-vectors.txt")) {
    if (is_hostile(text(record, "expect"))) tally.judge("mpa/" + record.name, dissect_mpa(record));
  }
  for (const Record& record : read_vector_file("tests/vectors/ddp-vectors.txt")) {
    if (!record.name.starts_with('H')) continue;
    tally.judge("ddp/" + record.name, dissect_segments(record, {"pre1", "pre2", "seg", "post"}, "term"));
  }
  const auto rdmap_records = read_vector_file("tests/vectors/rdmap-vectors.txt");
  Octets request;
  for (const Record& record : rdmap_records) {
    if (record.name == "M02") request = hex(record, "hex");
    if (record.name.starts_with('H')) tally.judge("rdmap/" + record.name, dissect_rdmap(record, request));
  }
  std::vector<Octets> calls;
  for (const Record& record : read_vector_file("tests/vectors/rpcrdma1-vectors.txt")) {
    const Octets octets = hex(record, "hex");
    if (record.name.starts_with('V') && text(record, "title").find("Call") != std::string::npos &&
        text(record, "title").find("Reply to") == std::string::npos) {
      calls.push_back(octets);
    }
    if (!record.name.starts_with('M')) continue;
    const bool from_client = text(record, "to") == "responder";
    std::vector<Octets> before = {calls.front()};
    for (const Octets& call : calls) {
      if (!from_client && xid_of(call) == xid_of(octets) && call != calls.front()) before.push_back(call);
    }
    tally.judge("rpcrdma1/" + record.name, dissect_rpc(before, {}, octets, from_client));
  }
  std::map<std::string, Octets> first, answer;  // a healthy Call of each profile, and its Reply
  for (const Record& record : read_vector_file("tests/vectors/rpcrdma2-vectors.txt")) {
    const std::string profile = text(record, "profile"), expect = text(record, "expect");
    if (profile != "cel05" && profile != "wg07") continue;
    const Octets octets = hex(record, "hex");
    const bool from_client = text(record, "from") == "client";
    const bool is_call = text(record, "desc").find("NFSv3 NULL") != std::string::npos;
    if (expect == "accept" && from_client && is_call) first.try_emplace(profile, octets);
    if (expect == "accept" && !from_client && first.contains(profile) && xid_of(octets) == xid_of(first[profile])) {
      answer.try_emplace(profile, octets);
    }
    if (expect.starts_with("accept")) continue;
    ASSERT_TRUE(first.contains(profile) && answer.contains(profile)) << profile;
    tally.judge("rpcrdma2/" + record.name, dissect_rpc({first.at(profile)}, {answer.at(profile)}, octets, from_client));
  }
  for (const auto& [record, requirement] : tally.expected) ADD_FAILURE() << record << " is no record";
  std::cout << tally.num_named << " of " << tally.num << " hostile records are named\n";
  EXPECT_GE(tally.num_named, 100);
}

}  // namespace
}  // namespace weft::apps::dissect
