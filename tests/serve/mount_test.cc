#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "apps/onc_tcp/record.h"
#include "apps/serve/mount/mount_server.h"
#include "apps/serve/mount/mount_service.h"
#include "rpcrdma/rpc_message.h"
#include "tests/serve/fixture.h"
#include "verbs-shim/api/log_budget.h"
#include "verbs-shim/soft/testing/failing_calls.h"

// MOUNT version 3.
namespace weft::serve {
namespace {

using nfs3::MountProc;
using nfs3::Mountstat3;
using rpcrdma::AcceptStat;
using testing::ExportTest;
using testing::write_local;

using Octets = std::vector<std::uint8_t>;

const MountClient kClient{"client", "its address"}, kOther{"other", "another address"};

Octets call_octets(std::uint32_t procedure, const Octets& args, rpcrdma::CallHeader header = {}) {
  header.xid = 0x11223344;
  if (header.program == 0) header.program = nfs3::kMountProgram;
  if (header.version == 0) header.version = nfs3::kMountVersion;
  header.procedure = procedure;
  Octets out;
  rpcrdma::xdr::XdrWriter writer(out);
  rpcrdma::emit_call(writer, header);
  writer.raw(args);
  return out;
}

Octets path_args(const std::string& path) {
  Octets out;
  rpcrdma::xdr::XdrWriter writer(out);
  nfs3::emit(writer, nfs3::DirpathArgs{path});
  return out;
}

class MountTest : public ExportTest {
 protected:
  MountTest() : service(*tree) {
    ::mkdir((dir + "/sub").c_str(), 0755);
    write_local(dir + "/file", "");
    ::symlink("/", (dir + "/link").c_str());
  }

  rpcrdma::ReplyHeader ask(const Octets& call, Octets* results = nullptr) {
    std::optional<Octets> reply = service.answer(call, kClient);
    EXPECT_TRUE(reply.has_value());
    rpcrdma::ReplyHeader header;
    if (!reply) return header;
    rpcrdma::xdr::XdrReader reader(*reply);
    EXPECT_TRUE(rpcrdma::parse_reply(reader, header));
    EXPECT_EQ(header.xid, 0x11223344u);
    if (results != nullptr) results->assign(reader.rest().begin(), reader.rest().end());
    return header;
  }
  Mountstat3 mnt(const std::string& path) { return service.mnt({path}, kClient).fhs_status; }

