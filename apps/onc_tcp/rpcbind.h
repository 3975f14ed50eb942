#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/onc_tcp/client.h"
#include "rpcrdma/xdr/xdr.h"

// rpcbind (RFC 1833 section 2): the part that lets clients find a server by its program.
namespace weft::onc_tcp {

inline constexpr std::uint32_t kRpcbindProgram = 100000;
inline constexpr std::uint32_t kRpcbindVersion = 4;
inline constexpr std::uint16_t kRpcbindPort = 111;

// RpcbindProc: some procedures of version 4.
enum class RpcbindProc : std::uint32_t { kSet = 1, kUnset = 2, kGetaddr = 3 };

// Rpcb: rpcb of RFC 1833 section 2.1.
struct Rpcb {
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::string netid;
  std::string address;  // universal
  std::string owner;
  friend bool operator==(const Rpcb&, const Rpcb&) = default;
};

void emit(rpcrdma::xdr::XdrWriter& out, const Rpcb& rpcb);
[[nodiscard]] bool parse(rpcrdma::xdr::XdrReader& in, Rpcb& rpcb);

// universal_address gives the universal address of an IPv4 or IPv6 endpoint (RFC 5665 sections 5.2.3.3 and 5.2.3.4):
// "192.0.2.7.78.81".
std::string universal_address(sockaddr_storage addr);

// RpcbindPlace is an address of rpcbind; len: octets of addr.
struct RpcbindPlace {
  sockaddr_storage addr{};
  socklen_t len = 0;
};

// The addresses where the rpcbind of this host takes registrations: its local socket, and loopback, where it requires a
// port below 1024.
std::vector<RpcbindPlace> local_rpcbind_places();

// Rpcbind registers programs with one rpcbind. It blocks like Client. One thread uses it.
class Rpcbind {
 public:
  // Connects to the first place that answers. stop_fd is as in Client.
  static absl::StatusOr<Rpcbind> connect(std::span<const RpcbindPlace> places, std::chrono::milliseconds timeout,
                                         int stop_fd = -1);

  // Returns kAlreadyExists if rpcbind refuses: program, version and netid already have another address, or belong to
  // another user.
  absl::Status set(const Rpcb& rpcb);
  // Removes the registration of program, version and netid. Returns kNotFound if no registration can be removed.
  absl::Status unset(const Rpcb& rpcb);

 private:
  Rpcbind(std::unique_ptr<Client> client, std::chrono::milliseconds timeout)
      : client_(std::move(client)), timeout_(timeout) {}
  absl::StatusOr<bool> call(RpcbindProc procedure, const Rpcb& rpcb);

  std::unique_ptr<Client> client_;
  std::chrono::milliseconds timeout_;
};

}  // namespace weft::onc_tcp
