// `weft nfs` with a server that fails, and with a hostile one.
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <thread>
#include <utility>

#include "apps/common/signals.h"
#include "apps/nfs/session.h"
#include "base/fd.h"
#include "rpcrdma/testing/protocol_under_test.h"
#include "tests/nfs/world.h"
#include "verbs-shim/soft/device.h"

namespace weft::nfs::testing {
namespace {

using nfs3::Nfsstat3;
using nfs3::Proc;
using rpcrdma::ServedCall;
using Names = std::vector<std::string>;

constexpr std::size_t kIo = 65536;  // of --io-size
constexpr nfs3::Verf kOtherVerf = {9, 9, 9, 9, 9, 9, 9, 9};

class Faults : public World {
 protected:
  Ran put(const std::string& from, const std::string& to) {
    return weft({"nfs", "put", "-j", "2", "--io-size", std::to_string(kIo), local(from), url(to)});
  }
  Ran get(const std::string& from, const std::string& to) {
    return weft({"nfs", "get", "-j", "2", "--io-size", std::to_string(kIo), url(from), local(to)});
  }
  // One line on stderr, exit status 1.
  static void expect_failure(const Ran& ran, const std::string& words) {
    EXPECT_EQ(ran.status, 1);
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    EXPECT_NE(ran.err.find(words), std::string::npos) << ran.err;
  }
};

TEST_F(Faults, AFullDiskLeavesTheOldFileAndNothingElse) {
  write_file(exported("file"), {'o', 'l', 'd'});
  write_file(local("file"), noise(5 * kIo));
  interposer.hook = [this](ServedCall& call) {
    if (!is(call, Proc::kWrite)) return false;
    ConstBytes data;
    if (write_args_of(call, data).offset < 3 * kIo) return false;
    interposer.answer(call, nfs3::WriteRes{Nfsstat3::kNospc, {}, 0, {}, {}});
    return true;
  };
  expect_failure(put("file", "file"), "no space left");
  EXPECT_EQ(text_of(read_file(exported("file"))), "old");
  EXPECT_EQ(names_in(export_dir()), Names{"file"});
}

TEST_F(Faults, AFailedReadLeavesNoFile) {
  write_file(exported("file"), noise(5 * kIo));
  interposer.hook = [this](ServedCall& call) {
    if (!is(call, Proc::kRead) || args_of<nfs3::ReadArgs>(call).offset < 3 * kIo) return false;
    interposer.answer(call, nfs3::ReadRes{Nfsstat3::kIo, {}, 0, false, {}});
    return true;
  };
  expect_failure(get("file", "file"), "I/O error");
  EXPECT_TRUE(names_in(local_dir()).empty());
}

TEST_F(Faults, AServerThatStartsAnewGetsTheDataAgain) {
  const Octets octets = noise(3 * kIo + 5);
  write_file(local("file"), octets);
  std::atomic<int> num_writes = 0;
  std::atomic<int> num_commits = 0;
  interposer.hook = [&](ServedCall& call) {
    if (is(call, Proc::kWrite)) ++num_writes;
    if (!is(call, Proc::kCommit) || ++num_commits > 1) return false;
    interposer.answer(call, nfs3::CommitRes{Nfsstat3::kOk, {}, kOtherVerf});
    return true;
  };
  const Ran ran = put("file", "file");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(read_file(exported("file")), octets);
  EXPECT_EQ(num_commits, 2);
  EXPECT_EQ(num_writes, 8);
}

TEST_F(Faults, AVerifierThatChangesBetweenWritesIsNoticed) {
  const Octets octets = noise(3 * kIo);
  write_file(local("file"), octets);
  std::atomic<int> num_writes = 0;
  interposer.hook = [&](ServedCall& call) {
    // The first WRITE is lost with a server that ended after it.
    if (!is(call, Proc::kWrite) || ++num_writes > 1) return false;
    interposer.answer(call, nfs3::WriteRes{Nfsstat3::kOk, {}, kIo, nfs3::StableHow::kUnstable, kOtherVerf});
    return true;
  };
  EXPECT_EQ(put("file", "file").status, 0);
  EXPECT_EQ(read_file(exported("file")), octets);
}

TEST_F(Faults, AServerThatKeepsStartingAnewIsGivenUp) {
  write_file(local("file"), noise(100));
  interposer.hook = [this](ServedCall& call) {
    if (!is(call, Proc::kCommit)) return false;
    interposer.answer(call, nfs3::CommitRes{Nfsstat3::kOk, {}, kOtherVerf});
    return true;
  };
  expect_failure(put("file", "file"), "never became safe");
  EXPECT_TRUE(names_in(export_dir()).empty());
}

TEST_F(Faults, ShortWritesAreCompleted) {
  const Octets octets = noise(3 * kIo + 7);
  write_file(local("file"), octets);
  interposer.hook = [this](ServedCall& call) {
    if (!is(call, Proc::kWrite)) return false;
    ConstBytes data;
    nfs3::WriteArgs args = write_args_of(call, data);
    if (args.count < 10) return false;
    args.count = args.data.len = args.count / 2;
    interposer.answer(call, backend->write(args, data.first(args.count)));
    return true;
  };
  EXPECT_EQ(put("file", "file").status, 0);
  EXPECT_EQ(read_file(exported("file")), octets);
}

TEST_F(Faults, ShortReadsAreCompleted) {
  const Octets octets = noise(3 * kIo + 7);
  write_file(exported("file"), octets);
  interposer.hook = [this](ServedCall& call) {
    if (!is(call, Proc::kRead)) return false;
    nfs3::ReadArgs args = args_of<nfs3::ReadArgs>(call);
    args.count = std::max(1u, args.count / 2);
    rpcrdma::Buffer buffer = interposer.server->buffers().take(args.count);
    nfs3::ReadRes res = backend->read(args, buffer.octets());
    res.data.len = res.count;
    interposer.answer_with_item(call, res, std::move(buffer));
    return true;
  };
  EXPECT_EQ(get("file", "file").status, 0);
  EXPECT_EQ(read_file(local("file")), octets);
}

TEST_F(Faults, AReadOfNothingBeforeTheEndIsAnError) {
  write_file(exported("file"), noise(kIo));
  interposer.hook = [this](ServedCall& call) {
    if (!is(call, Proc::kRead)) return false;
    interposer.answer(call, nfs3::ReadRes{Nfsstat3::kOk, {}, 0, false, {}});
    return true;
  };
  expect_failure(get("file", "file"), "no data before the end");
  EXPECT_TRUE(names_in(local_dir()).empty());
}

TEST_F(Faults, AServerThatIsNotReadyIsAskedAgain) {
  const Octets octets = noise(2 * kIo);
  write_file(local("file"), octets);
  std::array<std::atomic<int>, nfs3::kNumProcs> num_calls{};
  interposer.hook = [&](ServedCall& call) {
    if (++num_calls[call.procedure] > 1) return false;
    interposer.server->reply(call.id, serve::busy_reply(call.procedure));
    return true;
  };
  const Ran up = put("file", "file");
  EXPECT_EQ(up.status, 0) << up.err;
  for (auto& num : num_calls) num = 0;
  const Ran down = get("file", "back");
  EXPECT_EQ(down.status, 0) << down.err;
  EXPECT_EQ(read_file(local("back")), octets);
}

TEST_F(Faults, AStopSignalInPutRemovesTheTemporaryFile) {
  write_file(local("file"), noise(4 * kIo));
  interposer.hook = [signaled = false](ServedCall& call) mutable {
    // Once: a second signal kills as usual.
    if (is(call, Proc::kWrite) && !std::exchange(signaled, true)) kill(getpid(), SIGINT);
    return false;
  };
  expect_failure(put("file", "file"), "interrupted");
  EXPECT_TRUE(names_in(export_dir()).empty());
}

TEST_F(Faults, AStopSignalInGetLeavesNoFile) {
  write_file(exported("file"), noise(4 * kIo));
  interposer.hook = [signaled = false](ServedCall& call) mutable {
    if (!is(call, Proc::kRead) || args_of<nfs3::ReadArgs>(call).offset < 2 * kIo) return false;
    if (!std::exchange(signaled, true)) kill(getpid(), SIGTERM);
    return true;  // without an answer: the file is not complete when the signal is seen
  };
  expect_failure(get("file", "file"), "interrupted");
  EXPECT_TRUE(names_in(local_dir()).empty());
}

TEST_F(Faults, ABrokenConnectionLeavesNoFile) {
  write_file(exported("file"), noise(4 * kIo));
  interposer.hook = [this](ServedCall& call) {
    if (!is(call, Proc::kRead) || args_of<nfs3::ReadArgs>(call).offset < 2 * kIo) return false;
    stop_server();
    return true;
  };
  const Ran ran = get("file", "file");
  EXPECT_EQ(ran.status, 1);
  EXPECT_FALSE(ran.err.empty());
  EXPECT_TRUE(names_in(local_dir()).empty());
}

// Results that no form of a Reply can carry: the error says nothing of the WRITE.
TEST_F(Faults, AWriteThatGotATransportErrorIsInDoubt) {
  if (rpcrdma::testing::protocol_under_test() != rpcrdma::Protocol::k1) RecordProperty("proves", "U2-3-4 U2-5.6-4");
  write_file(local("file"), noise(2 * kIo));
  interposer.hook = [this](ServedCall& call) {
    if (!is(call, Proc::kWrite)) return false;
    rpcrdma::ServedReply reply;
    reply.results = Octets(2 << 20);
    interposer.server->reply(call.id, std::move(reply));
    return true;
  };
  const Ran ran = put("file", "file");
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.err.find("the server may or may not have done it"), std::string::npos) << ran.err;
}

TEST_F(Faults, AServerThatComesBackIsGoneOnWith) {
  RecordProperty("proves", "R1-5.5.5-01 U1-6.7.2-04");
  reconnect_for = std::chrono::seconds(30);
  const Octets octets = noise(8 * kIo + 3);
  write_file(exported("file"), octets);
  interposer.hook = [this, num_restarts = 0u](ServedCall& call) mutable {
    if (!is(call, Proc::kRead) || num_restarts == 2) return false;
    if (args_of<nfs3::ReadArgs>(call).offset < (2 + 3 * num_restarts) * kIo) return false;
    ++num_restarts;
    restart_server();
    return true;  // it is never answered
  };
  const Ran ran = get("file", "file");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(read_file(local("file")), octets);
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 4) << ran.err;
  EXPECT_NE(ran.err.find("; connecting again\n"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("connected to 127.0.0.1 again\n"), std::string::npos) << ran.err;
}

TEST_F(Faults, WhatIsWrittenGoesOnWithAServerThatComesBack) {
  reconnect_for = std::chrono::seconds(30);
  const Octets octets = noise(8 * kIo + 3);
  write_file(local("file"), octets);
  interposer.hook = [this, restarted = false](ServedCall& call) mutable {
    ConstBytes data;
    if (!is(call, Proc::kWrite) || restarted || write_args_of(call, data).offset < 2 * kIo) return false;
    restarted = true;
    restart_server();
    return true;
  };
  const Ran ran = put("file", "file");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(read_file(exported("file")), octets);
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 2) << ran.err;
}

