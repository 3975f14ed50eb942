// Every combination of terminate-codes.tsv that a stream can be made to send, with the headers that belong into it; the
// others are listed with the reason. An evil peer for most, a fault of our own for the rest.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "tests/sim/rfc7306.h"

namespace weft::sim {
namespace {

struct Case {
  const char* row;      // layer/etype/code, as in the table
  const char* headers;  // "", "MD" or "MDR"
  const char* what;
  std::function<void(ExtVictim&)> provoke;
};

void feed(ExtVictim& v, const char* hex) {
  v.feed(vectors::from_hex(hex));
}

// A Read Request of `size` octets at `to` of `stag`, all as hexadecimal digits.
void read_request(ExtVictim& v, const std::string& stag, const std::string& to, const std::string& size = "00000010") {
  v.feed(vectors::from_hex("4141000000000000000100000001000000006f7081060000000000008000" + size + stag + to));
}
void atomic_request(ExtVictim& v, const std::string& stag, const std::string& to) {
  v.feed(vectors::from_hex("414a000000000000000100000001000000000000000000000001" + stag + to +
                           "0000000000000001000000000000000000000000000000000000000000000000"));
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"0/0/any", "", "a local key that is none",
       [](ExtVictim& v) {
         rdmap::SendWr wr;
         wr.sg_list = {{0, 8, ddp::Stag{0x999}}};
         ASSERT_EQ(v.post(wr), rdmap::PostResult::kOk);
       }},
      {"0/0/any", "", "a bind that is refused",
       [](ExtVictim& v) {
         v.memory.refuse_windows = true;
         rdmap::SendWr wr;
         wr.op = rdmap::SendOp::kInvalidateWindow;
         ASSERT_EQ(v.post(wr), rdmap::PostResult::kOk);
       }},
      {"0/1/00", "MDR", "Read, unknown STag", [](ExtVictim& v) { read_request(v, "2b3c4dff", "0000000000040000"); }},
      {"0/1/01", "MDR", "Read, below", [](ExtVictim& v) { read_request(v, "2b3c4d02", "000000000003ffff"); }},
      {"0/1/01", "MDR", "Read, beyond", [](ExtVictim& v) { read_request(v, "2b3c4d02", "0000000000041ff1"); }},
      {"0/1/02", "MDR", "Read, no right", [](ExtVictim& v) { read_request(v, "6f708106", "0000000000008000"); }},
      {"0/1/03", "MDR", "Read, other domain", [](ExtVictim& v) { read_request(v, "4d5e6f04", "0000000000000000"); }},
      {"0/1/03", "MDR", "Read, other stream", [](ExtVictim& v) { read_request(v, "5e6f7005", "0000000000000000"); }},
      {"0/1/04", "MDR", "Read, wrap", [](ExtVictim& v) { read_request(v, "2b3c4d02", "fffffffffffffff8"); }},
      {"0/1/00", "MD", "Atomic, unknown STag", [](ExtVictim& v) { atomic_request(v, "a3b4c5ff", "0000000000000100"); }},
      {"0/1/01", "MD", "Atomic, beyond", [](ExtVictim& v) { atomic_request(v, "a3b4c50a", "0000000000000140"); }},
      {"0/1/02", "MD", "Atomic, no right", [](ExtVictim& v) { atomic_request(v, "2b3c4d02", "0000000000040000"); }},
      {"0/1/03", "MD", "Atomic, other stream", [](ExtVictim& v) { atomic_request(v, "5e6f7005", "0000000000000000"); }},
      {"0/1/04", "MD", "Atomic, wrap", [](ExtVictim& v) { atomic_request(v, "a3b4c50a", "fffffffffffffff9"); }},
      {"0/1/09", "MD", "Send with Invalidate, other stream",
       [](ExtVictim& v) { feed(v, "41445e6f700500000000000000010000000061"); }},
      {"0/1/09", "MD", "Send with Solicited Event and Invalidate, other domain",
       [](ExtVictim& v) { feed(v, "41464d5e6f0400000000000000010000000061"); }},
      {"0/2/05", "MD", "RV 0", [](ExtVictim& v) { feed(v, "41030000000000000000000000010000000061"); }},
      {"0/2/05", "MD", "RV 2, tagged", [](ExtVictim& v) { feed(v, "c180a3b4c50a000000000000010061"); }},
      {"0/2/06", "MD", "opcode 12", [](ExtVictim& v) { feed(v, "414c0000000000000000000000010000000061"); }},
      {"0/2/06", "MD", "Send with T=1", [](ExtVictim& v) { feed(v, "c143a3b4c50a000000000000010061"); }},
      {"0/2/06", "MD", "AOpCode 1", [](ExtVictim& v) { v.feed(vector_octets("H51")); }},
      {"0/2/07", "MD", "Atomic, not aligned", [](ExtVictim& v) { atomic_request(v, "a3b4c50a", "0000000000000104"); }},
      {"0/2/07", "MD", "Read Request cut short",
       [](ExtVictim& v) { feed(v, "4141000000000000000100000001000000006f708106"); }},
      {"0/2/07", "MD", "Immediate of 7 octets", [](ExtVictim& v) { v.feed(vector_octets("H49")); }},
      {"0/2/09", "MD", "Send with Invalidate, unknown STag",
       [](ExtVictim& v) { feed(v, "41441122334400000000000000010000000061"); }},
      {"0/2/09", "MD", "Send with Invalidate, shared STag",
       [](ExtVictim& v) { feed(v, "41448192a30800000000000000010000000061"); }},
      {"1/0/00", "MD", "the receive's memory is gone",
       [](ExtVictim& v) {
         v.memory.regions.erase(kRecvStag);
         feed(v, "41430000000000000000000000010000000061");
       }},
      {"1/0/00", "", "a segment shorter than its header", [](ExtVictim& v) { feed(v, "4143000000000000"); }},
      {"1/1/00", "MD", "Write, unknown STag", [](ExtVictim& v) { feed(v, "c140a3b4c5ff000000000000010061"); }},
      {"1/1/00", "MD", "Write, no right", [](ExtVictim& v) { feed(v, "c1402b3c4d02000000000004000061"); }},
      {"1/1/01", "MD", "Write, beyond", [](ExtVictim& v) { feed(v, "c140a3b4c50a000000000000014061"); }},
      {"1/1/02", "MD", "Write, other stream", [](ExtVictim& v) { feed(v, "c1405e6f7005000000000000000061"); }},
      {"1/1/03", "MD", "Write, wrap", [](ExtVictim& v) { feed(v, "c140a3b4c50affffffffffffffff6162"); }},
      {"1/1/04", "MD", "DV 2, tagged", [](ExtVictim& v) { feed(v, "c240a3b4c50a000000000000010061"); }},
      {"1/2/01", "MD", "queue 4", [](ExtVictim& v) { feed(v, "41430000000000000004000000010000000061"); }},
      {"1/2/02", "MD", "no receive",
       [](ExtVictim& v) {
         v.recvs.posted.clear();
         feed(v, "41430000000000000000000000010000000061");
       }},
      {"1/2/02", "MD", "Atomic Response to nothing", [](ExtVictim& v) { v.feed(vector_octets("H55")); }},
      {"1/2/03", "MD", "MSN 2 first", [](ExtVictim& v) { feed(v, "41430000000000000000000000020000000061"); }},
      {"1/2/04", "MD", "MO 1 first", [](ExtVictim& v) { feed(v, "41430000000000000000000000010000000161"); }},
      {"1/2/05", "MD", "longer than the receive",
       [](ExtVictim& v) {
         Octets send = vectors::from_hex("414300000000000000000000000100000000");
         send.resize(18 + 65);
         v.feed(send);
       }},
      {"1/2/06", "MD", "DV 2, untagged", [](ExtVictim& v) { feed(v, "42430000000000000000000000010000000061"); }},
      {"2/0/02", "", "a bad CRC",
       [](ExtVictim& v) {
         Octets fpdu = frame_fpdu(vectors::from_hex("41430000000000000000000000010000000061"));
         fpdu.back() ^= 1;
         v.receive(fpdu, v.now);
       }},
  };
  return all;
}

