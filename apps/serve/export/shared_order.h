#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "apps/serve/export/client.h"

namespace weft::serve {

// SharedOrder orders the keys of a table with a fixed number of places by their last use, for each client on its own. A
// key takes one place, or as many as the table says. If all places are taken, a key of the address with most places
// goes, and of the client with most places in it: the one that was used longest ago. So a client that uses many keys
// loses its own.
//
// A key belongs to the client that brought it. If another client uses it, and the first one has more than its part, the
// key becomes the other's. So a client that keeps to its part cannot lose its keys to others that use them. When a
// client ends, its keys become its address's, as if of one more client there (connection 0), and of these a client of
// that address gets each one that it uses.
//
// It counts for itself, without a Ledger: keys stay when their client goes. There is one shelf for each client that has
// keys and for each address that has keys of clients that ended. Each operation takes a time that grows with the
// logarithm of their number; end() beside that touches each key of the smaller one of two shelves.
//
// Not thread-safe.
template <typename Key>
class SharedOrder {
  struct Shelf;
  struct Item {
    Key key;
    Shelf* shelf = nullptr;
    std::size_t places = 1;
  };
  using Items = std::list<Item>;

 public:
  // Place is where a key stands; it belongs to the key's entry in the table.
  using Place = typename Items::iterator;

  explicit SharedOrder(std::size_t max_places) : max_places_(max_places) {}
  SharedOrder(const SharedOrder&) = delete;
  SharedOrder& operator=(const SharedOrder&) = delete;

  // add: only if the order is not full.
  Place add(const Key& key, const DiskClient& client) {
    Shelf& shelf = shelf_of(client);
    shelf.items.push_front({key, &shelf});
    count(shelf, shelf.places + 1);
    return shelf.items.begin();
  }
  // The key takes so many places, at least 1. The order may become more than full by it.
  void resize(Place at, std::size_t places) {
    Shelf& shelf = *at->shelf;
    const std::size_t now = shelf.places - at->places + places;
    at->places = places;
    count(shelf, now);
  }
  // The key was used.
  void touch(Place at, const DiskClient& client) {
    Shelf& from = *at->shelf;
    if (from.belongs_to(client) || !changes_hands(from, client)) {
      from.items.splice(from.items.begin(), from.items, at);
      return;
    }
    Shelf& to = shelf_of(client);
    to.items.splice(to.items.begin(), from.items, at);
    at->shelf = &to;
    count(to, to.places + at->places);
    count(from, from.places - at->places);
  }
  void remove(Place at) {
    Shelf& shelf = *at->shelf;
    const std::size_t places = at->places;
    shelf.items.erase(at);
    count(shelf, shelf.places - places);
  }
  // The client has ended: none of its keys is added or touched any more.
  void end(const DiskClient& client) {
    if (client.connection == kOfAddress) return;
    const auto at = addresses_.find(client.group);
    if (at == addresses_.end()) return;
    auto ended = at->second.shelves.extract(client.connection);
    if (ended.empty()) return;
    at->second.by_places.erase({ended.mapped().places, client.connection});
    give_to_address(at->second, std::move(ended));
  }

  // Places that keys take.
  std::size_t size() const { return size_; }
  bool is_full() const { return size_ >= max_places_; }
  // The number of clients that have keys, and of addresses that have keys of clients that ended.
  std::size_t num_holders() const { return num_shelves_; }
  // The key that goes for a new one. The order is not empty.
  const Key& next_out() const {
    const Address& address = addresses_.find(by_held_.rbegin()->second)->second;
    return address.shelves.at(address.by_places.rbegin()->second).items.back().key;
  }

  // The key of this client, or else of its address, that goes first; null: it has none.
  const Key* next_out_of(const DiskClient& client) const {
    const auto address = addresses_.find(client.group);
    if (address == addresses_.end()) return nullptr;
    const auto& [name, of] = *address;
    const auto own = of.shelves.find(client.connection);
    return &(own != of.shelves.end() ? own->second : of.shelves.at(of.by_places.rbegin()->second)).items.back().key;
  }
  std::size_t places_of(Place at) const { return at->places; }
  bool is_of(Place at, const DiskClient& client) const { return at->shelf->belongs_to(client); }