TEST_F(Faults, AServerThatDoesNotAnswerIsToldOfAndGivenUp) {
  tell_after = std::chrono::milliseconds(20);
  write_file(exported("file"), noise(kIo));
  interposer.hook = [](ServedCall& call) { return is(call, Proc::kRead); };  // it is never answered
  const Ran ran = weft({"nfs", "get", "--timeout", "0.4", url("file"), local("file")});
  EXPECT_EQ(ran.status, 1);
  const std::size_t told =
      ran.err.find("server 127.0.0.1 is not responding, still trying (for 0.4 s in all: --timeout)");
  EXPECT_NE(told, std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("no Reply within 400 ms"), std::string::npos) << ran.err;
  EXPECT_TRUE(names_in(local_dir()).empty());
}

// RawServer takes connections over MPA and does nothing more with them.
class RawServer {
 public:
  RawServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    addr_.sin_family = AF_INET;
    addr_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t len = sizeof addr_;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&addr_), len), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&addr_), &len), 0);
  }
  int fd() const { return listener_.get(); }
  std::uint16_t port() const { return ntohs(addr_.sin_port); }
  Fd accept() const { return Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  // Waits for the Request (RFC 5044 section 7.1, revision 1) and accepts it. `more` goes out with the Reply.
  static void reply(const Fd& client, const std::string& more = {}) {
    std::array<char, 1024> request;
    EXPECT_GE(::recv(client.get(), request.data(), request.size(), 0), 20);
    const std::string reply = "MPA ID Rep Frame" + std::string("\x40\x01\0\0", 4) + more;
    EXPECT_EQ(::send(client.get(), reply.data(), reply.size(), MSG_NOSIGNAL), static_cast<ssize_t>(reply.size()));
  }

 private:
  Fd listener_;
  sockaddr_in addr_{};
};