void add_regions(ExtVictim& v) {
  v.memory.add(0x4d5e6f04, {9, {}, 0, true, true, true, Octets(4096, 0xa5)});
  v.memory.add(0x5e6f7005, {7, {2}, 0, true, true, true, Octets(4096, 0xa5)});
  v.memory.add(0x8192a308, {7, {1, 2}, 0, true, true, true, Octets(4096, 0xa5)});
}

TEST(TerminateCodes, EachComesWithItsHeaders) {
  RecordProperty("proves", "EXT-8.1-02");
  for (const Case& c : cases()) {
    for (const std::size_t chunk : {SIZE_MAX, std::size_t{1}}) {
      SCOPED_TRACE(std::string(c.row) + ": " + c.what);
      ExtVictim v(chunk);
      add_regions(v);
      c.provoke(v);
      const auto sent = v.ulpdus();
      ASSERT_EQ(sent.size(), 1u);
      const auto terminate = terminate_of(sent[0]);
      ASSERT_EQ(terminate.size(), 3u) << "not a Terminate";
      const std::string row(c.row);
      EXPECT_EQ(terminate[0], (row[0] - '0') << 4 | (row[2] - '0'));
      if (row.substr(4) != "any") {
        EXPECT_EQ(terminate[1], std::stoi(row.substr(4), nullptr, 16));
      }
      const std::string headers(c.headers);
      EXPECT_EQ(terminate[2], headers.empty() ? 0x00 : headers == "MD" ? 0xc0 : 0xe0);
      // The parts that the bits announce are there, and nothing else.
      std::size_t len = 22;
      if (!headers.empty()) len += 2 + ((sent[0][24] & 0x80) != 0 ? 14 : 18);
      if (headers == "MDR") len += 28;
      EXPECT_EQ(sent[0].size(), len);
      EXPECT_FALSE(v.stream.wants_tx());
      for (const auto& completion : v.completions) EXPECT_NE(completion.status, rdmap::WorkStatus::kSuccess);
    }
  }
}

