#include "rpcrdma/connection_table.h"

#include <chrono>
#include <tuple>
#include <utility>

namespace weft::rpcrdma {

namespace {

// How long a client may take before its first Call. After this time it also gives way to clients of addresses with more
// connections.
constexpr std::chrono::seconds kFirstCallTime{1};

}  // namespace

std::uint32_t ConnectionTable::next_serial() {
  do {
    ++last_serial_;
  } while (last_serial_ == 0 || by_serial_.contains(last_serial_));
  return last_serial_;
}

void ConnectionTable::insert(std::unique_ptr<ServerConnection> connection) {
  ++num_of_group_[connection->group()];
  by_qp_.emplace(connection->qp().qp_num(), connection.get());
  const std::uint32_t serial = connection->serial();
  by_serial_.emplace(serial, std::move(connection));
}

std::unique_ptr<ServerConnection> ConnectionTable::extract(std::uint32_t serial) {
  const auto at = by_serial_.find(serial);
  if (at == by_serial_.end()) return nullptr;
  std::unique_ptr<ServerConnection> connection = std::move(at->second);
  by_serial_.erase(at);
  by_qp_.erase(connection->qp().qp_num());
  if (const auto group = num_of_group_.find(connection->group()); --group->second == 0) num_of_group_.erase(group);
  return connection;
}

ServerConnection* ConnectionTable::find(std::uint32_t serial) const {
  const auto at = by_serial_.find(serial);
  return at == by_serial_.end() ? nullptr : at->second.get();
}

ServerConnection* ConnectionTable::find_by_qp(std::uint32_t qp_num) const {
  const auto at = by_qp_.find(qp_num);
  return at == by_qp_.end() ? nullptr : at->second;
}

std::size_t ConnectionTable::num_of(const std::string& group) const {
  const auto at = num_of_group_.find(group);
  return at == num_of_group_.end() ? 0 : at->second;
}

ServerConnection* ConnectionTable::least_missed(const std::string& newcomer, bool only_its_group, TimePoint now) const {
  const std::size_t num_newcomers = num_of(newcomer);
  ServerConnection* found = nullptr;
  std::tuple<bool, std::size_t, TimePoint> least;
  for (const auto& [serial, connection] : by_serial_) {
    if (only_its_group && connection->group() != newcomer) continue;
    if (connection->responder().has_served_calls()) continue;
    const bool has_called = connection->responder().has_called();
    const std::size_t num = num_of(connection->group());
    const bool had_time = !has_called && now - connection->used_at() >= kFirstCallTime;
    if (num < num_newcomers && !had_time) continue;
    const std::tuple value(has_called, SIZE_MAX - num, connection->used_at());
    if (found != nullptr && value >= least) continue;
    found = connection.get();
    least = value;
  }
  return found;
}

}  // namespace weft::rpcrdma
