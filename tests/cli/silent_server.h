#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/loopback_listener.h"

namespace weft::testing {

// SilentServer takes every TCP connection to a port of 127.0.0.1 and never says a word.
class SilentServer {
 public:
  SilentServer();
  ~SilentServer();
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;

  std::string port() const { return std::to_string(listener_.port()); }
  std::string address() const { return "127.0.0.1:" + port(); }
  // Of an NFS server whose MOUNT service is as silent.
  std::string url(const std::string& path) const { return "nfs+rdma://" + address() + path + "?mountport=" + port(); }

  std::size_t num_accepted();
  // Waits until there were more connections than `before`.
  void wait_for_connection(std::size_t before);

 private:
  LoopbackListener listener_;
  std::mutex mutex_;
  std::condition_variable accepted_;
  std::vector<int> connections_;
  std::thread thread_;
};

}  // namespace weft::testing
