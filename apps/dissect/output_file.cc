#include "apps/dissect/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "apps/common/file_status.h"
#include "apps/common/output_stream.h"
#include "apps/common/signals.h"

namespace weft::apps::dissect {

namespace {

absl::Status cannot_write(const std::string& path, int error) {
  return absl::Status(absl::ErrnoToStatusCode(error), fmt::format("cannot write {}: {}", path, std::strerror(error)));
}

// A symbolic link stays: the program writes the file that the link names, which need not exist yet. Empty: the links
// form a circle.
std::optional<std::string> target_of(std::filesystem::path path) {
  constexpr int kMaxLinks = 40;  // as Linux has it
  std::error_code none;
  for (int i = 0; i < kMaxLinks; ++i) {
    if (!std::filesystem::is_symlink(path, none)) return path.string();
    path = path.parent_path() / std::filesystem::read_symlink(path, none);
  }
  return std::nullopt;
}

// The permissions of a file that a program makes.
mode_t usual_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

}  // namespace

absl::StatusOr<OutputFile> OutputFile::open(const std::string& path, const std::string& input) {
  if (path == "-") return OutputFile(path, "", stdout);
  const auto old = file_status(path);
  if (old && S_ISDIR(old->st_mode)) return cannot_write(path, EISDIR);
  if (old && !S_ISREG(old->st_mode)) {
    Fd fd(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY));
    if (!fd) return cannot_write(path, errno);
    return OutputFile(path, "", open_output_stream(std::move(fd)).release());
  }
  // A shell may have opened a capture as standard input.
  const auto read = input == "-" ? file_status(STDIN_FILENO) : file_status(input);
  if (old && read && is_same_file(*old, *read)) {
    return absl::InvalidArgumentError(path + " is the capture itself. Try: another name for the page");
  }
  if (old && ::access(path.c_str(), W_OK) != 0) return cannot_write(path, errno);
  const auto target = target_of(path);
  if (!target) return cannot_write(path, ELOOP);
  std::string temporary = *target + ".XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return cannot_write(path, errno);
  remove_when_killed(temporary);
  ::fchmod(fd, old ? old->st_mode & 07777 : usual_mode());
  return OutputFile(*target, std::move(temporary), ::fdopen(fd, "w"));
}

OutputFile::~OutputFile() {
  if (!stream_ || temporary_.empty()) return;
  ::unlink(temporary_.c_str());
  remove_when_killed("");
}

absl::Status OutputFile::commit() {
  errno = 0;
  if (std::fflush(stream_.get()) != 0 || std::ferror(stream_.get()) != 0) {
    return cannot_write(path_, errno == 0 ? EIO : errno);
  }
  if (temporary_.empty()) return absl::OkStatus();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return cannot_write(path_, errno);
  temporary_.clear();
  remove_when_killed("");
  return absl::OkStatus();
}

}  // namespace weft::apps::dissect
