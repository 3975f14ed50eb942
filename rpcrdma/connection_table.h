#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "rpcrdma/server_connection.h"

namespace weft::rpcrdma {

// ConnectionTable: the connections of a Server, found by their serial numbers and their queue pairs, counted by groups
// of addresses (peer_group).
class ConnectionTable {
 public:
  // A serial number that no connection has; never 0.
  std::uint32_t next_serial();
  void insert(std::unique_ptr<ServerConnection> connection);
  // Takes a connection out; null where there is none.
  std::unique_ptr<ServerConnection> extract(std::uint32_t serial);

  ServerConnection* find(std::uint32_t serial) const;
  ServerConnection* find_by_qp(std::uint32_t qp_num) const;
  std::size_t size() const { return by_serial_.size(); }
  std::size_t num_of(const std::string& group) const;
  auto begin() const { return by_serial_.begin(); }
  auto end() const { return by_serial_.end(); }

  // The connection that is to give way to a newcomer of that group: one over which no Call ever came before others, one
  // of a group that has many before one of a group that has few, and of these the one that was silent longest. Null
  // where there is none: Calls that a service works on keep their connection, and no group gives way to one that has
  // more.
  ServerConnection* least_missed(const std::string& newcomer, bool only_its_group, verbs::TimePoint now) const;

 private:
  std::unordered_map<std::uint32_t, std::unique_ptr<ServerConnection>> by_serial_;
  std::unordered_map<std::uint32_t, ServerConnection*> by_qp_;
  std::unordered_map<std::string, std::size_t> num_of_group_;
  std::uint32_t last_serial_ = 0;
};

}  // namespace weft::rpcrdma
