#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <utility>

#include "apps/serve/export/client.h"
#include "base/ledger.h"

namespace weft::serve {

// SharedOrder orders the keys of a table with a fixed number of places by their last use, for each client on its own.
// If all places are taken, a key of the address with most keys goes, and of the client with most keys in it: the one
// that was used longest ago. So a client that uses many keys loses its own.
//
// A key belongs to the client that brought it. If another client uses it, and the first one has more than its part, the
// key becomes the other's. So a client that keeps to its part cannot lose its keys to others that use them.
//
// The Ledger's rules for threads.
template <typename Key>
class SharedOrder {
  struct Shelf;

 public:
  // Place is where a key stands; it belongs to the key's entry in the table.
  struct Place {
    Shelf* shelf = nullptr;
    typename std::list<Key>::iterator at;
  };

  explicit SharedOrder(std::size_t max_keys) : max_keys_(max_keys), ledger_({.all = max_keys}) {}

  // add: only if the order is not full.
  Place add(const Key& key, const DiskClient& client) {
    Shelf& shelf = shelf_of(client);
    shelf.keys.push_front(key);
    count(shelf);
    return {&shelf, shelf.keys.begin()};
  }
  // The key was used.
  void touch(Place& place, const DiskClient& client) {
    Shelf& from = *place.shelf;
    if (from.client == client || !has_too_many(from, client)) {
      from.keys.splice(from.keys.begin(), from.keys, place.at);
      return;
    }
    Shelf& to = shelf_of(client);
    to.keys.splice(to.keys.begin(), from.keys, place.at);
    place.shelf = &to;
    count(from);
    count(to);
  }
  void remove(const Place& place) {
    place.shelf->keys.erase(place.at);
    count(*place.shelf);
  }

  std::size_t size() const { return ledger_.held(); }
  bool is_full() const { return size() >= max_keys_; }
  // The key that goes for a new key of this client. The order is not empty.
  const Key& next_out(const DiskClient& client) {
    if (out_ == nullptr || num_out_ == 0) {
      num_out_ = std::clamp<std::size_t>(max_keys_ / kKeysForOneSearch, 1, kMostAtOnce);
      out_ = largest(client);
    }
    --num_out_;
    return out_->keys.back();
  }

  // Calls `visit` with every key. A client's keys come in the order of their use, the one used longest ago first.
  template <typename F>
  void visit_oldest_first(F&& visit) const {
    for (const auto& [client, shelf] : shelves_) {
      for (auto key = shelf.keys.rbegin(); key != shelf.keys.rend(); ++key) visit(*key);
    }
  }

 private:
  struct Shelf {
    DiskClient client;
    std::uint64_t tag = 0;  // in the Ledger
    Ledger::Client holder;
    Lease lease;
    std::list<Key> keys;  // the one used last comes first
  };
  using Name = std::pair<std::string, std::uint32_t>;

  // In a large table several keys of one client go before the next search for the client with most keys, because a
  // search looks at every client.
  static constexpr std::size_t kKeysForOneSearch = 4096, kMostAtOnce = 64;

  static Amount held_by(const Shelf& shelf) { return shelf.lease.amount(); }
  // Whether a shelf's address holds more than its part of all places, or within one address the shelf more than its
  // part of those.
  bool has_too_many(const Shelf& from, const DiskClient& client) const {
    const std::string& address = from.client.group;
    const bool is_new = ledger_.num_clients(client.group) == 0;
    const std::size_t part = max_keys_ / (ledger_.num_addresses() + is_new);
    if (address != client.group) return ledger_.held_by(address) > part;
    const bool is_second = !shelves_.contains(Name{client.group, client.connection});
    return held_by(from) > part / (ledger_.num_clients(address) + is_second);
  }

  Shelf& shelf_of(const DiskClient& client) {
    const auto [at, is_new] = shelves_.try_emplace(Name{client.group, client.connection});
    Shelf& shelf = at->second;
    if (is_new) {
      shelf.client = client;
      shelf.holder = ledger_.enter(client.group, ++last_tag_);
      shelf.lease = shelf.holder.lease();
      by_tag_.emplace(last_tag_, &shelf);
      shelf.tag = last_tag_;
    }
    return shelf;
  }

  // Brings the Lease up to date. A shelf without keys goes.
  void count(Shelf& shelf) {
    static_cast<void>(shelf.lease.resize(shelf.keys.size()));
    if (!shelf.keys.empty()) return;
    if (out_ == &shelf) out_ = nullptr;
    by_tag_.erase(shelf.tag);
    const Name name{shelf.client.group, shelf.client.connection};
    shelves_.erase(name);
  }

  Shelf* largest(const DiskClient& newcomer) {
    const auto judge = [this](std::uint64_t tag) {
      return Ledger::Standing{.tenure = Ledger::Tenure::kResting, .weight = held_by(*by_tag_.at(tag))};
    };
    const auto tag = ledger_.gives_way(newcomer.group, 1, judge);
    return tag ? by_tag_.at(*tag) : &shelves_.begin()->second;
  }

  const std::size_t max_keys_;
  Ledger ledger_;
  std::map<Name, Shelf> shelves_;
  std::map<std::uint64_t, Shelf*> by_tag_;
  std::uint64_t last_tag_ = 0;
  Shelf* out_ = nullptr;     // the client that loses its keys now
  std::size_t num_out_ = 0;  // how many more
};

}  // namespace weft::serve
