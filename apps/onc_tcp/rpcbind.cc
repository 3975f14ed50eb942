#include "apps/onc_tcp/rpcbind.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstring>
#include <utility>

#include "base/address.h"

namespace weft::onc_tcp {
namespace {

constexpr const char* kSocketPath = "/run/rpcbind.sock";

RpcbindPlace socket_place() {
  RpcbindPlace place;
  auto* un = reinterpret_cast<sockaddr_un*>(&place.addr);
  un->sun_family = AF_UNIX;
  std::strcpy(un->sun_path, kSocketPath);
  place.len = sizeof(sockaddr_un);
  return place;
}

RpcbindPlace loopback_place() {
  RpcbindPlace place;
  auto* in = reinterpret_cast<sockaddr_in*>(&place.addr);
  in->sin_family = AF_INET;
  in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  in->sin_port = htons(kRpcbindPort);
  place.len = sizeof(sockaddr_in);
  return place;
}

}  // namespace

void emit(rpcrdma::xdr::XdrWriter& out, const Rpcb& rpcb) {
  out.u32(rpcb.program);
  out.u32(rpcb.version);
  out.string(rpcb.netid);
  out.string(rpcb.address);
  out.string(rpcb.owner);
}

bool parse(rpcrdma::xdr::XdrReader& in, Rpcb& rpcb) {
  std::string_view netid, address, owner;
  if (!in.u32(rpcb.program) || !in.u32(rpcb.version)) return false;
  if (!in.string(netid) || !in.string(address) || !in.string(owner)) return false;
  rpcb.netid = netid;
  rpcb.address = address;
  rpcb.owner = owner;
  return true;
}

std::string universal_address(sockaddr_storage addr) {
  if (addr.ss_family == AF_INET6) reinterpret_cast<sockaddr_in6&>(addr).sin6_scope_id = 0;  // not in the text
  const std::uint16_t port = port_of(addr);
  return host_str(addr) + "." + std::to_string(port >> 8) + "." + std::to_string(port & 0xff);
}

std::vector<RpcbindPlace> local_rpcbind_places() {
  return {socket_place(), loopback_place()};
}

absl::StatusOr<Rpcbind> Rpcbind::connect(std::span<const RpcbindPlace> places, std::chrono::milliseconds timeout,
                                         int stop_fd) {
  absl::Status last = absl::UnavailableError("no place to look for it");
  for (const RpcbindPlace& place : places) {
    auto client = Client::connect(place.addr, place.len, timeout, stop_fd, Client::LocalPort::kReserved);
    if (client.ok()) return Rpcbind(std::move(*client), timeout);
    last = client.status();
    if (absl::IsCancelled(last)) break;
  }
  return last;
}

absl::StatusOr<bool> Rpcbind::call(RpcbindProc procedure, const Rpcb& rpcb) {
  std::vector<std::uint8_t> args;
  rpcrdma::xdr::XdrWriter out(args);
  emit(out, rpcb);
  const auto results = client_->call(
      {0, kRpcbindProgram, kRpcbindVersion, static_cast<std::uint32_t>(procedure), {}, {}}, args, timeout_);
  if (!results.ok()) return results.status();
  bool done = false;
  rpcrdma::xdr::XdrReader in(*results);
  if (!in.boolean(done)) return absl::UnavailableError("the answer does not decode");
  return done;
}

absl::Status Rpcbind::set(const Rpcb& rpcb) {
  const auto done = call(RpcbindProc::kSet, rpcb);
  if (!done.ok()) return done.status();
  return *done ? absl::OkStatus() : absl::AlreadyExistsError("another address is registered for it");
}

absl::Status Rpcbind::unset(const Rpcb& rpcb) {
  const auto done = call(RpcbindProc::kUnset, rpcb);
  if (!done.ok()) return done.status();
  return *done ? absl::OkStatus() : absl::NotFoundError("nothing is registered for it that can be removed");
}

}  // namespace weft::onc_tcp
