#include "apps/onc_tcp/room.h"

#include <cassert>

namespace weft::onc_tcp {

Room::Room(const Limits& limits)
    : limits_(limits),
      ledger_({.address = limits.per_address,
               .all = limits.total - limits.reserve,
               .guaranteed = limits.small,
               .leaves_as_much = true,
               .one_may_fill = false}) {}

Room::~Room() {
  assert(ledger_.num_clients() == 0 && "a client outlives its Room");
}

std::shared_ptr<Room::Client> Room::enter(const std::string& address) {
  return std::make_shared<Client>(*this, ledger_.enter(address));
}

Room::Claim::Claim(std::shared_ptr<Client> client) : client_(std::move(client)) {
  if (client_) lease_ = client_->entry_.lease();
}

Room::Claim& Room::Claim::operator=(Claim&& other) noexcept {
  if (this == &other) return *this;
  lease_ = std::move(other.lease_);
  client_ = std::move(other.client_);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

bool Room::Claim::resize(std::size_t size) {
  if (client_) {
    const Room& room = client_->room_;
    // More clients than the reserve is for may be there.
    if (size > size_ && size - size_ > room.limits_.total - room.used()) return false;
    if (lease_.resize(size) != Ledger::Verdict::kFits) return false;
  }
  size_ = size;
  return true;
}

}  // namespace weft::onc_tcp
