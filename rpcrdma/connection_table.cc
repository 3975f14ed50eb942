#include "rpcrdma/connection_table.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace weft::rpcrdma {

namespace {

// A client that was silent for so long gives way before one that was not, also while a service has its Calls. So
// neighbours that keep Calls under way take no place from a client that makes one Call after the other.
constexpr std::chrono::seconds kSilence{1};
// Of so many connections one may be without a Call. Where more are, they give way to each other: peers that only
// connect take no place from clients. Where fewer are, a client that is still connecting keeps its place beside
// neighbours that make one Call and connect again.
constexpr std::size_t kPartOfNew = 4;

bool is_new(const ServerConnection& connection) {
  return !connection.responder().has_called();
}

// How easily the place of a connection can be taken from it.
Ledger::Standing standing_of(const ServerConnection& connection, TimePoint now, bool has_many_new) {
  using Tenure = Ledger::Tenure;
  const TimePoint since = connection.used_at();
  if (now - since < kSilence) {
    return {.tenure = Tenure::kBusy, .weight = has_many_new && is_new(connection) ? 1u : 0u, .since = since};
  }
  if (is_new(connection)) return {.tenure = Tenure::kUnused, .since = since};
  if (connection.responder().num_under_way() == 0) return {.tenure = Tenure::kResting, .since = since};
  return {.tenure = Tenure::kBusy, .weight = 2, .since = since};
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
  const auto num_new =
      std::ranges::count_if(by_serial_, [](const auto& entry) { return is_new(*entry.second.connection); });
  const bool has_many_new = static_cast<std::size_t>(num_new) > size() / kPartOfNew;
  const auto serial = places_.gives_way(newcomer, 1, [&](std::uint64_t tag) {
    return standing_of(*find(static_cast<std::uint32_t>(tag)), now, has_many_new);
  });
  return serial ? find(static_cast<std::uint32_t>(*serial)) : nullptr;
}

}  // namespace weft::rpcrdma
