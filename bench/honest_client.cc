#include "bench/honest_client.h"

#include <poll.h>

#include <cstring>
#include <utility>

#include "apps/nfs3/mount.h"
#include "apps/onc_tcp/client.h"
#include "bench/idle.h"
#include "nfsulb/nfs3.h"

namespace weft::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nfs3::Proc;

constexpr std::uint32_t kReadLen = 1 << 20;

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

sockaddr_storage storage_of(const sockaddr_in& addr) {
  sockaddr_storage storage{};
  std::memcpy(&storage, &addr, sizeof addr);
  return storage;
}

void turn(rpcrdma::Client& client) {
  if (client.process(Clock::now()) != 0) return;
  pollfd fd{client.fd(), POLLIN, 0};
  poll(&fd, 1, 1);
}

// One line for each request that was not served; says why.
HonestClient::Millis not_served(const char* what, Clock::time_point start, std::string_view why) {
  std::fprintf(stderr, "exhaust: %s not served after %.0f ms: %.*s\n", what, since(start), int(why.size()), why.data());
  return {};
}

[[noreturn]] void no_server(const char* what) {
  std::fprintf(stderr, "exhaust: %s was not answered before the attack\n", what);
  std::exit(1);
}

}  // namespace

HonestClient::HonestClient(verbs::Device& device, const sockaddr_in& rdma, const sockaddr_in& mount)
    : device_(device), rdma_(storage_of(rdma)), mount_(storage_of(mount)), room_(kReadLen) {
  if (!mnt()) no_server("MNT");
  client_ = connect();
  const auto data = lookup(root_, "data");
  if (!data) no_server("LOOKUP");
  data_ = *data;
}

std::unique_ptr<rpcrdma::Client> HonestClient::connect() {
  rpcrdma::ClientConfig config;
  config.call_timeout = kPatience;
  config.connect_timeout = kPatience;
  config.reconnect.max_time = std::chrono::seconds(60);
  config.reserve_credit = true;
  return must(rpcrdma::Client::connect(device_, rdma_, config));
}

HonestClient::Millis HonestClient::call(rpcrdma::Client& client, Proc proc, const std::vector<std::uint8_t>& args,
                                        MutBytes room) {
  const auto start = Clock::now();
  rpcrdma::CallSpec spec;
  spec.program = nfs3::kProgram;
  spec.version = nfs3::kVersion;
  spec.procedure = static_cast<std::uint32_t>(proc);
  spec.binding = &nfsulb::nfs3_binding();
  spec.args = args;
  const rpcrdma::OpaqueAuth cred = rpcrdma::auth_sys_of_this_process();
  spec.cred = &cred;
  if (!room.empty()) spec.result_items = rpcrdma::ScatteredBytes(room);
  spec.max_results = spec.binding->max_results(spec.procedure, args, {});
  std::optional<bool> served;
  std::string why;
  while (client.state() != rpcrdma::Client::State::kReady) {
    if (client.state() == rpcrdma::Client::State::kClosed || Clock::now() - start > kPatience)
      return not_served("a connection", start, client.error());
    turn(client);
  }
  must(client.call(spec, [&](const rpcrdma::Reply& reply) {
    results_.assign(reply.results.begin(), reply.results.end());
    // A server that has no room says so, and the client asks again: it was not served.
    std::uint32_t status = 0;
    nfs3::XdrReader in(results_);
    why = reply.text;
    served = reply.status == rpcrdma::CallStatus::kSuccess && (proc == Proc::kNull || (in.u32(status) && status == 0));
  }));
  while (!served) turn(client);
  if (!*served) return not_served(nfs3::proc_info(spec.procedure)->name, start, why.empty() ? "its status" : why);
  return since(start);
}

template <typename Args>
HonestClient::Millis HonestClient::call(Proc proc, const Args& args, MutBytes room) {
  std::vector<std::uint8_t> octets;
  nfs3::XdrWriter out(octets);
  emit(out, args);
  if (client_->state() == rpcrdma::Client::State::kClosed) client_ = connect();
  return call(*client_, proc, octets, room);
}

HonestClient::Millis HonestClient::null() {
  return call(Proc::kNull, nfs3::VoidArgs{});
}
HonestClient::Millis HonestClient::getattr() {
  return call(Proc::kGetattr, nfs3::FhArgs{data_});
}
HonestClient::Millis HonestClient::read() {
  return call(Proc::kRead, nfs3::ReadArgs{data_, 0, kReadLen}, room_);
}
HonestClient::Millis HonestClient::create() {
  nfs3::CreateArgs args;
  args.where = {root_, "honest-" + std::to_string(num_created_++ % 16)};
  return call(Proc::kCreate, args);
}

HonestClient::Millis HonestClient::mnt() {
  const auto start = Clock::now();
  auto client = onc_tcp::Client::connect(mount_, sizeof(sockaddr_in), kPatience);
  if (!client.ok()) return not_served("MNT", start, std::string(client.status().message()));
  rpcrdma::CallHeader header;
  header.program = nfs3::kMountProgram;
  header.version = nfs3::kMountVersion;
  header.procedure = static_cast<std::uint32_t>(nfs3::MountProc::kMnt);
  std::vector<std::uint8_t> args;
  nfs3::XdrWriter out(args);
  emit(out, nfs3::DirpathArgs{"/"});
  const auto results = (*client)->call(header, args, kPatience);
  if (!results.ok()) return not_served("MNT", start, std::string(results.status().message()));
  nfs3::MntRes res;
  nfs3::XdrReader in(*results);
  if (!parse(in, res) || res.fhs_status != nfs3::Mountstat3::kOk) return {};
  root_ = res.fhandle;
  return since(start);
}

template <typename Args>
HonestClient::Millis HonestClient::newcomer(Proc proc, const Args& args, MutBytes room) {
  const auto start = Clock::now();
  const auto client = connect();
  std::vector<std::uint8_t> octets;
  nfs3::XdrWriter out(octets);
  emit(out, args);
  if (!call(*client, proc, octets, room)) return {};
  return since(start);
}

HonestClient::Millis HonestClient::newcomers_getattr() {
  return newcomer(Proc::kGetattr, nfs3::FhArgs{data_});
}
HonestClient::Millis HonestClient::newcomers_read() {
  return newcomer(Proc::kRead, nfs3::ReadArgs{data_, 0, kReadLen}, room_);
}

std::optional<nfs3::NfsFh3> HonestClient::lookup(const nfs3::NfsFh3& dir, const std::string& name) {
  if (!call(Proc::kLookup, nfs3::DiropArgs{{dir, name}})) return {};
  nfs3::LookupRes res;
  nfs3::XdrReader in(results_);
  if (!parse(in, res)) return {};
  return res.object;
}

std::vector<nfs3::NfsFh3> HonestClient::files_of(const nfs3::NfsFh3& dir, std::size_t most) {
  std::vector<nfs3::NfsFh3> files;
  nfs3::ReaddirplusArgs args{.dir = dir, .dircount = 65536, .maxcount = 65536};
  for (nfs3::ReaddirplusRes res; files.size() < most && !res.eof;) {
    if (!call(Proc::kReaddirplus, args)) no_server("READDIRPLUS");
    nfs3::XdrReader in(results_);
    if (!parse(in, res)) no_server("READDIRPLUS");
    for (const nfs3::Entryplus3& entry : res.entries) {
      args.cookie = entry.cookie;
      if (entry.name[0] != '.' && entry.name_handle && files.size() < most) files.push_back(*entry.name_handle);
    }
    args.cookieverf = res.cookieverf;
  }
  return files;
}

}  // namespace weft::bench
