#include "tests/gateway/world.h"

#include <numeric>

#include "nfsulb/programs.h"
#include "rpcrdma/rpc_message.h"
#include "rpcrdma/xdr/xdr.h"
#include "verbs-shim/api/testing/post_tap.h"
#include "verbs-shim/soft/device.h"

namespace weft::gateway::testing {
namespace {

using rpcrdma::xdr::XdrWriter;

constexpr std::uint8_t kHandle[] = {1, 2, 3, 4, 5, 6, 7, 8};
constexpr std::uint32_t kNoAttributes = 0;

struct Owned : onc_tcp::OutRecord {
  explicit Owned(Octets the_octets) : octets(std::move(the_octets)) { parts.push_back(octets); }
  Octets octets;
};

}  // namespace

Octets counted(std::size_t len) {
  Octets octets(len);
  std::iota(octets.begin(), octets.end(), std::uint8_t{1});
  return octets;
}

Octets read_args(std::uint32_t count) {
  Octets out;
  XdrWriter writer(out);
  writer.opaque(kHandle);
  writer.u64(0);
  writer.u32(count);
  return out;
}

Octets readdirplus_args(std::uint32_t maxcount) {
  Octets out;
  XdrWriter writer(out);
  writer.opaque(kHandle);
  writer.u64(0);  // cookie
  writer.u64(0);  // cookieverf
  writer.u32(maxcount);
  writer.u32(maxcount);
  return out;
}

Octets read_results(const Octets& data) {
  Octets out;
  XdrWriter writer(out);
  writer.u32(0);
  writer.u32(kNoAttributes);
  writer.u32(static_cast<std::uint32_t>(data.size()));
  writer.u32(1);  // eof
  writer.opaque(data);
  return out;
}

Octets write_args(const Octets& data, bool reduced) {
  Octets out;
  XdrWriter writer(out);
  writer.opaque(kHandle);
  writer.u64(0);
  writer.u32(static_cast<std::uint32_t>(data.size()));
  writer.u32(0);  // UNSTABLE
  if (reduced) {
    writer.u32(static_cast<std::uint32_t>(data.size()));
  } else {
    writer.opaque(data);
  }
  return out;
}

Octets write_results(std::uint32_t count) {
  Octets out;
  XdrWriter writer(out);
  writer.u32(0);
  writer.u32(kNoAttributes);
  writer.u32(kNoAttributes);
  writer.u32(count);
  writer.u32(0);
  writer.u64(0x77);
  return out;
}

Octets call_message(std::uint32_t xid, std::uint32_t program, std::uint32_t version, std::uint32_t procedure,
                    const Octets& args, std::optional<rpcrdma::OpaqueAuth> cred) {
  rpcrdma::CallHeader header;
  header.xid = xid;
  header.program = program;
  header.version = version;
  header.procedure = procedure;
  header.cred = cred.value_or(
      rpcrdma::emit_auth_sys({.stamp = 1, .machine_name = "client", .uid = 1000, .gid = 100, .gids = {100}}));
  Octets out;
  XdrWriter writer(out);
  rpcrdma::emit_call(writer, header);
  writer.raw(args);
  return out;
}

Octets reply_message(std::uint32_t xid, const Octets& results) {
  rpcrdma::ReplyHeader header;
  header.xid = xid;
  Octets out;
  XdrWriter writer(out);
  rpcrdma::emit_reply(writer, header);
  writer.raw(results);
  return out;
}

TcpEnd::TcpEnd(boost::asio::ip::tcp::socket socket, rpcrdma::BufferPool& pool)
    : stream(std::make_shared<onc_tcp::Stream>(std::move(socket), pool,
                                               onc_tcp::StreamConfig{.record = {.max_record = 4 << 20}})) {
  stream->start({.on_record =
                     [this](onc_tcp::Record record) {
                       records.emplace_back(record.octets().begin(), record.octets().end());
                       if (on_record) on_record(*this, records.back());
                     },
                 .on_end = [this](const std::string& why) { ended = why; }});
}

TcpEnd::~TcpEnd() {
  stream->close("");
}

void TcpEnd::send(const Octets& message) {
  stream->send(std::make_unique<Owned>(message));
}

World::World()
    : tcp_pd(std::move(tcp_device->alloc_pd().value())),
      tcp_pool(std::make_unique<rpcrdma::BufferPool>(*tcp_pd, 4 << 20, 64 << 20)) {}

World::~World() {
  io.restart();
  io.poll();
}

std::unique_ptr<verbs::Device> World::open_device() {
  return verbs::testing::tapped(std::move(verbs::open_soft_device({}).value()));
}

bool World::run(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    settle();
  }
  return true;
}

void World::settle() {
  for (int quiet = 0; quiet < 3; ++quiet) {
    std::size_t moved = 0;
    for (const auto& process : engines) moved += process(std::chrono::steady_clock::now());
    io.restart();
    moved += io.poll();
    if (moved > 0) quiet = 0;
  }
}

}  // namespace weft::gateway::testing
