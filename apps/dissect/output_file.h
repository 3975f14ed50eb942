#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft::apps::dissect {

// OutputFile is the file that a command writes. A regular file appears whole or not at all: the octets go to a
// temporary file beside it, and commit() renames that one. "-" is standard output; it and devices and pipes are written
// directly.
class OutputFile {
 public:
  // input: a file that must not be replaced, because it is read. "-" is standard input.
  static absl::StatusOr<OutputFile> open(const std::string& path, const std::string& input);
  OutputFile(OutputFile&&) = default;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  std::FILE* stream() const { return stream_.get(); }
  // Everything is written: the file takes its place. Without commit(), the temporary file goes.
  absl::Status commit();

 private:
  struct Close {
    void operator()(std::FILE* stream) const {
      if (stream != stdout) std::fclose(stream);
    }
  };

  OutputFile(std::string path, std::string temporary, std::FILE* stream)
      : path_(std::move(path)), temporary_(std::move(temporary)), stream_(stream) {}

  std::string path_;
  std::string temporary_;  // empty: the file is written directly
  std::unique_ptr<std::FILE, Close> stream_;
};

}  // namespace weft::apps::dissect
