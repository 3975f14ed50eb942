#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/loopback_listener.h"

namespace weft::testing {

// MeddlingProxy stands between two programs that speak iWARP, on 127.0.0.1, with a thread of its own. It passes MPA's
// frames on, then speaks to one of them in the name of the other, and never closes that end's TCP connection while it
// lives. It throws later octets away.
class MeddlingProxy {
 public:
  enum class To : std::uint8_t {
    kClient,  // a Terminate, in answer to the client's first octets of Full Operation; TCP stays
    kServer,  // a Terminate, as the client's first FPDU; the client's connection is closed
    kReply,   // the Reply names an RDMA Write as the only ready-to-receive indication; nothing else follows
  };

  MeddlingProxy(const std::string& server, To to);
  ~MeddlingProxy();
  MeddlingProxy(const MeddlingProxy&) = delete;
  MeddlingProxy& operator=(const MeddlingProxy&) = delete;

  // The address for clients: "127.0.0.1:PORT".
  std::string address() const;
  // Layer/etype/code of the Terminate that it sends, as Weft prints them.
  static constexpr const char* kWords = "(0/2/08)";

 private:
  void run();
  void serve(int client);
  bool wait_for(int fd) const;
  bool pass_frame(int from, int to, bool meddle) const;

  const std::uint16_t server_port_;
  const To to_;
  LoopbackListener listener_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<std::thread> connections_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace weft::testing
