// `weft serve` sees a gateway as one address. Hostile clients of the gateway fill all its places and keep Calls under
// way. A client of the gateway, and one that reaches the server directly, are served within a second all the same.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/gateway/to_rdma.h"
#include "tests/exhaust/from.h"
#include "tests/exhaust/siege.h"
#include "tests/gateway/world.h"
#include "tests/serve/serve_world.h"

namespace weft::exhaust {
namespace {

using namespace std::chrono_literals;
using boost::asio::ip::tcp;
using gateway::testing::TcpEnd;
using nfs3::Proc;

constexpr std::size_t kPlaces = 40;  // of the gateway; the server has a few more
constexpr std::uint32_t kMib = 1 << 20;
constexpr auto kMost = 1s;

template <typename Args>
Octets nfs_call(std::uint32_t xid, Proc proc, const Args& args) {
  Octets octets;
  rpcrdma::xdr::XdrWriter out(octets);
  emit(out, args);
  return gateway::testing::call_message(xid, nfs3::kProgram, nfs3::kVersion, static_cast<std::uint32_t>(proc), octets,
                                        rpcrdma::auth_sys_of_this_process());
}

class ServeBehindGateway : public serve::testing::ServeWorld, public ::testing::WithParamInterface<std::size_t> {
 protected:
  ServeBehindGateway() {
    config.rpc.max_connections = kPlaces + 8;
    config.rpc.max_buffered = 16 << 20;
    // On all addresses, so that the gateway can come over IPv6: it and the direct client are two addresses.
    auto& any = reinterpret_cast<sockaddr_in6&>(config.listen);
    any = {};
    any.sin6_family = AF_INET6;
    std::ofstream(dir + "/data") << std::string(kMib, 'w');
    std::filesystem::create_directory(dir + "/many");
    for (int i = 0; i < 300; ++i) std::ofstream(dir + "/many/file-" + std::to_string(i)) << "exhaust\n";
  }
  ~ServeBehindGateway() override {
    siege_.end();
    clients_.clear();
    gateway_.reset();
  }

  void SetUp() override {
    start();
    gateway::ToRdmaConfig to;
    to.listen = tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0);
    to.server = server_at(AF_INET6);
    to.max_connections = to.max_connections_per_address = kPlaces;
    gateway_device_ = std::move(verbs::open_soft_device({}).value());
    auto made = gateway::ToRdma::start(to, *gateway_device_, io_);
    ASSERT_TRUE(made.ok()) << made.status();
    gateway_ = std::move(*made);
    tcp_pd_ = std::move(*gateway_device_->alloc_pd());
    tcp_pool_ = std::make_unique<rpcrdma::BufferPool>(*tcp_pd_, std::size_t{16} << 20, std::size_t{64} << 20);

    root_ = mount(dir);
    direct_ = connect_directly();
    data_ = lookup(*direct_, root_, "data");
    many_ = lookup(*direct_, root_, "many");
  }

  sockaddr_storage server_at(sa_family_t family) const {
    sockaddr_storage at = app->rdma_addr();
    const in_port_t port = reinterpret_cast<const sockaddr_in6&>(at).sin6_port;
    at = {};
    at.ss_family = family;
    if (family == AF_INET) {
      reinterpret_cast<sockaddr_in&>(at).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      reinterpret_cast<sockaddr_in&>(at).sin_port = port;
    } else {
      reinterpret_cast<sockaddr_in6&>(at).sin6_addr = in6addr_loopback;
      reinterpret_cast<sockaddr_in6&>(at).sin6_port = port;
    }
    return at;
  }
  // As NFS clients do, this one connects again and sends its Calls again.
  std::unique_ptr<Peer> connect_directly() {
    rpcrdma::ClientConfig patient;
    patient.call_timeout = patient.connect_timeout = 10s;
    patient.reconnect.max_time = 60s;
    patient.reserve_credit = true;
    auto peer = std::make_unique<Peer>();
    peer->device = std::move(verbs::open_soft_device({}).value());
    peer->client = std::move(rpcrdma::Client::connect(*peer->device, server_at(AF_INET), patient).value());
    peers.push_back(peer.get());
    run_until([&] { return peer->client->state() == rpcrdma::Client::State::kReady; });
    return peer;
  }

  void turn() override {
    std::size_t moved = turn_at(siege_.now());
    moved += gateway_ ? gateway_->process(siege_.now()) : 0;
    io_.restart();
    moved += io_.poll();
    siege_.turn(moved, app->num_tasks() != 0);
  }
  void begin(const Attack& attack) {
    siege_.begin(attack, loopback_at(gateway_->local_endpoint().port()), {"127.0.2.1", "127.0.2.2"});
    for (int i = 0; i < 150; ++i) turn();
    ASSERT_GT(siege_.done().ready, 0u) << "the attack has not begun";
  }
  // The attackers are TCP clients of the gateway. In the first attack they rest after an answer. In the second they
  // send Calls that cost disk time. In the third they read no Reply.
  std::vector<Attack> attacks() const {
    const auto null = [](std::uint32_t xid) { return nfs_call(xid, Proc::kNull, nfs3::VoidArgs{}); };
    const auto list = [this](std::uint32_t xid) {
      return nfs_call(xid, Proc::kReaddirplus,
                      nfs3::ReaddirplusArgs{.dir = many_, .dircount = 65536, .maxcount = 65536});
    };
    const auto read = [this](std::uint32_t xid) {
      return nfs_call(xid, Proc::kRead, nfs3::ReadArgs{.file = data_, .offset = 0, .count = kMib});
    };
    using enum Attack::Over;
    using enum Attack::Pace;
    return {
        {.name = "rest", .connections = kPlaces + 20, .over = kRecords, .depth = 1, .message = null},
        {.name = "list", .connections = kPlaces, .over = kRecords, .pace = kAgain, .depth = 8, .message = list},
        {.name = "deaf", .connections = kPlaces - 4, .over = kRecords, .depth = 40, .message = read, .is_deaf = true}};
  }

