#pragma once

#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/common/allow_list.h"
#include "apps/metrics/snapshot.h"
#include "apps/onc_tcp/stream.h"
#include "base/ledger.h"
#include "base/time.h"
#include "rpcrdma/server.h"
#include "verbs-shim/api/log_budget.h"

namespace weft::gateway {

struct ToTcpConfig {
  sockaddr_storage listen{};
  boost::asio::ip::tcp::endpoint server;
  rpcrdma::ServerConfig rpc;
  onc_tcp::StreamConfig stream;
  // Bytes of Replies held for all clients together, and for the clients of one address (base/peer_group.h).
  std::size_t max_replies = 256 << 20;
  std::size_t max_replies_per_address = 64 << 20;
  // Calls that must not run twice are awaited for this time after their client was lost, and for this many lost
  // clients. Beyond them, the address with most lost clients gives up the one that was lost first.
  std::chrono::milliseconds answer_wait{30000};
  std::size_t max_lost = 256;
  // A client is disconnected if its TCP connection to the server is not established after this time. It then connects
  // and asks again.
  std::chrono::milliseconds connect_timeout{10000};
  // Connects from a port below 1024 if this process may bind one. The server then takes every client of the gateway for
  // a program of root.
  bool reserved_port = false;
  bool has_metrics = false;  // snapshot() has the Calls, which then cost a little more
  // The peers that the device refused by itself; null for none.
  std::shared_ptr<const apps::RefusedPeers> refused_by_device = {};
};

// ToTcp puts an RPC server that speaks TCP behind RPC-over-RDMA. Every RDMA connection has its own TCP connection, made
// with its first Call. So the properties of a connection (sessions, backchannels) stay valid. When one connection ends,
// ToTcp ends the other. There is one exception: a client may be lost while Calls run that must not run twice. Its TCP
// connection then stays until these Calls are answered. The client asks again over another connection and gets these
// answers (rpcrdma/README.md, "Calls that come again"). Calls and Replies pass through unchanged, XIDs, credentials and
// verifiers included. Only the items that the Upper-Layer Binding allows to be placed directly are taken out and put
// back.
//
// It runs in the thread of its io_context only.
class ToTcp : private rpcrdma::Service {
 public:
  // How often it looks for late servers.
  static constexpr std::chrono::milliseconds kCheckEvery{1000};

  // device and io outlive it.
  static absl::StatusOr<std::unique_ptr<ToTcp>> start(const ToTcpConfig& config, verbs::Device& device,
                                                      boost::asio::io_context& io);
  ~ToTcp() override;

  sockaddr_storage local_addr() const { return server_->local_addr(); }
  std::size_t process(TimePoint now);
  std::optional<TimePoint> next_timeout() const;
  int fd() const { return server_->fd(); }
  std::string summary() const;
  // All numbers at this moment.
  metrics::Snapshot snapshot() const;

 private:
  struct Call;
  struct CallRecord;
  struct Client;

  ToTcp(const ToTcpConfig& config, verbs::Device& device, boost::asio::io_context& io)
      : config_(config), device_(device), io_(io), lost_places_({.client = 1, .all = config.max_lost}) {}

  void on_call(rpcrdma::ServedCall served) override;
  void on_end(const rpcrdma::ConnectionEnd& end) override;

  std::shared_ptr<Client> client_of(const rpcrdma::ServedCall& served);
  boost::asio::awaitable<void> connect(std::shared_ptr<Client> client);
  void on_record(Client& client, onc_tcp::Record record);
  // False if the record is not a Reply that can be passed on.
  bool pass_reply(Client& client, onc_tcp::Record record);
  static void end(Client& client);
  void end_if_done(Client& client);
  // A lost client takes a place among them.
  void keep_lost(const std::shared_ptr<Client>& client);
  void give_up(Client& client, const std::string& why);
  void warn(const Client& client, const std::string& what);
  // Takes the client out of the lists of clients with pending answers or connections.
  void forget(const Client& client);
  // Looks for late servers.
  void check();
  void drop_late_connects();
  // Lets the Replies go on to which the Room gave memory.
  void look_for_room();

  ToTcpConfig config_;
  verbs::Device& device_;
  boost::asio::io_context& io_;
  metrics::CallMetrics calls_;
  std::vector<rpcrdma::ServedProgram> programs_;
  std::unique_ptr<onc_tcp::Room> room_;  // for Replies
  std::unique_ptr<rpcrdma::Server> server_;
  rpcrdma::BufferPool* replies_ = nullptr;                              // the server's
  std::unordered_map<std::uint32_t, std::shared_ptr<Client>> clients_;  // by ConnectionId
  Ledger lost_places_{{}};
  std::list<std::shared_ptr<Client>> lost_;        // with outstanding answers, the oldest first
  std::list<std::shared_ptr<Client>> connecting_;  // the oldest first
  verbs::LogBudget log_;
  TimePoint now_{}, next_check_{};
  std::vector<std::optional<rpcrdma::EligibleItem>> found_;
  std::uint64_t num_calls_ = 0, num_placed_ = 0, num_clients_ = 0;
};

}  // namespace weft::gateway
