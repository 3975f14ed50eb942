#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apps/serve/export/client.h"
#include "apps/serve/export/file_stat.h"
#include "base/ledger.h"

namespace weft::serve {

// SearchWishes holds the files for which clients could not search, because another search was going on. The next search
// looks for all of them. So every client waits for one search and the rest of another, however often others search.
// Each client may have one wish, and more while there is room. Not thread-safe.
class SearchWishes {
 public:
  explicit SearchWishes(Amount max_wishes = 1024) : places_(bounds(max_wishes)) {}

  // add: a client that has no place left wishes nothing, and asks again.
  void add(const FileKey& file, const DiskClient& client) {
    if (files_.contains(file)) return;
    Client& of = clients_[{client.group, client.connection}];
    if (!of.holder) of.holder = places_.enter(client.group);
    Lease place = of.holder.take(1);
    if (!place) return;
    files_.emplace(file, std::move(place));
    of.files.push_back(file);
  }
  // The client has ended, and its wishes with it.
  void end(const DiskClient& client) {
    const auto at = clients_.find({client.group, client.connection});
    if (at == clients_.end()) return;
    for (const FileKey& file : at->second.files) files_.erase(file);
    clients_.erase(at);
  }
  // take gives the files to the search that begins.
  std::vector<FileKey> take() {
    std::vector<FileKey> out;
    for (const auto& [file, place] : files_) out.push_back(file);
    files_.clear();
    clients_.clear();
    return out;
  }

 private:
  static Ledger::Bounds bounds(Amount max_wishes) {
    return {.address = max_wishes / 2, .all = max_wishes, .guaranteed = 1, .leaves_as_much = true};
  }

  struct Client {
    Ledger::Client holder;
    std::vector<FileKey> files;
  };
  Ledger places_;
  std::map<std::pair<std::string, std::uint32_t>, Client> clients_;
  std::unordered_map<FileKey, Lease, FileKeyHash> files_;
};

}  // namespace weft::serve