  MountService service;
};

TEST_F(MountTest, TheRootAndWhatIsBelow) {
  for (const std::string& path : {std::string("/"), std::string("//"), tree->real_path(), tree->real_path() + "/"}) {
    nfs3::MntRes res = service.mnt({path}, kClient);
    ASSERT_EQ(res.fhs_status, Mountstat3::kOk) << path;
    EXPECT_EQ(res.fhandle, root()) << path;
    EXPECT_EQ(res.auth_flavors, (std::vector<std::uint32_t>{1, 0}));
  }
  EXPECT_EQ(service.mnt({"/sub"}, kClient).fhandle, handle("sub"));
  EXPECT_EQ(service.mnt({tree->real_path() + "/sub/"}, kClient).fhandle, handle("sub"));
}

TEST_F(MountTest, NothingElse) {
  EXPECT_EQ(mnt("/none"), Mountstat3::kNoent);
  EXPECT_EQ(mnt(""), Mountstat3::kNoent);
  EXPECT_EQ(mnt("sub"), Mountstat3::kNoent);
  EXPECT_EQ(mnt("/etc/passwd"), Mountstat3::kNoent);
  EXPECT_EQ(mnt("/file"), Mountstat3::kNotdir);
  EXPECT_EQ(mnt("/link"), Mountstat3::kNotdir);
  EXPECT_EQ(mnt("/link/etc"), Mountstat3::kNotdir);
  EXPECT_EQ(mnt(tree->real_path() + "x"), Mountstat3::kNoent);
  EXPECT_EQ(mnt("/" + std::string(300, 'x')), Mountstat3::kNametoolong);
  // ".." ends at the root.
  EXPECT_EQ(service.mnt({"/../.."}, kClient).fhandle, root());
  EXPECT_EQ(mnt("/sub/../../etc"), Mountstat3::kNoent);
}

TEST_F(MountTest, DumpUmntExport) {
  mnt("/");
  mnt("/");
  service.mnt({"/sub"}, kOther);
  EXPECT_EQ(service.dump().mounts.size(), 2u);
  service.umnt({"/"}, kOther);
  EXPECT_EQ(service.dump().mounts.size(), 2u);
  service.umnt({"/"}, kClient);
  ASSERT_EQ(service.dump().mounts.size(), 1u);
  EXPECT_EQ(service.dump().mounts[0].ml_hostname, "other");
  service.umntall(kOther);
  EXPECT_TRUE(service.dump().mounts.empty());
  ASSERT_EQ(service.exports().exports.size(), 1u);
  EXPECT_EQ(service.exports().exports[0].ex_dir, "/");
}

TEST_F(MountTest, TheListOfMountsIsBounded) {
  for (int i = 0; i < 1100; ++i) {
    const std::string host = "host" + std::to_string(i);
    service.mnt({"/"}, {host, host});
  }
  EXPECT_EQ(service.dump().mounts.size(), 1024u);
  EXPECT_EQ(service.dump().mounts.back().ml_hostname, "host1099");
}

// A host that mounts under ever other names, each as long as a name may be.
TEST_F(MountTest, NamesOfOneAddressPushOutNoOthersAndMakeNoLongReply) {
  service.mnt({"/"}, kOther);
  for (int i = 0; i < 3000; ++i) {
    std::string path(i % 2 == 0 ? nfs3::kMntPathLen : 1, '/');
    for (int bit = 0; bit < 12 && path.size() > 1; ++bit) {
      if ((i >> bit & 1) != 0) path.replace(std::size_t(2 * bit), 2, "/.");
    }
    ASSERT_EQ(service.mnt({path}, {"client" + std::to_string(i % 7), kClient.group}).fhs_status, Mountstat3::kOk);
  }
  const nfs3::DumpRes dump = service.dump();
  EXPECT_EQ(dump.mounts.front().ml_hostname, kOther.host);
  EXPECT_GT(dump.mounts.size(), 40u);
  Octets results;
  ask(call_octets(2, {}), &results);
  EXPECT_LE(results.size(), MountList::kMaxOctetsPerGroup + 100);
  // Another may still have the quarter that is left, and more than that where the first gives it up.
  for (int i = 0; i < 1000; ++i) service.mnt({"/"}, {"other" + std::to_string(i), kOther.group});
  ask(call_octets(2, {}), &results);
  EXPECT_LE(results.size(), MountList::kMaxOctets + 4);
  EXPECT_GE(std::ranges::count_if(service.dump().mounts,
                                  [](const nfs3::Mountbody& mount) { return mount.ml_hostname.starts_with("other"); }),
            500);
}

// Its own address has most mounts then.
TEST_F(MountTest, ALongNameFindsNoRoomAmongManyShortOnes) {
  for (int i = 0; i < 1024; ++i) {
    const std::string host = "host" + std::to_string(i);
    service.mnt({"/"}, {host, host});
  }
  EXPECT_EQ(service.mnt({std::string(nfs3::kMntPathLen, '/')}, kOther).fhs_status, Mountstat3::kOk);
  EXPECT_EQ(service.dump().mounts.size(), 1024u);
  EXPECT_EQ(service.dump().mounts.back().ml_hostname, "host1023");
}

TEST_F(MountTest, WhatIsUnmountedMakesRoom) {
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 768; ++i) service.mnt({"/"}, {"host" + std::to_string(i), "group"});
    EXPECT_EQ(service.dump().mounts.size(), 768u);
    for (int i = 0; i < 768; ++i) {
      const MountClient client{"host" + std::to_string(i), "group"};
      if (i % 2 == 0) {
        service.umntall(client);
      } else {
        service.umnt({"/"}, client);
      }
    }
    EXPECT_TRUE(service.dump().mounts.empty());
  }
}

