// weft dissect as a user runs it: what it says of files that are no captures, and its exit statuses.
#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "apps/dissect/testing/wire.h"
#include "tests/cli/process.h"

namespace weft::testing {
namespace {

using apps::dissect::TcpSegment;
using apps::dissect::testing::Octets;
using apps::dissect::testing::pattern;
using apps::dissect::testing::untagged;
using apps::dissect::testing::Wire;

void put(Octets& out, std::uint64_t value, int len) {
  for (int i = len - 1; i >= 0; --i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

// The segment as a raw IPv4 packet (RFC 791, RFC 9293).
Octets packet_of(const TcpSegment& segment) {
  Octets out{0x45, 0};
  put(out, 40 + segment.payload.size(), 2);
  put(out, 0, 4);
  put(out, 0x40060000, 4);
  out.insert(out.end(), segment.src.address.begin(), segment.src.address.begin() + 4);
  out.insert(out.end(), segment.dst.address.begin(), segment.dst.address.begin() + 4);
  put(out, segment.src.port, 2);
  put(out, segment.dst.port, 2);
  put(out, segment.seq, 4);
  put(out, segment.ack, 4);
  put(out, 0x50, 1);
  put(out, (segment.syn ? 0x02u : 0u) | (segment.has_ack ? 0x10u : 0u), 1);
  put(out, 0xffff0000, 4);
  put(out, 0, 2);
  out.insert(out.end(), segment.payload.begin(), segment.payload.end());
  return out;
}

// A folder for captures.
struct DissectCli : ::testing::Test {
  DissectCli() { EXPECT_NE(::mkdtemp(folder.data()), nullptr); }
  ~DissectCli() override {
    ::unlink(file().c_str());
    ::rmdir(folder.c_str());
  }
  std::string file() const { return folder + "/capture"; }
  // Captures a connection: its start, one Send of the client, and what `more` adds.
  void capture(const std::function<void(Wire&)>& more = {}) {
    capture_only([&](Wire& wire) {
      wire.open();
      wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, pattern(100))));
      if (more) more(wire);
    });
  }
  // Captures what `talk` says.
  void capture_only(const std::function<void(Wire&)>& talk) {
    pcap_t* pcap = pcap_open_dead(DLT_RAW, 65535);
    pcap_dumper_t* dump = pcap_dump_open(pcap, file().c_str());
    ASSERT_NE(dump, nullptr);
    Wire wire([dump](const TcpSegment& segment) {
      const Octets packet = packet_of(segment);
      pcap_pkthdr header{};
      header.ts.tv_sec = 1000;
      header.ts.tv_usec = static_cast<suseconds_t>(segment.packet * 10);
      header.caplen = header.len = static_cast<bpf_u_int32>(packet.size());
      pcap_dump(reinterpret_cast<u_char*>(dump), &header, packet.data());
    });
    talk(wire);
    pcap_dump_close(dump);
    pcap_close(pcap);
  }

  std::string folder = "/tmp/weft-dissect-XXXXXX";
};

TEST_F(DissectCli, PrintsALineForEachMessage) {
  capture();
  const Outcome outcome = run_weft({"dissect", file()});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out,
            "connection 1: 10.0.0.1:40000 to 10.0.0.2:20049\n"
            "   0.000000   1> MPA Request, revision 1, CRC on, Markers off\n"
            "   0.000010   1< MPA Reply, revision 1, CRC on, Markers off\n"
            "   0.000020   1>   Send, MSN 1, 100 bytes\n");
}

TEST_F(DissectCli, CheckEndsWithOneWhereARuleIsBroken) {
  capture();
  Outcome outcome = run_weft({"dissect", "--check", file()});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "0 violations in 3 MPA frames of 1 iWARP connection\n");
  capture([](Wire& wire) {
    wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(rdmap::Opcode::kSend, 3, pattern(8))));
  });
  outcome = run_weft({"dissect", "--check", file()});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.out.find("DDP-7.1-09 (RFC 5041 section 7.1): MSN 3 in queue 0, where 2 is due"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("Terminate DDP: "), std::string::npos) << outcome.out;
}