// What the user is told is what the command waits. It ends here where the service closes the connection.
TEST_F(Faults, MountWaitsAsLongAsTheUserSays) {
  const auto device = std::move(verbs::open_soft_device(verbs::SoftConfig{}).value());
  for (const auto& [timeout, text] :
       {std::pair(std::chrono::seconds(15), "for 15 s in all"), std::pair(std::chrono::seconds(7), "for 7 s in all"),
        std::pair(std::chrono::seconds(0), "for 10 s in all")}) {
    const RawServer raw;
    Url there = *parse_url(url(""));
    there.mountport = raw.port();
    const apps::StopSignals stop;
    std::vector<std::string> told;
    const auto session = Session::open(
        there, client_options(), *device, stop,
        {.timeout = timeout, .tell_after = std::chrono::milliseconds(200), .tell = [&](const std::string& line) {
           told.push_back(line);
           raw.accept();
         }});
    EXPECT_FALSE(session.ok());
    ASSERT_EQ(told.size(), 1u) << text;
    EXPECT_NE(told[0].find(text), std::string::npos) << told[0];
  }
}

TEST_F(Faults, AConnectionThatComesAndGoesWithinOneTurnIsTold) {
  const RawServer raw;
  Url there = *parse_url(url(""));
  there.port = raw.port();
  apps::GlobalOptions options = client_options();
  options.protocols = {rpcrdma::Protocol::k1};
  verbs::SoftConfig config;
  config.mpa_revision = 1;
  const auto device = std::move(verbs::open_soft_device(config).value());
  const apps::StopSignals stop;
  std::vector<std::string> told;
  Fd client;
  std::thread server([&] { raw.reply(client = raw.accept()); });
  auto session = Session::open(there, options, *device, stop,
                               {.reconnect_for = std::chrono::seconds(30),
                                .timeout = std::chrono::seconds(30),
                                .tell = [&](const std::string& line) { told.push_back(line); }});
  server.join();
  ASSERT_TRUE(session.ok()) << session.status();
  client.reset();
  const auto turn_until_readable = [&](int fd) {
    pollfd polled{fd, POLLIN, 0};
    while (::poll(&polled, 1, 0) == 0) ASSERT_TRUE((*session)->turn(fd).ok());
  };
  ASSERT_NO_FATAL_FAILURE(turn_until_readable(raw.fd()));
  client = raw.accept();
  ASSERT_NO_FATAL_FAILURE(turn_until_readable(client.get()));
  // The FPDU behind the Reply has a wrong CRC. The client reads both at once, and ends the connection.
  raw.reply(client, std::string("\0\x12", 2) + std::string(22, '\x11'));
  while (told.size() < 3) ASSERT_TRUE((*session)->turn().ok());
  EXPECT_TRUE(told[0].ends_with("; connecting again")) << told[0];
  EXPECT_EQ(told[1], "connected to 127.0.0.1 again");
  EXPECT_TRUE(told[2].ends_with("; connecting again")) << told[2];
}

