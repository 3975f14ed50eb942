#include "tests/serve/serve_world.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <chrono>
#include <span>

#include "apps/onc_tcp/record.h"
#include "rpcrdma/rpc_message.h"
#include "rpcrdma/testing/protocol_under_test.h"
#include "verbs-shim/api/testing/post_tap.h"

namespace weft::serve::testing {
namespace {

sockaddr_storage loopback() {
  sockaddr_storage addr{};
  auto* in = reinterpret_cast<sockaddr_in*>(&addr);
  in->sin_family = AF_INET;
  in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return addr;
}

}  // namespace

std::vector<std::uint8_t> pattern(std::size_t len, unsigned salt) {
  std::vector<std::uint8_t> out(len);
  for (std::size_t i = 0; i < len; ++i) out[i] = static_cast<std::uint8_t>((i * 2654435761u + salt) >> 11);
  return out;
}

void Gate::set(bool shut) {
  std::lock_guard lock(mutex_);
  shut_ = shut;
  changed_.notify_all();
}

void Gate::pass() {
  std::unique_lock lock(mutex_);
  ++num_held_;
  changed_.wait(lock, [&] { return !shut_; });
  --num_held_;
}

int Gate::num_held() {
  std::lock_guard lock(mutex_);
  return num_held_;
}

ServeWorld::ServeWorld() : dir(temp / "export") {
  ::mkdir(dir.c_str(), 0755);
  config.tree.directory = dir;
  config.tree.state_dir = temp / "state";
  config.backend.read_write = true;
  config.backend.sync_metadata = false;
  config.listen = config.mount_listen = loopback();
  config.rpc = rpcrdma::testing::with_protocol(rpcrdma::ServerConfig{});
}

ServeWorld::~ServeWorld() {
  stop();
}

void ServeWorld::start() {
  auto opened = verbs::open_soft_device(soft);
  ASSERT_TRUE(opened.ok());
  device = verbs::testing::tapped(std::move(opened.value()));
  auto started = ServeApp::start(config, *device);
  ASSERT_TRUE(started.ok()) << started.status();
  app = std::move(*started);
}

void ServeWorld::stop() {
  app.reset();
  device.reset();
}

std::unique_ptr<ServeWorld::Peer> ServeWorld::connect(const rpcrdma::ClientConfig& config) {
  auto peer = std::make_unique<Peer>();
  peer->device = verbs::testing::tapped(std::move(verbs::open_soft_device({}).value()));
  auto client = rpcrdma::Client::connect(*peer->device, app->rdma_addr(), rpcrdma::testing::with_protocol(config));
  EXPECT_TRUE(client.ok());
  if (!client.ok()) return peer;
  peer->client = std::move(client.value());
  peers.push_back(peer.get());
  run_until([&] { return peer->client->state() != rpcrdma::Client::State::kConnecting; });
  EXPECT_EQ(peer->client->state(), rpcrdma::Client::State::kReady) << peer->client->error();
  return peer;
}

void ServeWorld::run_until(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!done()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "nothing came";
    turn();
  }
}

std::size_t ServeWorld::turn_at(TimePoint now) {
  std::size_t moved = 0;
  if (app) moved += app->turn(now);
  for (Peer* peer : peers)
    if (peer->client) moved += peer->client->process(now);
  return moved;
}

void ServeWorld::start_call(Peer& peer, nfs3::Proc procedure, ConstBytes args, Answer& answer,
                            std::optional<rpcrdma::ArgumentItem> item, MutBytes result_item,
                            std::optional<std::uint32_t> xid, std::optional<std::size_t> max_results) {
  static const rpcrdma::OpaqueAuth cred = rpcrdma::auth_sys_of_this_process();
  rpcrdma::CallSpec spec;
  spec.program = nfs3::kProgram;
  spec.version = nfs3::kVersion;
  spec.procedure = static_cast<std::uint32_t>(procedure);
  spec.cred = &cred;
  spec.xid = xid;
  spec.args = args;
  spec.binding = &nfsulb::nfs3_binding();
  std::span<const std::size_t> reduced;
  if (item) {
    spec.items = *item;
    reduced = std::span(&item->position, 1);
  }
  spec.result_items = result_item;
  spec.max_results =
      max_results.value_or(std::max<std::size_t>(spec.binding->max_results(spec.procedure, args, reduced), 512));
  auto status = peer.client->call(spec, [&answer](const rpcrdma::Reply& reply) {
    answer.status = reply.status;
    answer.results.assign(reply.results.begin(), reply.results.end());
    answer.item_len = reply.item_len;
    answer.done = true;
  });
  ASSERT_TRUE(status.ok()) << status.error().message;
}

