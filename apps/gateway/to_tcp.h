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
#include "apps/onc_tcp/stream.h"
#include "rpcrdma/server.h"
#include "verbs-shim/api/log_budget.h"

namespace weft::gateway {

struct ToTcpConfig {
  sockaddr_storage listen{};
  boost::asio::ip::tcp::endpoint server;
  rpcrdma::ServerConfig rpc;
  onc_tcp::StreamConfig stream;
  // Bytes of Replies held for all clients together, and for those of one address (rpcrdma/peer_group.h).
  std::size_t max_replies = 256 << 20;
  std::size_t max_replies_per_address = 64 << 20;
  // Calls that must not run twice are awaited so long after their client was lost, and of so many lost clients.
  std::chrono::milliseconds answer_wait{30000};
  std::size_t max_lost = 64;
  // A client whose TCP connection to the server is not there after so long is disconnected; it connects and asks again.
  std::chrono::milliseconds connect_timeout{10000};
  // Connects from a port below 1024, where this process may bind one. The server then takes every client of the gateway
  // for a program of root's.
  bool reserved_port = false;
};

// ToTcp puts an RPC server that speaks TCP behind RPC-over-RDMA. Every RDMA connection has a TCP connection of its own,
// made with its first Call, so that what belongs to a connection (sessions, backchannels) holds; where one ends the
// other is ended. But a client that is lost while Calls of its run that must not run twice keeps its TCP connection
// until they are answered: it will ask again, over another connection, and get these answers (rpcrdma/README.md, "Calls
// that come again"). Calls and Replies go through as they are, XIDs, credentials and verifiers included; only what the
// Upper-Layer Binding allows to be placed directly is taken out of them and put back.
//
// One thread, that of its io_context.
class ToTcp : private rpcrdma::Service {
 public:
  // How often it looks for servers that are late.
  static constexpr std::chrono::milliseconds kCheckEvery{1000};

  // device and io outlive it.
  static absl::StatusOr<std::unique_ptr<ToTcp>> start(const ToTcpConfig& config, verbs::Device& device,
                                                      boost::asio::io_context& io);
  ~ToTcp() override;

  sockaddr_storage local_addr() const { return server_->local_addr(); }
  std::size_t process(verbs::TimePoint now);
  std::optional<verbs::TimePoint> next_timeout() const;
  int fd() const { return server_->fd(); }
  std::string summary() const;

 private:
  struct Call;
  struct CallRecord;
  struct Client;

  ToTcp(const ToTcpConfig& config, boost::asio::io_context& io) : config_(config), io_(io) {}

  void on_call(rpcrdma::ServedCall served) override;
  void on_end(const rpcrdma::ConnectionEnd& end) override;

  std::shared_ptr<Client> client_of(const rpcrdma::ServedCall& served);
  boost::asio::awaitable<void> connect(std::shared_ptr<Client> client);
  void on_record(Client& client, onc_tcp::Record record);
  // False where the record is no Reply that can be passed on.
  bool pass_reply(Client& client, onc_tcp::Record record);
  static void end(Client& client);
  void end_if_done(Client& client);
  void give_up(Client& client, const std::string& why);
  // Takes the client out of the lists of those that something is awaited of.
  void forget(const Client& client);
  // Looks for servers that are late.
  void check();
  void drop_late_connects();

  ToTcpConfig config_;
  boost::asio::io_context& io_;
  std::vector<rpcrdma::Program> programs_;
  std::unique_ptr<onc_tcp::Room> room_;  // of Replies
  std::unique_ptr<rpcrdma::Server> server_;
  rpcrdma::BufferPool* replies_ = nullptr;                              // the server's
  std::unordered_map<std::uint32_t, std::shared_ptr<Client>> clients_;  // by ConnectionId
  std::list<std::shared_ptr<Client>> lost_;                             // that have answers to come, the oldest first
  std::list<std::shared_ptr<Client>> connecting_;                       // the oldest first
  verbs::LogBudget log_;
  verbs::TimePoint now_{}, next_check_{};
  std::vector<std::optional<rpcrdma::EligibleItem>> found_;
  std::uint64_t num_calls_ = 0, num_placed_ = 0, num_clients_ = 0;
};

}  // namespace weft::gateway
