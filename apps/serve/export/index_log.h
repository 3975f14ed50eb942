#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/serve/export/file_stat.h"
#include "base/fd.h"

namespace weft::serve {

// IndexRecord is one change of the path index.
struct IndexRecord {
  enum class Op : std::uint8_t { kLearn = 1, kForgetName = 2, kForget = 3 };
  Op op = Op::kLearn;
  FileKey file;
  FileKey parent;    // kLearn, kForgetName
  std::string name;  // kLearn, kForgetName
  friend bool operator==(const IndexRecord&, const IndexRecord&) = default;
};

// IndexLog keeps the path index on disk: an append-only file of records, each with a length and a CRC. Reading stops at
// the first record that is not whole (a crash tore it), and the file is cut there. It is never synced: a search finds
// again the records that a crash of the machine loses. One thread at a time.
class IndexLog {
 public:
  // open takes the file under a lock that lasts as long as the IndexLog. If another process has the file, that is an
  // error.
  static absl::StatusOr<std::unique_ptr<IndexLog>> open(int state_dir_fd, const std::string& file_name,
                                                        const std::string& shown_name);

  // replay calls `each` with every record, oldest first. The caller calls it once, before the first append.
  void replay(const std::function<void(IndexRecord)>& each);
  void append(const IndexRecord& record);

  // Records in the file, dead ones and ones that could not be written included.
  std::size_t num_records() const { return num_records_; }

  // A rewrite replaces the file by records that are copied in steps, together with all that are appended meanwhile. The
  // old file is the log until end_rewrite. If a step fails, it stays the log, and the rewrite has ended.
  [[nodiscard]] bool begin_rewrite();
  [[nodiscard]] bool copy(const std::vector<IndexRecord>& records);
  [[nodiscard]] bool end_rewrite();

 private:
  IndexLog(int state_dir_fd, Fd lock, std::string file_name)
      : lock_(std::move(lock)), file_name_(std::move(file_name)) {
    dir_ = Fd(::dup(state_dir_fd));
  }
  // fail: nothing more can be appended until a rewrite has succeeded.
  void fail(const char* what);
  void warn(const char* what);
  bool give_up_rewrite();
  std::string temporary_name() const { return file_name_ + ".new"; }

  struct Rewrite {
    Fd file;
    std::size_t num_records = 0;
    bool has_failed = false;
  };

  Fd dir_;
  Fd lock_;
  Fd file_;
  std::string file_name_;
  std::size_t num_records_ = 0;
  bool has_failed_ = false;
  bool has_warned_ = false;  // a failure is logged once
  std::optional<Rewrite> rewrite_;
};

}  // namespace weft::serve
