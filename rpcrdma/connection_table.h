#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/ledger.h"
#include "base/time.h"
#include "rpcrdma/server_connection.h"

namespace weft::rpcrdma {

// ConnectionTable: the connections of a Server, found by serial number and by queue pair. Each has a place of one
// Ledger, for its group of addresses (peer_group), until it is taken out.
class ConnectionTable {
 public:
  // The most connections together, and of one group.
  ConnectionTable(std::size_t max, std::size_t max_per_group)
      : places_({.client = 1, .address = max_per_group, .all = max}) {}

  // Place: the place of one connection, with the serial number that it will have; never 0.
  struct Place {
    std::uint32_t serial = 0;
    Ledger::Client client;
    Lease lease;
  };
  // Takes a place. Empty: first one of gives_way() has to be taken out.
  std::optional<Place> take(const std::string& group);
  void insert(Place place, std::unique_ptr<ServerConnection> connection);
  // Takes a connection out; null if there is none.
  std::unique_ptr<ServerConnection> extract(std::uint32_t serial);

  ServerConnection* find(std::uint32_t serial) const;
  ServerConnection* find_by_qp(std::uint32_t qp_num) const;
  std::size_t size() const { return by_serial_.size(); }
  std::size_t num_of(const std::string& group) const { return places_.held_by(group); }
  // f gets each connection.
  template <typename F>
  void for_each(F&& f) const {
    for (const auto& [serial, entry] : by_serial_) f(*entry.connection);
  }

  // The connection that gives way to a newcomer of that group for which take() has no place. A connection that never
  // carried a Call in its first second goes before all others. Else the group with most connections gives one up: one
  // that has rested for a second; then one that was silent for a second with Calls under way, which its client sends
  // again; then one without a Call yet, if these are more than a quarter of all; then any. Of several the one that was
  // silent longest goes. Null: the newcomer's group has most.
  ServerConnection* gives_way(const std::string& newcomer, TimePoint now) const;

 private:
  struct Entry {
    Place place;
    std::unique_ptr<ServerConnection> connection;
  };

  Ledger places_;
  std::unordered_map<std::uint32_t, Entry> by_serial_;
  std::unordered_map<std::uint32_t, ServerConnection*> by_qp_;
  std::uint32_t last_serial_ = 0;
};

}  // namespace weft::rpcrdma