TEST_F(MountTest, EveryProcedureOnTheWire) {
  Octets results;
  EXPECT_EQ(ask(call_octets(0, {}), &results).accept, AcceptStat::kSuccess);
  EXPECT_TRUE(results.empty());
  EXPECT_EQ(ask(call_octets(1, path_args("/")), &results).accept, AcceptStat::kSuccess);
  nfs3::MntRes res;
  rpcrdma::xdr::XdrReader reader(results);
  ASSERT_TRUE(nfs3::parse(reader, res));
  EXPECT_EQ(res.fhandle, root());
  for (std::uint32_t procedure : {2u, 4u, 5u})
    EXPECT_EQ(ask(call_octets(procedure, {})).accept, AcceptStat::kSuccess) << procedure;
  EXPECT_EQ(ask(call_octets(3, path_args("/"))).accept, AcceptStat::kSuccess);
  EXPECT_EQ(ask(call_octets(6, {})).accept, AcceptStat::kProcUnavail);
}

TEST_F(MountTest, WhatItDoesNotServe) {
  rpcrdma::CallHeader header;
  header.program = 100003;
  EXPECT_EQ(ask(call_octets(0, {}, header)).accept, AcceptStat::kProgUnavail);
  header = {};
  header.version = 2;
  rpcrdma::ReplyHeader reply = ask(call_octets(0, {}, header));
  EXPECT_EQ(reply.accept, AcceptStat::kProgMismatch);
  EXPECT_EQ(reply.low, 3u);
  header = {};
  header.cred.flavor = 6;
  EXPECT_TRUE(ask(call_octets(1, path_args("/"), header)).denied);
  header = {};
  header.cred = rpcrdma::auth_sys_of_this_process();
  EXPECT_FALSE(ask(call_octets(1, path_args("/"), header)).denied);
}

TEST_F(MountTest, EveryTruncationIsGarbageOrNoCall) {
  const Octets whole = call_octets(1, path_args("/sub"));
  for (std::size_t len = 0; len < whole.size(); ++len) {
    std::optional<Octets> reply = service.answer(ConstBytes(whole).first(len), kClient);
    if (!reply) {
      EXPECT_LT(len, 8u);
      continue;
    }
    rpcrdma::ReplyHeader header;
    rpcrdma::xdr::XdrReader reader(*reply);
    ASSERT_TRUE(rpcrdma::parse_reply(reader, header)) << len;
    EXPECT_EQ(header.accept, AcceptStat::kGarbageArgs) << len;
  }
  Octets longer = whole;
  longer.resize(longer.size() + 4);
  EXPECT_EQ(ask(longer).accept, AcceptStat::kGarbageArgs);
}

// --- over TCP ---

class MountServerTest : public MountTest {
 protected:
  void listen(const MountServerConfig& server_config) {
    sockaddr_storage any{};
    auto* in = reinterpret_cast<sockaddr_in*>(&any);
    in->sin_family = AF_INET;
    in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto started = MountServer::listen(any, service, server_config);
    ASSERT_TRUE(started.ok()) << started.status();
    server = std::move(*started);
  }
  Fd connect(in_addr_t from = INADDR_LOOPBACK) {
    sockaddr_storage addr = server->local_addr();
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in source{};
    source.sin_family = AF_INET;
    source.sin_addr.s_addr = htonl(from);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&source), sizeof source), 0);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&addr), sizeof(sockaddr_in)), 0);
    return fd;
  }
  static void send(const Fd& fd, ConstBytes octets) {
    EXPECT_EQ(::send(fd.get(), octets.data(), octets.size(), MSG_NOSIGNAL), static_cast<ssize_t>(octets.size()));
  }
  // The next record, or nothing where the server closed.
  static std::optional<Octets> receive(const Fd& fd) {
    onc_tcp::RecordReader reader(65536);
    std::uint8_t octet = 0;
    for (;;) {
      pollfd wait{.fd = fd.get(), .events = POLLIN, .revents = 0};
      EXPECT_EQ(::poll(&wait, 1, 30000), 1);
      if (::recv(fd.get(), &octet, 1, 0) != 1) return std::nullopt;
      ConstBytes input(&octet, 1);
      if (reader.next(input) == onc_tcp::RecordReader::Outcome::kRecord) return reader.record();
    }
  }
  std::unique_ptr<MountServer> server;
};

