#include "apps/common/trace_target.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "apps/common/file_status.h"
#include "base/fd.h"

namespace weft::apps {

namespace {

// The first word of pcapng, and of pcap with times in micro- and nanoseconds, in both orders of octets.
constexpr std::array<std::uint32_t, 5> kCaptures = {0x0a0d0d0a, 0xa1b2c3d4, 0xd4c3b2a1, 0xa1b23c4d, 0x4d3cb2a1};

bool is_capture(const Fd& fd) {
  std::uint32_t first = 0;
  return ::read(fd.get(), &first, sizeof first) == sizeof first &&
         std::ranges::find(kCaptures, first) != kCaptures.end();
}

bool is_used(const FileStatus& trace, const std::string& used) {
  const auto is_trace = [&trace](const std::optional<FileStatus>& status) {
    return status && is_same_file(trace, *status);
  };
  if (used != "-") return is_trace(file_status(used));
  return is_trace(file_status(STDIN_FILENO)) || is_trace(file_status(STDOUT_FILENO));
}

// Whether two names lead to the same place, although one of them names no file yet.
bool will_be_same(const std::string& one, const std::string& other) {
  std::error_code error;
  const auto first = std::filesystem::weakly_canonical(one, error);
  return !error && first == std::filesystem::weakly_canonical(other, error) && !error;
}

}  // namespace

absl::Status check_trace_target(const std::string& path, std::span<const std::string> used) {
  const auto trace = file_status(path);
  if (trace && !S_ISREG(trace->st_mode)) return absl::OkStatus();
  const auto collides = [&](const std::string& one) { return trace ? is_used(*trace, one) : will_be_same(path, one); };
  if (std::ranges::any_of(used, collides)) {
    return absl::InvalidArgumentError("--trace " + path + ": the command uses this file itself. Try: another name");
  }
  if (!trace || trace->st_size == 0) return absl::OkStatus();
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd && is_capture(fd)) return absl::OkStatus();
  const std::string fault = fd ? "is no capture" : std::string("cannot be read (") + std::strerror(errno) + ")";
  return absl::InvalidArgumentError("--trace " + path + ": the file is there and " + fault +
                                    "; the trace would replace it. Try: another name");
}

}  // namespace weft::apps