TEST_F(Faults, AServerThatStaysAwayIsGivenUp) {
  reconnect_for = std::chrono::milliseconds(250);
  write_file(exported("file"), noise(4 * kIo));
  interposer.hook = [this](ServedCall& call) {
    if (!is(call, Proc::kRead)) return false;
    stop_server();
    return true;
  };
  const Ran ran = get("file", "file");
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.err.find("; connecting again\n"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("no other in its place"), std::string::npos) << ran.err;
  EXPECT_TRUE(names_in(local_dir()).empty());
}

// The names and the text are the server's choice; a message that shows them is one line without controls.
TEST_F(Faults, NamesInMessagesDriveNoTerminal) {
  const std::string name = "\x1b]0;x\x07\xc2\x9b\xe2\x80\xae\xff\n";
  const std::string shown = "\\x1b]0;x\\x07\\u009b\\u202e\\xff\\x0a";
  std::filesystem::create_directory(exported("d"));
  write_file(exported("d/" + name), noise(10));
  std::filesystem::create_directories(local("d/" + name));
  expect_failure(weft({"nfs", "get", "-r", url("d"), local_dir()}), "/" + shown + ": Is a directory");
}

TEST_F(Faults, AListingCannotLeadOutOfTheTarget) {
  for (const char* name : {"../evil", "a/b", ""}) {
    interposer.hook = [this, name](ServedCall& call) {
      if (!is(call, Proc::kReaddirplus)) return false;
      nfs3::ReaddirplusRes res;
      res.entries.push_back({1, name, 1, std::nullopt, std::nullopt});
      res.eof = true;
      interposer.answer(call, res);
      return true;
    };
    expect_failure(weft({"nfs", "get", "-r", url(""), local("copy")}), "name that can be none");
    EXPECT_TRUE(names_in(local("copy")).empty());
  }
  EXPECT_EQ(names_in(local_dir()), Names{"copy"});
}

