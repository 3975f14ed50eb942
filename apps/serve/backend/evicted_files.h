#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "apps/serve/backend/open_file.h"
#include "apps/serve/export/file_stat.h"
#include "base/ledger.h"

namespace weft::serve {

// EvictedFiles holds files that lost their place among the open files before their writes were synced. Each stays open
// until a worker of the sync lane has synced it, so the Call that needs the place does not wait for the disk. A place
// here belongs to the address whose Call evicts the file. An address has one in any case, and beyond that at most as
// many as it leaves free. Not thread-safe.
class EvictedFiles {
 public:
  explicit EvictedFiles(std::size_t max_files)
      : places_({.all = std::max<std::size_t>(max_files, 1),
                 .guaranteed = 1,
                 .leaves_as_much = true,
                 .one_may_fill = false}) {}

  // add: false if the address has no place for it, or the file is here by another descriptor.
  bool add(const FileKey& key, std::shared_ptr<OpenFile> file, const std::string& address);
  // Null for none. take removes the file.
  std::shared_ptr<OpenFile> find(const FileKey& key) const;
  std::shared_ptr<OpenFile> take(const FileKey& key);
  std::vector<FileKey> keys() const;
  std::size_t size() const { return files_.size(); }

 private:
  struct File {
    std::shared_ptr<OpenFile> open;
    Lease place;
    std::string address;
  };

  Ledger places_;
  std::map<std::string, Ledger::Client> addresses_;  // that have files here
  std::unordered_map<FileKey, File, FileKeyHash> files_;
};

}  // namespace weft::serve