TEST_F(MountServerTest, AnswersCallAfterCallHoweverTheyAreCut) {
  listen({});
  Fd fd = connect();
  Octets two;
  onc_tcp::emit_record(call_octets(1, path_args("/")), two);
  onc_tcp::emit_record(call_octets(0, {}), two);
  for (std::uint8_t octet : two) send(fd, {&octet, 1});
  std::optional<Octets> first = receive(fd), second = receive(fd);
  ASSERT_TRUE(first && second);
  EXPECT_GT(first->size(), second->size());
  Octets again;
  onc_tcp::emit_record(call_octets(0, {}), again);
  send(fd, again);
  EXPECT_EQ(receive(fd), second);
}

TEST_F(MountServerTest, ARecordThatIsTooLongEndsTheConnection) {
  listen({.max_record = 1000});
  Fd fd = connect();
  const std::uint8_t mark[] = {0x80, 0x00, 0x03, 0xe9};
  send(fd, mark);
  EXPECT_EQ(receive(fd), std::nullopt);
}

TEST_F(MountServerTest, AFloodOfLongRecordsCostsFewLines) {
  ::testing::internal::CaptureStdout();  // where spdlog writes unless it is told otherwise
  listen({.max_record = 1000});
  const std::uint8_t mark[] = {0x80, 0x00, 0x03, 0xe9};
  for (int i = 0; i < 200; ++i) {
    Fd fd = connect();
    send(fd, mark);
    EXPECT_EQ(receive(fd), std::nullopt);
  }
  server.reset();
  const std::string lines = ::testing::internal::GetCapturedStdout();
  EXPECT_LE(std::ranges::count(lines, '\n'), verbs::LogBudget::kBurst + 10 * verbs::LogBudget::kPerSecond);
  EXPECT_NE(lines.find("serve: mount: client 127.0.0.1: a record that is longer than 1000 bytes"), std::string::npos);
}

TEST_F(MountServerTest, AShortageOfDescriptorsCostsFewLines) {
  ::testing::internal::CaptureStdout();
  const verbs::testing::FailCalls none_left(verbs::testing::FailingCall::kAccept, EMFILE, 1000);
  listen({.accept_pause = std::chrono::milliseconds(0)});
  Fd fd = connect();
  Octets call;
  onc_tcp::emit_record(call_octets(0, {}), call);
  send(fd, call);
  EXPECT_TRUE(receive(fd).has_value());
  EXPECT_EQ(none_left.num_failed(), 1000);
  server.reset();
  const std::string lines = ::testing::internal::GetCapturedStdout();
  EXPECT_LE(std::ranges::count(lines, '\n'), verbs::LogBudget::kBurst + 10 * verbs::LogBudget::kPerSecond);
  EXPECT_NE(lines.find("serve: mount: client: cannot accept a connection: Too many open files"), std::string::npos);
}

TEST_F(MountServerTest, WhatIsNoCallEndsTheConnection) {
  listen({});
  Fd fd = connect();
  Octets reply;
  onc_tcp::emit_record(Octets{0, 0, 0, 1, 0, 0, 0, 1}, reply);
  send(fd, reply);
  EXPECT_EQ(receive(fd), std::nullopt);
}

TEST_F(MountServerTest, SilentClientsAreDropped) {
  listen({.idle_limit = std::chrono::milliseconds(20)});
  Fd fd = connect();
  EXPECT_EQ(receive(fd), std::nullopt);
  Fd dripping = connect();
  const std::uint8_t mark[] = {0x80, 0x00, 0x00, 0x40, 0x00};
  send(dripping, mark);
  EXPECT_EQ(receive(dripping), std::nullopt);
}

TEST_F(MountServerTest, AddressesThatAreNotAdmittedAreNotHeard) {
  constexpr in_addr_t kUnwelcome = INADDR_LOOPBACK + 8;
  MountServerConfig with_filter;
  with_filter.max_connections = 8;
  with_filter.admits = [](const sockaddr_storage& peer) {
    return reinterpret_cast<const sockaddr_in&>(peer).sin_addr.s_addr != htonl(kUnwelcome);
  };
  listen(with_filter);
  Octets call;
  onc_tcp::emit_record(call_octets(0, {}), call);
  Fd fd = connect();
  send(fd, call);
  EXPECT_TRUE(receive(fd).has_value());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(receive(connect(kUnwelcome)), std::nullopt);
  // They do not take the place of others either.
  send(fd, call);
  EXPECT_TRUE(receive(fd).has_value());
}

