#pragma once

#include <sys/socket.h>

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "apps/metrics/snapshot.h"
#include "apps/onc_tcp/stream.h"
#include "base/fair_line.h"
#include "base/ledger.h"
#include "base/time.h"
#include "rpcrdma/arrivals.h"
#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/client.h"
#include "rpcrdma/connection_order.h"
#include "verbs-shim/api/log_budget.h"

namespace weft::gateway {

struct ToRdmaConfig {
  boost::asio::ip::tcp::endpoint listen;
  sockaddr_storage server{};
  rpcrdma::ClientConfig rpc;
  onc_tcp::StreamConfig stream;
  // Bytes held for all clients together, half of them for Calls and half for Replies, of these an eighth for listings
  // of directories; and the part of them for the clients of one address (base/peer_group.h). At least kLeastBuffered,
  // and kLeastBufferedPerAddress.
  std::size_t max_buffered = 256 << 20;
  std::size_t max_buffered_per_address = 64 << 20;
  std::size_t max_item = 4 << 20;  // bytes of one result that is placed directly
  // Bytes of the rest of a Reply if the Call sets no smaller bound: more than a READDIR or READ_PLUS of 1 MiB.
  std::size_t max_reply = (1 << 20) + (64 << 10);
  std::size_t max_connections = 1024;
  std::size_t max_connections_per_address = 1024;
  std::size_t max_waiting = 256;  // as ServerConfig::max_waiting
  // How long a client without Calls keeps its connection to the server. The next Call makes another one.
  std::chrono::milliseconds rest{30000};
  std::chrono::milliseconds accept_pause{100};  // before the next accept after the process ran out of descriptors

  // The longest Call and the longest Reply find room in this while nothing else holds any.
  static constexpr std::size_t kLeastBuffered = 64 << 20, kLeastBufferedPerAddress = 32 << 20;
  // Decides by its address whether a client may connect. Other clients are closed at once. Empty: all may connect.
  std::function<bool(const sockaddr_storage& peer)> admits = {};
  bool has_metrics = false;  // snapshot() has the Calls, which then cost a little more
};

class Session;
struct SharedBySessions;

// ToRdma lets clients that speak RPC over TCP reach an RPC-over-RDMA server. Every TCP connection has its own RDMA
// connection, but for clients that rest. When one ends, ToRdma ends the other. Calls and Replies pass through
// unchanged, XIDs, credentials and verifiers included. The gateway answers a program without an Upper-Layer Binding
// with PROG_UNAVAIL.
//
// Clients share the memory by onc_tcp::Room. When a client has waited for room, the slow client that holds the most
// gives way, of the same address or of one that holds more. When all places for connections are taken, in total or for
// one address, one client gives way to the next one: it connects and asks again, as clients do that lost a connection.
// Arrivals bounds how often the clients of one address do this to each other.
// The ConnectionOrder chooses it: one that never had a Call answered, unless its first Call came in the last second; or
// one of the address that holds most. Of that address an idle one goes first, then one whose Calls under way may all
// run twice, and the one whose last answer is oldest.
//
// It runs in the thread of its io_context only.
class ToRdma {
 public:
  // How often it looks for clients that are late or slow; and while some wait for memory.
  static constexpr std::chrono::milliseconds kCheckEvery{200}, kCheckInCrowdEvery{50};
  // The end of an RDMA connection at rest is seen within this time, if no completion announces it: all clients are
  // looked at so often. A turn looks at kRestingPerTurn of them, so it costs the same with any number of clients.
  static constexpr std::chrono::milliseconds kLookEvery{1000};
  static constexpr std::size_t kRestingPerTurn = 16;
  // The records of clients that a process() takes at most, and those that one client has before the next one has its
  // turn.
  static constexpr std::size_t kRecordsPerProcess = 256, kRecordsPerTurn = 16;
  // The most clients at rest that leave the server in one check. Thousands may come to rest together, and to end all of
  // their connections at once would hold up the clients that work.
  static constexpr std::size_t kLeavingPerCheck = 64;
  // How often it gives memory back that was idle since the last time.
  static constexpr std::chrono::milliseconds kTrimEvery{1000};

  // device and io outlive it.
  static absl::StatusOr<std::unique_ptr<ToRdma>> start(const ToRdmaConfig& config, verbs::Device& device,
                                                       boost::asio::io_context& io);
  ~ToRdma();

  boost::asio::ip::tcp::endpoint local_endpoint() const;
  std::size_t process(TimePoint now);
  std::optional<TimePoint> next_timeout() const;
  int fd() const { return device_.fd(); }
  std::string summary() const;
  // Bytes of memory for records and results, in use and kept for the next ones.
  std::size_t registered() const { return buffers_->registered(); }
  // All numbers at this moment.
  metrics::Snapshot snapshot() const;

 private:
  ToRdma(const ToRdmaConfig& config, verbs::Device& device, boost::asio::io_context& io);
  static boost::asio::awaitable<void> accept_all(ToRdma& self,
                                                 std::shared_ptr<boost::asio::ip::tcp::acceptor> acceptor);
  // A client that connects.
  struct Newcomer {
    boost::asio::ip::tcp::socket socket;
    boost::asio::ip::tcp::endpoint peer;
    std::string address;  // peer_group
  };
  void take_in(boost::asio::ip::tcp::socket socket);
  bool has_to_wait(const std::string& address);
  void let_in_waiting();
  void let_in(Newcomer newcomer);
  bool make_place(const std::string& address);
  std::optional<std::uint32_t> gives_way(const std::string& newcomer);
  void see_changes();
  std::array<onc_tcp::Room*, 3> rooms() const { return {calls_.get(), replies_.get(), listings_.get()}; }
  void make_room(const onc_tcp::Room& room);
  // Whether some client waits for memory.
  bool is_crowded() const;
  void check();
  void forget_ended();
  void take_events();
  std::size_t take_records();
  std::size_t turn_of_busy();
  std::size_t turn_of_resting();

  ToRdmaConfig config_;
  verbs::Device& device_;
  std::shared_ptr<boost::asio::ip::tcp::acceptor> acceptor_;  // shared with accept_all, which may outlive this object
  std::unique_ptr<verbs::CompChannel> events_;
  std::unique_ptr<verbs::Pd> pd_;
  std::unique_ptr<rpcrdma::BufferPool> buffers_;
  std::unique_ptr<onc_tcp::Room> calls_, replies_, listings_;
  FairLine<Session*> turns_;  // of clients whose records have come
  metrics::CallMetrics metrics_;
  rpcrdma::ServerStatistics sums_;  // without the clients that are there
  std::unique_ptr<SharedBySessions> shared_;
  verbs::LogBudget log_;
  TimePoint now_{}, next_check_{}, next_look_{}, next_trim_{};
  using Sessions = std::list<std::unique_ptr<Session>>;
  struct Place {
    Sessions::iterator at;
    rpcrdma::ConnectionOrder::Seen seen;  // as order_ has it
  };
  Ledger places_{{}};
  rpcrdma::Arrivals<Newcomer> arrivals_;
  rpcrdma::ConnectionId last_id_{};  // wraps; no two clients that are there have one number
  // A client that says nothing has no claim to its place.
  rpcrdma::ConnectionOrder order_{TimePoint::duration::zero()};
  Sessions sessions_;
  std::unordered_map<std::uint32_t, Place> by_id_;  // sessions_ by their numbers
  Sessions::iterator next_resting_ = sessions_.end();
  std::size_t num_unseen_ = 0;                    // sessions that are still to be looked at
  std::uint64_t num_calls_ = 0, num_placed_ = 0;  // of ended sessions
};

}  // namespace weft::gateway