  template <typename F>
  void within_a_second(const char* what, F request) {
    const TimePoint start = siege_.now();
    request();
    EXPECT_LE(siege_.now() - start, kMost) << what;
  }
  // A client of the gateway that connects again, and sends its Call again, until it is answered.
  void ask_gateway(const Octets& message, std::size_t least_results = 4) {
    for (int tries = 0;; ++tries) {
      ASSERT_LT(tries, 100) << "the gateway ends each connection";
      if (through_ == nullptr || through_->ended) {
        tcp::socket socket(io_, tcp::v4());
        socket.connect(gateway_->local_endpoint());
        clients_.push_back(std::make_unique<TcpEnd>(std::move(socket), *tcp_pool_));
        through_ = clients_.back().get();
      }
      TcpEnd& client = *through_;
      const std::size_t before = client.records.size();
      client.send(message);
      run_until([&] { return client.records.size() > before || client.ended; });
      if (HasFatalFailure()) return;
      if (client.records.size() == before) continue;
      const Octets& reply = client.records.back();
      constexpr std::size_t kHeader = 24;  // of an accepted Reply with an empty verifier (RFC 5531 section 9)
      ASSERT_GE(reply.size(), kHeader + least_results);
      EXPECT_TRUE(std::equal(reply.begin(), reply.begin() + 4, message.begin())) << "the XID";
      constexpr Octets::value_type kOk[8] = {};  // SUCCESS and NFS3_OK
      EXPECT_TRUE(std::equal(std::begin(kOk), std::end(kOk), reply.begin() + kHeader - 4)) << "it failed";
      return;
    }
  }
  void ask_directly(Proc proc, std::uint32_t round) {
    run_until([&] { return direct_->client->state() == rpcrdma::Client::State::kReady; });
    if (proc == Proc::kGetattr) {
      const auto res = call<nfs3::GetattrRes>(*direct_, proc, nfs3::FhArgs{root_});
      EXPECT_EQ(res.status, nfs3::Nfsstat3::kOk);
    } else if (proc == Proc::kRead) {
      std::vector<std::uint8_t> into(kMib);
      EXPECT_EQ(read(*direct_, data_, 0, into).status, nfs3::Nfsstat3::kOk);
    } else {
      nfs3::CreateArgs args;
      args.where = {root_, "direct-" + std::to_string(round)};
      EXPECT_EQ(call<nfs3::NewObjectRes>(*direct_, proc, args).status, nfs3::Nfsstat3::kOk);
    }
  }

  boost::asio::io_context io_{1};
  std::unique_ptr<verbs::Device> gateway_device_;
  std::unique_ptr<verbs::Pd> tcp_pd_;
  std::unique_ptr<rpcrdma::BufferPool> tcp_pool_;
  std::unique_ptr<gateway::ToRdma> gateway_;
  std::vector<std::unique_ptr<TcpEnd>> clients_;
  TcpEnd* through_ = nullptr;
  std::unique_ptr<Peer> direct_;
  nfs3::NfsFh3 root_, data_, many_;
  Siege siege_;
};

TEST_P(ServeBehindGateway, ClientsOfTheGatewayAndOthersAreServed) {
  begin(attacks()[GetParam()]);
  for (std::uint32_t round = 0; round < 3 && !HasFailure(); ++round) {
    const std::uint32_t xid = 1000 + 10 * round;
    for (const Proc proc : {Proc::kGetattr, Proc::kRead, Proc::kCreate})
      within_a_second("directly", [&] { ask_directly(proc, round); });
    within_a_second("GETATTR", [&] { ask_gateway(nfs_call(xid, Proc::kGetattr, nfs3::FhArgs{root_})); });
    within_a_second("READ of 1 MiB", [&] {
      ask_gateway(nfs_call(xid + 1, Proc::kRead, nfs3::ReadArgs{.file = data_, .offset = 0, .count = kMib}), kMib);
    });
    nfs3::CreateArgs args;
    args.where = {root_, "through-" + std::to_string(round)};
    within_a_second("CREATE", [&] { ask_gateway(nfs_call(xid + 2, Proc::kCreate, args)); });
    through_ = nullptr;  // the next round is a newcomer's
  }
}

INSTANTIATE_TEST_SUITE_P(Attacks, ServeBehindGateway, ::testing::Values(0, 1, 2));

}  // namespace
}  // namespace weft::exhaust
