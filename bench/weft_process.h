#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace weft::bench {

// WeftProcess is a `weft` that serves until the end of this object, or of this process. Its limit of open files is as
// high as it may be.
class WeftProcess {
 public:
  // Returns when it says "ready"; if it does not, this process ends. Its log is appended to a file.
  WeftProcess(const char* weft, const std::vector<std::string>& args, const std::filesystem::path& log);
  ~WeftProcess();
  WeftProcess(const WeftProcess&) = delete;
  WeftProcess& operator=(const WeftProcess&) = delete;

  // Where it listens on 127.0.0.1, by the word of its ready line ("rdma", "mount", "listen").
  sockaddr_in address(const std::string& word) const;
  bool is_running() const;
  // Its resident memory in MB now, and the most since `forget_most`.
  double memory() const { return status_of("VmRSS:"); }
  double most_memory() const { return status_of("VmHWM:"); }
  void forget_most() const;

 private:
  std::string proc(const char* name) const { return "/proc/" + std::to_string(pid_) + "/" + name; }
  double status_of(const std::string& what) const;

  pid_t pid_ = -1;
  std::string ready_;
};

}  // namespace weft::bench
