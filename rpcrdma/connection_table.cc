#include "rpcrdma/connection_table.h"

#include <utility>

namespace weft::rpcrdma {

namespace {

ConnectionOrder::Seen seen_now(const ServerConnection& connection) {
  using Kind = ConnectionOrder::Kind;
  const Responder& responder = connection.responder();
  // A first Call that waits for its memory, or for its chunks, is a Call, too.
  Kind kind = responder.has_called() ? Kind::kIdle : Kind::kNew;
  if (responder.num_under_way() != 0) kind = Kind::kBusy;
  return {.kind = kind, .used_at = connection.used_at()};
}

}  // namespace

std::optional<ConnectionTable::Place> ConnectionTable::take(const std::string& group) {
  do {
    ++last_serial_;
  } while (last_serial_ == 0 || by_serial_.contains(last_serial_));
  Place place{.serial = last_serial_, .client = places_.enter(group, last_serial_), .lease = {}};
  place.lease = place.client.take(1);
  return place.lease ? std::optional(std::move(place)) : std::nullopt;
}

void ConnectionTable::insert(Place place, std::unique_ptr<ServerConnection> connection) {
  const std::uint32_t serial = place.serial;
  by_qp_.emplace(connection->qp().qp_num(), connection.get());
  const ConnectionOrder::Seen seen = seen_now(*connection);
  order_.add(serial, connection->group(), seen);
  by_serial_.emplace(serial, Entry{std::move(place), std::move(connection), seen});
}

std::unique_ptr<ServerConnection> ConnectionTable::extract(std::uint32_t serial) {
  auto entry = by_serial_.extract(serial);
  if (entry.empty()) return nullptr;
  ServerConnection& connection = *entry.mapped().connection;
  by_qp_.erase(connection.qp().qp_num());
  order_.remove(serial, connection.group(), entry.mapped().seen);
  changing_.erase(serial);
  return std::move(entry.mapped().connection);
}

ServerConnection* ConnectionTable::find(std::uint32_t serial) const {
  const auto at = by_serial_.find(serial);
  return at == by_serial_.end() ? nullptr : at->second.connection.get();
}

ServerConnection* ConnectionTable::find_by_qp(std::uint32_t qp_num) const {
  const auto at = by_qp_.find(qp_num);
  return at == by_qp_.end() ? nullptr : at->second;
}

void ConnectionTable::see_changes() {
  std::erase_if(changing_, [this](std::uint32_t serial) {
    Entry& entry = by_serial_.at(serial);
    ServerConnection& connection = *entry.connection;
    const ConnectionOrder::Seen now = seen_now(connection);
    order_.see(serial, connection.group(), entry.seen, now);
    entry.seen = now;
    connection.changes = connection.active;
    return !connection.changes;
  });
}

ServerConnection* ConnectionTable::gives_way(const std::string& newcomer, TimePoint now) {
  see_changes();
  const bool only_own = places_.asks(newcomer, 1) == Ledger::Verdict::kAddress;
  const auto serial = order_.gives_way(newcomer, only_own, now);
  return serial ? find(*serial) : nullptr;
}

}  // namespace weft::rpcrdma
