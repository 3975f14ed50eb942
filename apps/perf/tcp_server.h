#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/common/places.h"
#include "apps/common/setup.h"
#include "apps/perf/message.h"
#include "apps/perf/socket.h"
#include "rpcrdma/event_log.h"

namespace weft::apps::perf {

struct TcpServerConfig {
  std::string congestion_control;
  std::string file;                           // the file that tcp-file-read serves; empty for none
  std::string sink;                           // the file that tcp-file-write writes; empty for none
  std::optional<ProgressMode> progress;       // nothing: the client chooses, but never without a bound
  std::chrono::milliseconds patience{30000};  // with a client that neither sends nor takes
  // After the process ran out of descriptors, until the next accept: long enough for one to come back.
  std::chrono::milliseconds accept_pause{100};
};

// TcpServer is the listener's side of the TCP baselines: one thread for accept, and one for each connection (at most
// kPlaces). Its destructor ends all connections.
class TcpServer {
 public:
  static constexpr PlaceLimits kPlaces{.all = 16, .per_group = 12};

  static absl::StatusOr<std::unique_ptr<TcpServer>> start(const sockaddr_storage& addr, TcpServerConfig config);
  ~TcpServer();
  TcpServer(const TcpServer&) = delete;
  TcpServer& operator=(const TcpServer&) = delete;

  sockaddr_storage local_addr() const { return local_addr_; }

 private:
  struct Session {
    Fd fd;
    std::string name;   // the client's address
    std::string group;  // peer_group of the client
    PeerPlace peer = PeerPlace::kThisMachine;
    std::thread thread;
    std::atomic<bool> over{false};
  };

  explicit TcpServer(TcpServerConfig config) : config_(std::move(config)) {}
  void accept_loop();
  void reap();
  // Makes a place for a client of this group. Returns the reason if there is none, or an empty text.
  std::string make_place(const std::string& group);
  void serve(const Session& session) const;
  Ready prepare(const Hello& hello, Fd& file) const;

  TcpServerConfig config_;
  rpcrdma::EventLog log_{program_log(), "perf: TCP client"};  // the acceptor's
  Fd listener_;
  sockaddr_storage local_addr_{};
  std::atomic<bool> stopping_{false};
  std::thread acceptor_;
  std::vector<std::unique_ptr<Session>> sessions_;  // the acceptor's, until it has ended
};

// The octets after which tcp-file-write writes its file from the start again.
inline constexpr std::uint64_t kSinkLen = std::uint64_t{1} << 30;
// Messages of tcp-batch under way without an answer: this many times the depth.
inline constexpr std::uint32_t kBatchWindow = 4;
// Octets of tcp-batch's answer: a 64-bit count of messages.
inline constexpr std::size_t kBatchAckLen = 8;

}  // namespace weft::apps::perf