nfs3::WriteRes ServeWorld::write(Peer& peer, const nfs3::NfsFh3& file, std::uint64_t offset, ConstBytes data,
                                 nfs3::StableHow stable) {
  nfs3::WriteArgs args;
  args.file = file;
  args.offset = offset;
  args.count = args.data.len = static_cast<std::uint32_t>(data.size());
  args.stable = stable;
  std::vector<std::uint8_t> octets;
  rpcrdma::xdr::XdrWriter writer(octets);
  nfs3::emit(writer, args, nfs3::ItemForm::kReduced);
  Answer answer;
  start_call(peer, nfs3::Proc::kWrite, octets, answer, rpcrdma::ArgumentItem{octets.size(), data});
  run_until([&] { return answer.done; });
  EXPECT_EQ(answer.status, rpcrdma::CallStatus::kSuccess) << rpcrdma::call_status_str(answer.status);
  nfs3::WriteRes res;
  rpcrdma::xdr::XdrReader reader(answer.results);
  EXPECT_TRUE(nfs3::parse(reader, res));
  return res;
}

nfs3::ReadRes ServeWorld::read(Peer& peer, const nfs3::NfsFh3& file, std::uint64_t offset,
                               std::vector<std::uint8_t>& into) {
  std::vector<std::uint8_t> octets;
  rpcrdma::xdr::XdrWriter writer(octets);
  nfs3::emit(writer, nfs3::ReadArgs{file, offset, static_cast<std::uint32_t>(into.size())});
  Answer answer;
  start_call(peer, nfs3::Proc::kRead, octets, answer, {}, into);
  run_until([&] { return answer.done; });
  EXPECT_EQ(answer.status, rpcrdma::CallStatus::kSuccess) << rpcrdma::call_status_str(answer.status);
  nfs3::ReadRes res;
  rpcrdma::xdr::XdrReader reader(answer.results);
  const auto form = answer.item_len ? nfs3::ItemForm::kReduced : nfs3::ItemForm::kInline;
  EXPECT_TRUE(nfs3::parse(reader, res, form));
  if (answer.item_len) {
    EXPECT_EQ(*answer.item_len, res.count);
  } else {
    std::copy(res.data.data.begin(), res.data.data.end(), into.begin());
  }
  into.resize(std::min<std::size_t>(into.size(), res.count));
  res.data.data = {};
  return res;
}

nfs3::NfsFh3 ServeWorld::lookup(Peer& peer, const nfs3::NfsFh3& at, const std::string& name) {
  auto res = call<nfs3::LookupRes>(peer, nfs3::Proc::kLookup, nfs3::DiropArgs{{at, name}});
  EXPECT_EQ(res.status, nfs3::Nfsstat3::kOk) << name;
  return res.object;
}

nfs3::NfsFh3 ServeWorld::mount(const std::string& path) {
  rpcrdma::CallHeader header;
  header.xid = 7;
  header.program = nfs3::kMountProgram;
  header.version = nfs3::kMountVersion;
  header.procedure = static_cast<std::uint32_t>(nfs3::MountProc::kMnt);
  header.cred = rpcrdma::auth_sys_of_this_process();
  std::vector<std::uint8_t> message, record;
  rpcrdma::xdr::XdrWriter writer(message);
  rpcrdma::emit_call(writer, header);
  nfs3::emit(writer, nfs3::DirpathArgs{path});
  onc_tcp::emit_record(message, record);

  const sockaddr_storage addr = app->mount_addr();
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&addr), sizeof(sockaddr_in)), 0);
  EXPECT_EQ(::send(fd.get(), record.data(), record.size(), MSG_NOSIGNAL), static_cast<ssize_t>(record.size()));
  onc_tcp::RecordReader records(65536);
  nfs3::MntRes res;
  for (;;) {
    std::uint8_t buffer[4096];
    ssize_t n = 0;
    run_until([&] { return (n = ::recv(fd.get(), buffer, sizeof buffer, MSG_DONTWAIT)) >= 0 || errno != EAGAIN; });
    EXPECT_GT(n, 0);
    if (n <= 0) return {};
    ConstBytes input(buffer, static_cast<std::size_t>(n));
    if (records.next(input) == onc_tcp::RecordReader::Outcome::kRecord) break;
  }
  rpcrdma::xdr::XdrReader reader(records.record());
  rpcrdma::ReplyHeader reply;
  EXPECT_TRUE(rpcrdma::parse_reply(reader, reply) && nfs3::parse(reader, res));
  EXPECT_EQ(res.fhs_status, nfs3::Mountstat3::kOk) << path;
  return res.fhandle;
}

}  // namespace weft::serve::testing
