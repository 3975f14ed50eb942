#include "rpcrdma/connection_table.h"

#include <chrono>
#include <utility>

namespace weft::rpcrdma {

namespace {

// How long a client may take before its first Call. After this time it gives way to clients of every address.
constexpr std::chrono::seconds kFirstCallTime{1};
// A client without a Call under way is at rest after this time. A client that makes one Call after the other is not: it
// would give way to neighbours that keep their Calls under way.
constexpr std::chrono::seconds kRestsAfter{1};

}  // namespace

Ledger::Standing standing_of(const ServerConnection& connection, TimePoint now) {
  using Tenure = Ledger::Tenure;
  const Responder& responder = connection.responder();
  Ledger::Standing out{.weight = responder.num_under_way(), .since = connection.used_at()};
  if (!responder.has_called()) {
    out.tenure = now - connection.used_at() >= kFirstCallTime ? Tenure::kUnused : Tenure::kResting;
    out.weight = 1;  // it goes before clients at rest that have had a Call
  } else if (out.weight == 0 && now - connection.used_at() >= kRestsAfter) {
    out.tenure = Tenure::kResting;
  }
  return out;
}

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
  by_serial_.emplace(serial, Entry{std::move(place), std::move(connection)});
}

std::unique_ptr<ServerConnection> ConnectionTable::extract(std::uint32_t serial) {
  auto entry = by_serial_.extract(serial);
  if (entry.empty()) return nullptr;
  by_qp_.erase(entry.mapped().connection->qp().qp_num());
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

ServerConnection* ConnectionTable::gives_way(const std::string& newcomer, TimePoint now) const {
  const auto serial = places_.gives_way(
      newcomer, 1, [&](std::uint64_t tag) { return standing_of(*find(static_cast<std::uint32_t>(tag)), now); });
  return serial ? find(static_cast<std::uint32_t>(*serial)) : nullptr;
}

}  // namespace weft::rpcrdma
