#pragma once

#include <errno.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "verbs-shim/api/result.h"

// Shared by the programs that measure idle connections.
namespace weft::bench {

[[noreturn]] inline void fail(const verbs::Error& error) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, error.message.c_str());
  std::exit(1);
}
template <typename T>
T must(verbs::Result<T> result) {
  if (!result.ok()) fail(result.error());
  return std::move(result.value());
}
inline void must(const verbs::Status& status) {
  if (!status.ok()) fail(status.error());
}

// Octets of this process that are in memory.
inline std::size_t resident() {
  std::size_t pages = 0, resident_pages = 0;
  FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%zu %zu", &pages, &resident_pages) != 2) std::exit(1);
  std::fclose(file);
  return resident_pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Raises this process's limit of open files as far as it may; returns where it is then.
inline rlim_t raise_file_limit() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_cur;
}

// A port of 127.0.0.1, or of a later address of 127/8, that the system chooses.
inline sockaddr_storage any_loopback_port(std::uint32_t address = 0) {
  sockaddr_storage any{};
  auto& in = reinterpret_cast<sockaddr_in&>(any);
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK + address);
  return any;
}
// The address for one of many connections to one port. The system has some 28,000 ports for each address. Once half of
// them are taken, it looks through all the taken ones for every further connection.
inline sockaddr_storage any_port_for(std::size_t connection) {
  return any_loopback_port(static_cast<std::uint32_t>(connection / 10000));
}

}  // namespace weft::bench
