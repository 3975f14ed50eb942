#include "apps/common/rpcbind_registration.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <thread>

#include "apps/onc_tcp/record.h"
#include "nfsulb/netid.h"
#include "nfsulb/programs.h"

namespace weft::apps {
namespace {

using onc_tcp::Rpcb;
using onc_tcp::RpcbindProc;
using Octets = std::vector<std::uint8_t>;
using rpcrdma::xdr::XdrReader;
using rpcrdma::xdr::XdrWriter;

// FakeRpcbind is an rpcbind on loopback, on a thread of its own.
class FakeRpcbind {
 public:
  FakeRpcbind() {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in addr{};
    addr.sin_family = AF_INET;
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&addr), sizeof(addr)), 0);
    EXPECT_EQ(listen(listener_, 4), 0);
    socklen_t len = sizeof(place_.addr);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&place_.addr), &len);
    place_.len = sizeof(sockaddr_in);
    thread_ = std::thread([this] { run(); });
  }
  ~FakeRpcbind() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }

  RpcbindRegistration::Config config() const { return {.places = {place_}, .timeout = std::chrono::seconds(20)}; }
  std::string getaddr(std::uint32_t program, std::uint32_t version, const std::string& netid) {
    std::lock_guard lock(mutex_);
    const auto at = entries_.find({program, version, netid});
    return at == entries_.end() ? "" : at->second;
  }
  void put(const Rpcb& rpcb) {
    std::lock_guard lock(mutex_);
    entries_[{rpcb.program, rpcb.version, rpcb.netid}] = rpcb.address;
  }
  void remove(const Rpcb& rpcb) {
    std::lock_guard lock(mutex_);
    entries_.erase({rpcb.program, rpcb.version, rpcb.netid});
  }
  std::size_t size() {
    std::lock_guard lock(mutex_);
    return entries_.size();
  }
  // From now on every Call gets this header.
  void refuse(const rpcrdma::ReplyHeader& header) {
    std::lock_guard lock(mutex_);
    refusal_ = header;
  }
  // Takes from now on no entry for another's.
  void protect() {
    std::lock_guard lock(mutex_);
    is_protected_ = true;
  }

 private:
  void run() {
    for (;;) {
      const int fd = accept(listener_, nullptr, nullptr);
      if (fd < 0) return;
      serve(fd);
      close(fd);
    }
  }
  void serve(int fd) {
    onc_tcp::RecordReader records(4096);
    Octets buffer(4096);
    for (;;) {
      const ssize_t len = recv(fd, buffer.data(), buffer.size(), 0);
      if (len <= 0) return;
      ConstBytes input = ConstBytes(buffer).first(static_cast<std::size_t>(len));
      while (records.next(input) == onc_tcp::RecordReader::Outcome::kRecord) {
        const Octets reply = answer(records.record());
        EXPECT_EQ(send(fd, reply.data(), reply.size(), MSG_NOSIGNAL), static_cast<ssize_t>(reply.size()));
      }
    }
  }
  Octets answer(const Octets& record) {
    std::lock_guard lock(mutex_);
    XdrReader in(record);
    rpcrdma::CallHeader call;
    Rpcb rpcb;
    EXPECT_EQ(rpcrdma::parse_call(in, call), rpcrdma::CallParse::kOk);
    EXPECT_TRUE(onc_tcp::parse(in, rpcb) && in.at_end());
    EXPECT_EQ(call.program, onc_tcp::kRpcbindProgram);
    EXPECT_EQ(call.version, onc_tcp::kRpcbindVersion);
    Octets message, out;
    XdrWriter writer(message);
    rpcrdma::ReplyHeader header = refusal_.value_or(rpcrdma::ReplyHeader{});
    header.xid = call.xid;
    rpcrdma::emit_reply(writer, header);
    if (!refusal_) writer.boolean(run(static_cast<RpcbindProc>(call.procedure), rpcb));
    onc_tcp::emit_record(message, out);
    return out;
  }
  // RFC 1833 section 2.2.1.
  bool run(RpcbindProc procedure, const Rpcb& rpcb) {
    const Key key{rpcb.program, rpcb.version, rpcb.netid};
    if (procedure == RpcbindProc::kUnset) return !is_protected_ && entries_.erase(key) > 0;
    EXPECT_EQ(procedure, RpcbindProc::kSet);
    return entries_.emplace(key, rpcb.address).first->second == rpcb.address;
  }

  using Key = std::tuple<std::uint32_t, std::uint32_t, std::string>;
  int listener_ = -1;
  onc_tcp::RpcbindPlace place_;
  std::mutex mutex_;
  std::map<Key, std::string> entries_;
  std::optional<rpcrdma::ReplyHeader> refusal_;
  bool is_protected_ = false;
  std::thread thread_;
};

sockaddr_storage ipv4() {
  sockaddr_storage out{};
  auto& in = reinterpret_cast<sockaddr_in&>(out);
  in.sin_family = AF_INET;
  in.sin_port = htons(nfsulb::kNfsRdmaPort);
  in.sin_addr.s_addr = htonl(0xc0000207);
  return out;
}

