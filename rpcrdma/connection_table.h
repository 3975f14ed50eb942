#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/ledger.h"
#include "base/time.h"
#include "rpcrdma/connection_order.h"
#include "rpcrdma/server_connection.h"

namespace weft::rpcrdma {

// ConnectionTable: the connections of a Server, found by serial number and by queue pair. Each has a place of one
// Ledger, for its group of addresses (peer_group), until it is taken out. The ConnectionOrder hears of the connections
// that changed when a newcomer asks. So a Call costs next to nothing here.
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
  bool has_place(const std::string& group) const { return places_.asks(group, 1) == Ledger::Verdict::kFits; }
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

  // The connection changes from now on, until the Server runs it no longer (ServerConnection::active).
  void on_active(ServerConnection& connection) {
    if (!std::exchange(connection.changes, true)) changing_.insert(connection.serial());
  }
  // The connection that gives way (ConnectionOrder) to a newcomer of that group for which take() has no place. Null:
  // none does, and the newcomer is refused.
  ServerConnection* gives_way(const std::string& newcomer, TimePoint now);

 private:
  struct Entry {
    Place place;
    std::unique_ptr<ServerConnection> connection;
    ConnectionOrder::Seen seen;  // as order_ has it
  };
  void see_changes();

  Ledger places_;
  std::unordered_map<std::uint32_t, Entry> by_serial_;
  std::unordered_map<std::uint32_t, ServerConnection*> by_qp_;
  std::uint32_t last_serial_ = 0;
  ConnectionOrder order_;
  std::unordered_set<std::uint32_t> changing_;  // order_ may not know what these are now
};

}  // namespace weft::rpcrdma