  // Calls `visit` with every key. A client's keys come in the order of their use, the one used longest ago first.
  template <typename F>
  void visit_oldest_first(F&& visit) const {
    for (const auto& [name, address] : addresses_) {
      for (const auto& [connection, shelf] : address.shelves) {
        for (auto item = shelf.items.rbegin(); item != shelf.items.rend(); ++item) visit(item->key);
      }
    }
  }

 private:
  // The connection that the keys of an address count as which belong to none of its clients.
  static constexpr std::uint32_t kOfAddress = 0;

  struct Address;
  struct Shelf {
    Address* address = nullptr;
    std::uint32_t connection = kOfAddress;
    Items items{};  // the one used last comes first
    std::size_t places = 0;

    bool belongs_to(const DiskClient& client) const {
      return connection == client.connection && address->name == client.group;
    }
  };
  using Shelves = std::map<std::uint32_t, Shelf>;
  struct Address {
    std::string_view name;  // the key in addresses_
    std::size_t held = 0;   // places
    Shelves shelves{};      // by connection
    std::set<std::pair<std::size_t, std::uint32_t>> by_places{};
  };

  // Whether a key of this shelf becomes this other client's if that one uses it: the address of the shelf holds more
  // than its part of all places, or within one address the shelf more than its part of them.
  bool changes_hands(const Shelf& from, const DiskClient& client) const {
    const Address& address = *from.address;
    const bool is_of_address = address.name == client.group;
    if (is_of_address && from.connection == kOfAddress) return true;
    const bool is_new = !is_of_address && !addresses_.contains(client.group);
    const std::size_t part = max_places_ / (addresses_.size() + is_new);
    if (!is_of_address) return address.held > part;
    const bool is_second = !address.shelves.contains(client.connection);
    return from.places > part / (address.shelves.size() + is_second);
  }

  // The caller puts a key on it.
  Shelf& shelf_of(const DiskClient& client) {
    const auto [at, is_new_address] = addresses_.try_emplace(client.group);
    Address& address = at->second;
    address.name = at->first;
    const auto [shelf, is_new] =
        address.shelves.try_emplace(client.connection, Shelf{.address = &address, .connection = client.connection});
    num_shelves_ += is_new;
    return shelf->second;
  }

  // Moves an entry of an ordered set. There is none for 0.
  template <typename What>
  static void reorder(std::set<std::pair<std::size_t, What>>& set, What what, std::size_t before, std::size_t now) {
    if (before == 0) {
      set.emplace(now, what);
      return;
    }
    auto node = set.extract({before, what});
    if (now == 0) return;
    node.value().first = now;
    set.insert(std::move(node));
  }

  // The shelf's keys take so many places now. A shelf without keys goes, and so does an address without shelves.
  void count(Shelf& shelf, std::size_t now) {
    Address& address = *shelf.address;
    const std::size_t before = std::exchange(shelf.places, now);
    const std::size_t held = address.held - before + now;
    reorder(address.by_places, shelf.connection, before, now);
    reorder(by_held_, address.name, address.held, held);
    size_ = size_ - before + now;
    address.held = held;
    if (now != 0) return;
    address.shelves.erase(shelf.connection);
    --num_shelves_;
    if (held == 0) addresses_.erase(addresses_.find(address.name));
  }

  // The shelf of a client that ended becomes the address's. If that has one already, the shelf with fewer keys is put
  // into the other. The keys of the client that ended last go last.
  void give_to_address(Address& address, typename Shelves::node_type ended) {
    auto common = address.shelves.extract(kOfAddress);
    if (!common.empty()) {
      Shelf &left = ended.mapped(), &before = common.mapped();
      address.by_places.erase({before.places, kOfAddress});
      const bool is_kept = left.items.size() > before.items.size();
      for (Item& item : (is_kept ? before : left).items) item.shelf = is_kept ? &left : &before;
      left.places = before.places = left.places + before.places;
      if (is_kept) {
        left.items.splice(left.items.end(), before.items);
      } else {
        before.items.splice(before.items.begin(), left.items);
        std::swap(ended, common);
      }
      --num_shelves_;
    }
    ended.key() = ended.mapped().connection = kOfAddress;
    address.by_places.emplace(ended.mapped().places, kOfAddress);
    address.shelves.insert(std::move(ended));
  }

  const std::size_t max_places_;
  std::size_t size_ = 0;
  std::size_t num_shelves_ = 0;
  std::map<std::string, Address, std::less<>> addresses_;
  std::set<std::pair<std::size_t, std::string_view>> by_held_{};
};

}  // namespace weft::serve
