#include "bench/weft_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "bench/idle.h"

namespace weft::bench {
namespace {

[[noreturn]] void run(const char* weft, const std::vector<std::string>& args, const std::filesystem::path& log,
                      int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  raise_file_limit();
  dup2(out, 1);
  if (std::freopen(log.c_str(), "a", stderr) == nullptr) std::exit(1);
  for (int fd = 3; fd < 1024; ++fd) close(fd);
  std::vector<char*> argv = {const_cast<char*>("weft")};
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  execv(weft, argv.data());
  std::exit(127);
}

}  // namespace

WeftProcess::WeftProcess(const char* weft, const std::vector<std::string>& args, const std::filesystem::path& log) {
  int out[2];
  if (pipe(out) != 0) std::exit(1);
  pid_ = fork();
  if (pid_ < 0) std::exit(1);
  if (pid_ == 0) run(weft, args, log, out[1]);
  close(out[1]);
  FILE* const reader = fdopen(out[0], "r");
  char line[256] = "";
  if (std::fgets(line, sizeof line, reader) == nullptr || !std::string_view(line).starts_with("ready ")) {
    std::fprintf(stderr, "%s: %s %s did not start\n", program_invocation_short_name, weft, args.front().c_str());
    std::exit(1);
  }
  ready_ = line;  // `reader` stays open: the program may write more
}
WeftProcess::~WeftProcess() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

sockaddr_in WeftProcess::address(const std::string& word) const {
  sockaddr_in addr{};
  addr.sin_family = AF_INET;
  addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::size_t at = ready_.find(" " + word + "=");
  const std::size_t port = at == std::string::npos ? at : ready_.find("127.0.0.1:", at);
  if (port == std::string::npos) {
    std::fprintf(stderr, "%s: no %s= in: %s", program_invocation_short_name, word.c_str(), ready_.c_str());
    std::exit(1);
  }
  addr.sin_port = htons(static_cast<std::uint16_t>(std::atoi(ready_.c_str() + port + sizeof "127.0.0.1:" - 1)));
  return addr;
}

bool WeftProcess::is_running() const {
  return waitpid(pid_, nullptr, WNOHANG) == 0;
}
void WeftProcess::forget_most() const {
  std::ofstream(proc("clear_refs")) << "5";
}
double WeftProcess::status_of(const std::string& what) const {
  std::ifstream file(proc("status"));
  for (std::string word; file >> word;) {
    double kib = 0;
    if (word == what && file >> kib) return kib * 1024 / 1e6;
  }
  return 0;
}

}  // namespace weft::bench