// Rows that no stream of ours sends, and why.
const std::map<std::string, const char*>& not_sent() {
  static const std::map<std::string, const char*> all = {
      {"0/1/ff", "every protection failure has a code of its own"},
      {"0/2/08", "a failure of the whole device aborts its streams; none is left to send with"},
      {"0/2/ff", "every operation failure has a code of its own"},
      {"1/3/any", "not to be sent over MPA"},
      {"2/0/01", "the connection is lost: told to the user, see reset_test.cc"},
      {"2/0/03", "needs Markers: see the tests of MPA"},
      {"2/0/04", "TCP is closed instead: see startup_test.cc"},
      {"2/0/05", "MPA startup: see startup_test.cc"},
      {"2/0/06", "MPA startup: see startup_test.cc"},
      {"2/0/07", "MPA startup: see startup_test.cc"},
  };
  return all;
}

TEST(TerminateCodes, NoRowOfTheTableIsForgotten) {
  std::ifstream file("tests/conformance/tables/terminate-codes.tsv");
  std::string line;
  std::getline(file, line);
  std::size_t num = 0;
  while (std::getline(file, line)) {
    std::istringstream in(line);
    std::string layer, etype, code;
    std::getline(in, layer, '\t');
    std::getline(in, etype, '\t');
    std::getline(in, code, '\t');
    const std::string row = layer.substr(2) + "/" + etype.substr(2) + "/" + (code == "any" ? code : code.substr(2));
    ++num;
    std::size_t num_cases = 0;
    for (const Case& c : cases()) num_cases += c.row == row;
    EXPECT_EQ(num_cases == 0, not_sent().count(row) == 1) << row;
  }
  EXPECT_EQ(num, rdmap::terminate_rows().size());
}

}  // namespace
}  // namespace weft::sim
