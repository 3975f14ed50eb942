#include "apps/common/trace_target.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

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

}  // namespace

absl::Status check_trace_target(const std::string& path, std::span<const std::string> used) {
  const auto trace = file_status(path);
  if (!trace || !S_ISREG(trace->st_mode)) return absl::OkStatus();
  if (std::ranges::any_of(used, [&trace](const std::string& one) { return is_used(*trace, one); })) {
    return absl::InvalidArgumentError("--trace " + path + ": the command uses this file itself. Try: another name");
  }
  if (trace->st_size == 0) return absl::OkStatus();
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd && is_capture(fd)) return absl::OkStatus();
  const std::string fault = fd ? "is no capture" : std::string("cannot be read (") + std::strerror(errno) + ")";
  return absl::InvalidArgumentError("--trace " + path + ": the file is there and " + fault +
                                    "; the trace would replace it. Try: another name");
}

}  // namespace weft::apps
