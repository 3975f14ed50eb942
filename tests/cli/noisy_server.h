#pragma once

#include <string>
#include <thread>
#include <vector>

#include "tests/cli/loopback_listener.h"

namespace weft::testing {

// NoisyServer accepts every MPA Request of revision 1 to a port of 127.0.0.1 and sends `noise` right after its MPA
// Reply. The connections stay open until it is destroyed. It serves one client after the other.
class NoisyServer {
 public:
  explicit NoisyServer(std::string noise);
  ~NoisyServer();
  NoisyServer(const NoisyServer&) = delete;
  NoisyServer& operator=(const NoisyServer&) = delete;

  std::string port() const { return std::to_string(listener_.port()); }

 private:
  void answer_all();

  const std::string noise_;
  LoopbackListener listener_;
  std::vector<int> connections_;
  std::thread thread_;
};

}  // namespace weft::testing