TEST_F(DissectCli, EachLineOfJsonIsAnObject) {
  capture();
  const Outcome outcome = run_weft({"dissect", "--json", file()});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::vector<nlohmann::json> objects;
  for (std::string line; std::getline(lines, line);) objects.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(objects.size(), 6u);
  EXPECT_EQ(objects[3]["operation"], "Send");
  EXPECT_EQ(objects[3]["octets"], 100);
  EXPECT_EQ(objects[3]["layers"].size(), 3u);
  EXPECT_EQ(objects[5]["capture_end"]["packets"], 5);
  EXPECT_EQ(objects[5]["capture_end"]["tcp_segments"], 5);
  EXPECT_EQ(objects[5]["capture_end"]["connections"], 1);
  EXPECT_EQ(objects[5]["capture_end"]["frames"], 3);
}

// Of a file that cannot be read, nothing is counted.
TEST_F(DissectCli, NoTotalOfAFileThatCannotBeOpened) {
  for (const char* mode : {"--check", "--summary", "--json"}) {
    const Outcome outcome = run_weft({"dissect", mode, file()});
    EXPECT_EQ(outcome.status, 1) << mode;
    EXPECT_EQ(outcome.out, "") << mode;
  }
}

// A check of nothing is no success, and each mode says what to look at.
TEST_F(DissectCli, SaysThatACaptureHasNoIwarp) {
  capture_only([](Wire& wire) {
    wire.syn(Wire::kClient);
    wire.syn(Wire::kServer);
    wire.send(Wire::kClient, {'G', 'E', 'T', ' ', '/'});
  });
  Outcome outcome = run_weft({"dissect", "--check", file()});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out, "0 violations in 0 MPA frames of 0 iWARP connections\n");
  EXPECT_NE(outcome.err.find(file() + ": no iWARP connection in 3 TCP segments. Try: a capture that begins"),
            std::string::npos)
      << outcome.err;
  outcome = run_weft({"dissect", file()});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("no iWARP connection"), std::string::npos) << outcome.err;
  capture_only([](Wire&) {});
  for (const char* mode : {"--verbose", "--check", "--json"}) {
    outcome = run_weft({"dissect", mode, file()});
    EXPECT_EQ(outcome.status, std::string(mode) == "--check" ? 1 : 0) << mode;
    EXPECT_NE(outcome.err.find(file() + ": no packets. Try: a longer capture"), std::string::npos) << outcome.err;
  }
}

TEST_F(DissectCli, SaysWhatIsNoCapture) {
  Outcome outcome = run_weft({"dissect", file()});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("No such file"), std::string::npos) << outcome.err;
  std::ofstream(file()) << "hello, world, this is text and no capture";
  outcome = run_weft({"dissect", file()});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("unknown file format"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find(file()), std::string::npos) << outcome.err;
}

// A capture that tcpdump could not finish has whole packets at its front.
TEST_F(DissectCli, TellsOfACutFileWhatItHas) {
  capture();
  std::ifstream in(file(), std::ios::binary);
  std::string octets(std::istreambuf_iterator<char>(in), {});
  std::ofstream(file(), std::ios::binary | std::ios::trunc) << octets.substr(0, octets.size() - 30);
  const Outcome outcome = run_weft({"dissect", file()});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.out.find("MPA Reply"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("truncated"), std::string::npos) << outcome.err;
}

// A program's own trace is a capture like any other.
TEST_F(DissectCli, ReadsTheTraceOfAProgram) {
  WeftListener listener({"ping", "--listen", "127.0.0.1:0"});
  const Outcome ping = run_weft({"ping", listener.address("rdma"), "-C", "3", "--trace", file()});
  ASSERT_EQ(ping.status, 0) << ping.err;
  const Outcome outcome = run_weft({"dissect", "--check", file()});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("0 violations in "), std::string::npos) << outcome.out;
  const Outcome lines = run_weft({"dissect", file()});
  EXPECT_NE(lines.out.find("> MPA Request, revision 2"), std::string::npos) << lines.out;
  EXPECT_NE(lines.out.find("RDMA Read Request"), std::string::npos) << lines.out;
  EXPECT_NE(lines.out.find("RDMA Write"), std::string::npos) << lines.out;
  // What the program said of its packets.
  EXPECT_NE(lines.out.find(">   # "), std::string::npos) << lines.out;
  EXPECT_EQ(outcome.out.find("not judged"), std::string::npos) << outcome.out;
}

