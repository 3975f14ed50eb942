#include "apps/onc_tcp/room.h"

#include <algorithm>
#include <cassert>

namespace weft::onc_tcp {

Room::~Room() {
  assert(addresses_.empty() && "a client outlives its Room");
}

std::shared_ptr<Room::Client> Room::enter(const std::string& address) {
  const auto at = addresses_.try_emplace(address).first;
  ++at->second.num_clients;
  return std::make_shared<Client>(*this, at);
}

bool Room::take(Client& client, std::size_t len) {
  if (used_ > limits_.total || len > limits_.total - used_) return false;
  std::size_t& of_address = client.address_->second.held;
  const bool is_little = client.held_ <= limits_.small && len <= limits_.small - client.held_;
  if (!is_little) {
    const std::size_t shared = limits_.total - limits_.reserve;
    if (used_ >= shared || len > shared - used_) return false;
    const std::size_t most = std::min(limits_.per_address, shared - used_ - len);
    if (of_address > most || len > most - of_address) return false;
    const std::size_t left = most - of_address - len;
    if (client.held_ > left || len > left - client.held_) return false;
  }
  used_ += len;
  of_address += len;
  client.held_ += len;
  return true;
}

void Room::give_back(Client& client, std::size_t len) {
  used_ -= len;
  client.address_->second.held -= len;
  client.held_ -= len;
  ++num_returns_;
}

Room::Client::~Client() {
  assert(held_ == 0);
  if (--address_->second.num_clients == 0) room_.addresses_.erase(address_);
}

Room::Claim& Room::Claim::operator=(Claim&& other) noexcept {
  if (this == &other) return *this;
  resize(0);
  client_ = std::move(other.client_);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

bool Room::Claim::resize(std::size_t size) {
  if (client_) {
    Room& room = client_->room_;
    if (size > size_ && !room.take(*client_, size - size_)) return false;
    if (size < size_) room.give_back(*client_, size_ - size);
  }
  size_ = size;
  return true;
}

}  // namespace weft::onc_tcp