TEST_F(MountServerTest, ManySilentClientsDoNotStopTheService) {
  listen({.max_connections = 8});
  std::vector<Fd> silent;
  Octets call;
  onc_tcp::emit_record(call_octets(0, {}), call);
  for (int i = 0; i < 100; ++i) silent.push_back(connect());
  Fd fd = connect();
  send(fd, call);
  EXPECT_TRUE(receive(fd).has_value());
  EXPECT_LE(server->num_connections(), 8u);
  EXPECT_EQ(receive(silent[0]), std::nullopt);
}

// The disk thread is held by its first Call; others wait.
class HeldMountTest : public MountServerTest {
 protected:
  static constexpr in_addr_t kHonest = INADDR_LOOPBACK + 8;

  void listen_held(std::size_t max_connections) {
    MountServerConfig held;
    held.max_connections = max_connections;
    held.on_work = [this] {
      if (num_worked++ == 0) {
        started.count_down();
        hold.wait();
      }
    };
    listen(held);
    first = connect();
    send(first, dear());
    started.wait();
  }
  ~HeldMountTest() override {
    if (!hold.try_wait()) hold.count_down();
    server.reset();
  }
  static Octets record(const std::string& path) {
    Octets out;
    onc_tcp::emit_record(call_octets(1, path_args(path)), out);
    return out;
  }
  static Octets dear() {
    std::string path;
    for (int i = 0; i < 100; ++i) path += "/many/..";
    return record(path);
  }
  static Octets cheap() { return record("/"); }
  // Waits until the server has ended all of them but `num`.
  static void wait_until_open(std::vector<Fd>& fds, std::size_t num) {
    while (fds.size() > num) {
      std::vector<pollfd> polled;
      for (const Fd& fd : fds) polled.push_back({.fd = fd.get(), .events = POLLIN, .revents = 0});
      ASSERT_GT(::poll(polled.data(), polled.size(), 30000), 0) << fds.size() << " are open";
      std::size_t at = 0;
      std::erase_if(fds, [&](const Fd&) { return polled[at++].revents != 0; });
    }
  }
  void wait_for_waiting(std::size_t num) {
    while (server->num_waiting() != num) std::this_thread::yield();
  }

  std::atomic<int> num_worked{0};
  std::latch started{1}, hold{1};
  Fd first;
};

TEST_F(HeldMountTest, AGoneConnectionTakesItsCallAlong) {
  listen_held(4);
  std::vector<Fd> flood;
  for (int i = 0; i < 300; ++i) {
    flood.push_back(connect());
    send(flood.back(), dear());
  }
  // The running Call keeps its place.
  wait_until_open(flood, 3);
  EXPECT_LE(server->num_connections(), 4u);
  EXPECT_LE(server->num_waiting(), 3u);
  Fd honest = connect(kHonest);
  send(honest, cheap());
  wait_until_open(flood, 2);
  hold.count_down();
  EXPECT_TRUE(receive(honest).has_value());
  EXPECT_LE(num_worked, 4) << "Calls of connections that are gone";
}

TEST_F(HeldMountTest, WhoSaysNothingGivesWayBeforeACallThatWaits) {
  listen_held(4);
  Fd honest = connect(kHonest);
  send(honest, cheap());
  wait_for_waiting(1);
  std::vector<Fd> silent;
  for (in_addr_t i = 1; i <= 100; ++i) silent.push_back(connect(kHonest + i));
  wait_until_open(silent, 2);
  hold.count_down();
  EXPECT_TRUE(receive(honest).has_value());
}

TEST_F(HeldMountTest, OfOneAddressTheCallThatCostsMostGivesWay) {
  listen_held(4);
  Fd honest = connect();
  send(honest, cheap());
  wait_for_waiting(1);
  std::vector<Fd> flood;
  for (std::size_t i = 0; i < 100; ++i) {
    flood.push_back(connect());
    send(flood.back(), dear());
    if (i >= 2) {
      EXPECT_EQ(receive(flood[i - 2]), std::nullopt) << i;
    }
    wait_for_waiting(std::min<std::size_t>(i + 2, 3));
  }
  hold.count_down();
  EXPECT_TRUE(receive(honest).has_value());
  EXPECT_LE(num_worked, 4);
}

}  // namespace
}  // namespace weft::serve