sockaddr_storage ipv6() {
  sockaddr_storage out{};
  auto& in = reinterpret_cast<sockaddr_in6&>(out);
  in.sin6_family = AF_INET6;
  in.sin6_port = htons(nfsulb::kNfsRdmaPort);
  in.sin6_addr.s6_addr[15] = 1;
  return out;
}

constexpr ProgramVersion kNfs3{nfsulb::kNfsProgram, nfsulb::kNfsV3};
constexpr ProgramVersion kPrograms[] = {kNfs3, {nfsulb::kNfsProgram, nfsulb::kNfsV4}};

TEST(RpcbindRegistration, LivesAsLongAsTheServer) {
  RecordProperty("proves", "R1-11-01 U1-4.2-03");
  FakeRpcbind rpcbind;
  {
    const RpcbindRegistration four(ipv4(), kPrograms, rpcbind.config());
    const RpcbindRegistration six(ipv6(), {&kNfs3, 1}, rpcbind.config());
    EXPECT_EQ(four.registered().size(), 2u);
    EXPECT_EQ(rpcbind.getaddr(100003, 3, "rdma"), "192.0.2.7.78.81");
    EXPECT_EQ(rpcbind.getaddr(100003, 4, "rdma"), "192.0.2.7.78.81");
    EXPECT_EQ(rpcbind.getaddr(100003, 3, "rdma6"), "::1.78.81");
    EXPECT_EQ(rpcbind.size(), 3u);
  }
  EXPECT_EQ(rpcbind.size(), 0u);
}

TEST(RpcbindRegistration, ReplacesWhatAKilledServerLeft) {
  FakeRpcbind rpcbind;
  rpcbind.put({100003, 3, "rdma", "192.0.2.7.1.1", ""});
  rpcbind.put({100003, 3, "tcp", "192.0.2.7.8.1", ""});
  {
    const RpcbindRegistration registration(ipv4(), {&kNfs3, 1}, rpcbind.config());
    EXPECT_EQ(rpcbind.getaddr(100003, 3, "rdma"), "192.0.2.7.78.81");
  }
  EXPECT_EQ(rpcbind.getaddr(100003, 3, "rdma"), "");
  EXPECT_EQ(rpcbind.getaddr(100003, 3, "tcp"), "192.0.2.7.8.1");
}

TEST(RpcbindRegistration, LeavesAnothersEntryAloneAndRegistersTheRest) {
  FakeRpcbind rpcbind;
  rpcbind.put({100003, 3, "rdma", "192.0.2.9.1.1", ""});
  rpcbind.protect();
  const RpcbindRegistration registration(ipv4(), kPrograms, rpcbind.config());
  ASSERT_EQ(registration.registered().size(), 1u);
  EXPECT_EQ(registration.registered()[0].version, 4u);
  EXPECT_EQ(rpcbind.getaddr(100003, 3, "rdma"), "192.0.2.9.1.1");
}

TEST(RpcbindRegistration, RemovesTheRestOfWhatSomebodyElseRemoved) {
  FakeRpcbind rpcbind;
  {
    const RpcbindRegistration registration(ipv4(), kPrograms, rpcbind.config());
    rpcbind.remove({100003, 3, "rdma", "", ""});
    EXPECT_EQ(rpcbind.size(), 1u);
  }
  EXPECT_EQ(rpcbind.size(), 0u);
}

TEST(RpcbindRegistration, AServerGoesOnWhereItIsRefused) {
  FakeRpcbind rpcbind;
  rpcrdma::ReplyHeader too_weak;
  too_weak.denied = true;
  too_weak.reject = rpcrdma::RejectStat::kAuthError;
  too_weak.auth = rpcrdma::AuthStat::kTooWeak;
  rpcbind.refuse(too_weak);
  const RpcbindRegistration registration(ipv4(), kPrograms, rpcbind.config());
  EXPECT_TRUE(registration.registered().empty());
}

TEST(RpcbindRegistration, AServerGoesOnWithoutRpcbind) {
  auto config = std::make_unique<FakeRpcbind>()->config();  // that is gone
  const RpcbindRegistration registration(ipv4(), kPrograms, config);
  EXPECT_TRUE(registration.registered().empty());
}

TEST(RpcbindRegistration, IsGivenUpWithTheServerButRemovedStill) {
  FakeRpcbind rpcbind;
  const int stop_fd = eventfd(0, EFD_CLOEXEC);
  auto config = rpcbind.config();
  config.stop_fd = stop_fd;
  {
    const RpcbindRegistration registration(ipv4(), kPrograms, config);
    EXPECT_EQ(rpcbind.size(), 2u);
    eventfd_write(stop_fd, 1);
    const RpcbindRegistration late(ipv6(), kPrograms, config);
    EXPECT_TRUE(late.registered().empty());
  }
  EXPECT_EQ(rpcbind.size(), 0u);
  close(stop_fd);
}

}  // namespace
}  // namespace weft::apps
