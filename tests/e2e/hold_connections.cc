// hold_connections PORT COUNT: opens COUNT silent TCP connections to 127.0.0.1:PORT, and prints "holding N" once all
// were tried. It keeps the connections that the server leaves open until its standard input ends.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

void raise_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Blocks until connected: the kernel's listen queue paces us.
int connect_to(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return -1;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  raise_open_files();
  const auto port = static_cast<std::uint16_t>(std::atoi(argv[1]));
  const int count = std::atoi(argv[2]);
  std::vector<int> fds;
  for (int i = 0; i < count; ++i) {
    const int fd = connect_to(port);
    if (fd >= 0) fds.push_back(fd);
  }
  std::printf("holding %zu\n", fds.size());
  std::fflush(stdout);
  char octet = 0;
  while (read(STDIN_FILENO, &octet, 1) > 0) {
  }
  for (const int fd : fds) close(fd);
  return 0;
}
