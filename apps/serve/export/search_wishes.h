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
    Client& of = clients_[{client.group, client.connection}];
    if (of.wishes.contains(file)) return;
    if (!of.holder) of.holder = places_.enter(client.group);
    Lease place = of.holder.take(1);
    if (!place) return;
    of.wishes.emplace(file, std::move(place));
    ++files_[file];
  }
  // The client has ended, and its wishes with it. What others wish for as well stays.
  void end(const DiskClient& client) {
    const auto at = clients_.find({client.group, client.connection});
    if (at == clients_.end()) return;
    for (const auto& [file, place] : at->second.wishes) {
      const auto wished = files_.find(file);
      if (--wished->second == 0) files_.erase(wished);
    }
    clients_.erase(at);
  }
  // take gives the files to the search that begins.
  std::vector<FileKey> take() {
    std::vector<FileKey> out;
    for (const auto& [file, num_clients] : files_) out.push_back(file);
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
    std::unordered_map<FileKey, Lease, FileKeyHash> wishes;
  };
  Ledger places_;
  std::map<std::pair<std::string, std::uint32_t>, Client> clients_;
  std::unordered_map<FileKey, std::size_t, FileKeyHash> files_;  // with the number of clients that wish for each
};

}  // namespace weft::serve
