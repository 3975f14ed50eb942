#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/time.h"
#include "rpcrdma/server_connection.h"

namespace weft::rpcrdma {

// ConnectionTable: the connections of a Server, found by serial number and by queue pair, counted by group of addresses
// (peer_group).
class ConnectionTable {
 public:
  // A serial number that no connection has; never 0.
  std::uint32_t next_serial();
  void insert(std::unique_ptr<ServerConnection> connection);
  // Takes a connection out; null if there is none.
  std::unique_ptr<ServerConnection> extract(std::uint32_t serial);

  ServerConnection* find(std::uint32_t serial) const;
  ServerConnection* find_by_qp(std::uint32_t qp_num) const;
  std::size_t size() const { return by_serial_.size(); }
  std::size_t num_of(const std::string& group) const;
  auto begin() const { return by_serial_.begin(); }
  auto end() const { return by_serial_.end(); }

  // The connection that gives way to a newcomer of that group. A connection that never carried a Call goes before other
  // connections, a connection of a group with many connections before one of a group with few. Of equal connections the
  // one that was silent longest goes. Null if there is none: a connection stays while a service works on its Calls, and
  // no group gives way to a group that has more connections.
  ServerConnection* least_missed(const std::string& newcomer, bool only_its_group, TimePoint now) const;

 private:
  std::unordered_map<std::uint32_t, std::unique_ptr<ServerConnection>> by_serial_;
  std::unordered_map<std::uint32_t, ServerConnection*> by_qp_;
  std::unordered_map<std::string, std::size_t> num_of_group_;
  std::uint32_t last_serial_ = 0;
};

}  // namespace weft::rpcrdma
