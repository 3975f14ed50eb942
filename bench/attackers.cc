#include "bench/attackers.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "bench/idle.h"
#include "tests/exhaust/crowd.h"

namespace weft::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Connections a second, where the attack does not say how many. With more, this process would be exhausted before the
// server.
constexpr std::size_t kPerSecond = 2500;

[[noreturn]] void run(const exhaust::Attack& what, exhaust::Crowd& crowd) {
  const auto rate = static_cast<double>(what.per_second != 0 ? what.per_second : kPerSecond);
  double earned = 0;
  for (auto last = Clock::now();; crowd.turn(1)) {
    const auto now = Clock::now();
    earned = std::min(earned + std::chrono::duration<double>(now - last).count() * rate, 64.0);
    last = now;
    while (earned >= 1 && crowd.connect_one()) --earned;
  }
}

}  // namespace

pid_t attack(const exhaust::Attack& what, const sockaddr_in& server, const std::vector<std::string>& addresses,
             exhaust::Done& done) {
  const pid_t child = fork();
  if (child < 0) std::exit(1);
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The measuring program's own connections must end when that program ends them.
  for (int fd = 3; fd < 1024; ++fd) close(fd);
  raise_file_limit();
  std::srand(static_cast<unsigned>(getpid()));
  exhaust::Crowd crowd(what, server, addresses, done);
  run(what, crowd);
}

}  // namespace weft::bench