TEST_F(DissectCli, WritesAPageAndSaysSo) {
  capture();
  const std::string page = folder + "/page.html";
  Outcome outcome = run_weft({"dissect", "--html", page, file()});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("weft: wrote " + page + ": 3 messages, 1 connection, ")) << outcome.err;
  std::ifstream in(page, std::ios::binary);
  const std::string octets(std::istreambuf_iterator<char>(in), {});
  EXPECT_TRUE(octets.starts_with("<!doctype html>"));
  EXPECT_TRUE(octets.ends_with("</html>\n"));
  outcome = run_weft({"dissect", "--html", "-", file()});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, octets);
  ::unlink(page.c_str());
}

TEST_F(DissectCli, APageDoesNotReplaceItsCapture) {
  capture();
  const Outcome outcome = run_weft({"dissect", "--html", file(), file()});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("is the capture itself"), std::string::npos) << outcome.err;
  EXPECT_EQ(run_weft({"dissect", file()}).status, 0);
}

// Ctrl-C ends a live capture, and its page is complete.
TEST_F(DissectCli, CtrlCCompletesThePageOfAPipe) {
  capture();
  const std::string page = folder + "/page.html";
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::ifstream in(file(), std::ios::binary);
  const std::string octets(std::istreambuf_iterator<char>(in), {});
  RunningWeft weft({"dissect", "--html", page, "-"}, ends[0]);
  ASSERT_EQ(::write(ends[1], octets.data(), octets.size()), static_cast<ssize_t>(octets.size()));
  // The pipe is empty once weft has begun to read. Which messages it has told by then is left open.
  for (int left = 1; left != 0;) ASSERT_EQ(::ioctl(ends[1], FIONREAD, &left), 0);
  weft.send_signal(SIGINT);
  const Outcome outcome = weft.finish();
  EXPECT_EQ(outcome.signal, SIGINT);
  EXPECT_NE(outcome.err.find("wrote " + page + ": "), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("Interrupted"), std::string::npos) << outcome.err;
  std::ifstream written(page, std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(written), {});
  EXPECT_TRUE(whole.ends_with("</html>\n"));
  ::close(ends[0]);
  ::close(ends[1]);
  ::unlink(page.c_str());
}

// What a shell's "weft ARGUMENTS" prints, and how it ends.
Outcome in_shell(const std::string& arguments) {
  Outcome outcome;
  std::FILE* const pipe = ::popen((std::string(WEFT_BINARY) + " " + arguments).c_str(), "r");
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) outcome.out += static_cast<char>(c);
  outcome.status = WEXITSTATUS(::pclose(pipe));
  return outcome;
}

TEST_F(DissectCli, NoFileOfTheProgramIsAStandardFileThatIsClosed) {
  capture();
  Outcome outcome = in_shell("dissect - 2>&1 <&-");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out, "weft: -: Bad file descriptor\n");
  outcome = in_shell("dissect " + file() + " 2>&1 >&-");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out, "weft: cannot write to standard output: Bad file descriptor\n");
  outcome = in_shell("dissect " + file() + " 2>&-");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(outcome.out.starts_with("connection 1: ")) << outcome.out;
}

TEST_F(DissectCli, OneKindOfOutputAtATime) {
  EXPECT_EQ(run_weft({"dissect", "--html", folder + "/page.html", "--json", file()}).status, 2);
  const Outcome outcome = run_weft({"dissect", "--check", "--json", file()});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("--json always has the violations of --check"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace weft::testing