TEST_F(Faults, ANameThatIsLinkFirstAndDirectoryThenDoesNotLeadOut) {
  std::filesystem::create_directory(exported("dir"));
  write_file(exported("dir/file"), {'x'});
  std::filesystem::create_directory(local("outside"));
  std::filesystem::create_symlink(local("outside"), exported("link"));
  const nfs3::NfsFh3 root = handle_of("");
  const nfs3::NfsFh3 dir = handle_of("dir");
  const nfs3::NfsFh3 link = handle_of("link");
  interposer.hook = [=, this](ServedCall& call) {
    if (!is(call, Proc::kReaddirplus) || args_of<nfs3::ReaddirplusArgs>(call).dir != root) return false;
    nfs3::ReaddirplusRes res;
    res.entries.push_back({1, "same", 1, attributes_of(link), link});
    res.entries.push_back({2, "same", 2, attributes_of(dir), dir});
    res.eof = true;
    interposer.answer(call, res);
    return true;
  };
  const Ran ran = weft({"nfs", "get", "-r", url(""), local("copy")});
  EXPECT_EQ(ran.status, 1);
  EXPECT_TRUE(names_in(local("outside")).empty()) << ran.err;
}

TEST_F(Faults, AListingThatDoesNotGetOnEnds) {
  interposer.hook = [this](ServedCall& call) {
    if (!is(call, Proc::kReaddirplus)) return false;
    nfs3::ReaddirplusRes res;
    res.entries.push_back({1, ".", 7, std::nullopt, std::nullopt});
    interposer.answer(call, res);
    return true;
  };
  expect_failure(weft({"nfs", "ls", url("")}), "does not get on");
}

TEST_F(Faults, ReaddirServesWhereReaddirplusIsUnknown) {
  write_file(exported("a"), {1});
  std::filesystem::create_directory(exported("b"));
  interposer.hook = [this](ServedCall& call) {
    if (!is(call, Proc::kReaddirplus)) return false;
    interposer.answer(call, nfs3::ReaddirplusRes{Nfsstat3::kNotsupp, {}, {}, {}, false});
    return true;
  };
  EXPECT_EQ(weft({"nfs", "ls", url("")}).out, "a\nb\n");
}

TEST_F(Faults, GarbageResultsAreAnError) {
  write_file(exported("file"), noise(kIo));
  interposer.hook = [this](ServedCall& call) {
    if (!is(call, Proc::kRead)) return false;
    // Claims more than was asked for.
    const std::uint32_t count = args_of<nfs3::ReadArgs>(call).count + 1;
    interposer.answer(call, nfs3::ReadRes{Nfsstat3::kOk, {}, count, true, {}});
    return true;
  };
  expect_failure(get("file", "file"), "do not decode");
  EXPECT_TRUE(names_in(local_dir()).empty());
}

// Offset 0 and count 0 are the whole file (RFC 1813 section 3.3.21).
TEST_F(Faults, TheWholeFileIsCommitted) {
  write_file(local("file"), noise(3 * kIo));
  std::atomic<int> num_commits = 0;
  std::atomic<std::uint64_t> offset = 1;
  std::atomic<std::uint32_t> count = 1;
  interposer.hook = [&](ServedCall& call) {
    if (!is(call, Proc::kCommit)) return false;
    ++num_commits;
    const auto args = args_of<nfs3::CommitArgs>(call);
    offset = args.offset;
    count = args.count;
    return false;
  };
  const Ran ran = put("file", "file");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(num_commits, 1);
  EXPECT_EQ(offset, 0u);
  EXPECT_EQ(count, 0u);
}

}  // namespace
}  // namespace weft::nfs::testing
