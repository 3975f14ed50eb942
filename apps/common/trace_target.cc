#include "apps/common/trace_target.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "base/fd.h"

namespace weft::apps {

namespace {

using Status = struct stat;

// The first word of pcapng, and of pcap with times in micro- and nanoseconds, in both orders of octets.
constexpr std::array<std::uint32_t, 5> kCaptures = {0x0a0d0d0a, 0xa1b2c3d4, 0xd4c3b2a1, 0xa1b23c4d, 0x4d3cb2a1};

std::optional<Status> status_of(const std::string& path) {
  Status status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status;
}

bool is_capture(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::uint32_t first = 0;
  return fd && ::read(fd.get(), &first, sizeof first) == sizeof first &&
         std::ranges::find(kCaptures, first) != kCaptures.end();
}

bool is_same(const Status& one, const Status& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool is_used(const Status& trace, const std::string& used) {
  if (used != "-") {
    const auto status = status_of(used);
    return status && is_same(trace, *status);
  }
  return std::ranges::any_of(std::array{STDIN_FILENO, STDOUT_FILENO}, [&trace](int fd) {
    Status status{};
    return ::fstat(fd, &status) == 0 && is_same(trace, status);
  });
}

}  // namespace

absl::Status check_trace_target(const std::string& path, std::span<const std::string> used) {
  const auto trace = status_of(path);
  if (!trace || !S_ISREG(trace->st_mode)) return absl::OkStatus();
  if (std::ranges::any_of(used, [&trace](const std::string& one) { return is_used(*trace, one); })) {
    return absl::InvalidArgumentError("--trace " + path + ": the command uses this file itself. Try: another name");
  }
  if (trace->st_size != 0 && !is_capture(path)) {
    return absl::InvalidArgumentError(
        "--trace " + path + ": the file is there and is no capture; the trace would replace it. Try: another name");
  }
  return absl::OkStatus();
}

}  // namespace weft::apps
