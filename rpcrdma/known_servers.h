#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/time.h"
#include "rpcrdma/policies.h"

namespace weft::rpcrdma {

// KnownServers remembers by address and port which version of RPC-over-RDMA a server spoke, for a time. The next client
// that speaks the same versions asks for this one first. A client forgets it where it was wrong. The clients of a
// process share one object (ClientConfig::known_servers). Any thread.
class KnownServers {
 public:
  struct Config {
    std::chrono::milliseconds lifetime = std::chrono::minutes(10);
    std::chrono::milliseconds short_lifetime = std::chrono::minutes(1);  // of what silence taught
    std::size_t max_servers = 1024;  // the one whose time is over first gives way to a new one
  };

  explicit KnownServers(const Config& config);
  KnownServers() : KnownServers(Config{}) {}
  ~KnownServers();

  // The one of a process. It lasts as long as the process.
  static KnownServers& of_process();

  // own: what the client speaks, best first. Empty: nothing is known.
  std::optional<Protocol> find(const sockaddr_storage& server, std::span<const Protocol> own, TimePoint now) const;
  // spoken: a protocol of `own`. An entry that holds `spoken` already keeps its end, however often it is used: the
  // server may have learnt a better version. kBySilence: the server did not answer the other versions, perhaps for
  // another reason.
  enum class Learnt : std::uint8_t { kByAnswer, kBySilence };
  void learn(const sockaddr_storage& server, std::span<const Protocol> own, Protocol spoken, TimePoint now,
             Learnt how = Learnt::kByAnswer);
  void forget(const sockaddr_storage& server, std::span<const Protocol> own);
  // Servers that are remembered, also those whose time is over.
  std::size_t size() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::rpcrdma
