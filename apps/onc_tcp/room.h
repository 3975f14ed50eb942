#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/ledger.h"

namespace weft::onc_tcp {

// Room bounds the memory that a program holds for clients, so that no client and no address can take the memory that
// others need: a Ledger of bytes, for the clients of Streams. It counts bytes and holds none. One thread uses it.
//
// A reserve of the total is for clients that hold little: with up to `reserve / small` clients, each of them always
// gets `small` bytes. The rest is shared as Ledger::Bounds::leaves_as_much says: each client leaves the next one at
// least half of the free memory that it found. Clients that give their memory back come to hold equal parts. If a
// client gives nothing back, ending it is not the Room's task.
class Room {
 public:
  struct Limits {
    std::size_t total = 0;        // bytes
    std::size_t per_address = 0;  // bytes, reserve excluded
    std::size_t reserve = 0;      // bytes, at most total
    std::size_t small = 0;        // bytes
  };
  class Client;
  class Claim;

  // The Room outlives its Clients and Claims.
  explicit Room(const Limits& limits);
  ~Room();
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  // enter counts one more client of an address; any text may name the address. The client counts as long as the Client
  // or one of its Claims exists.
  std::shared_ptr<Client> enter(const std::string& address);

  std::size_t used() const { return static_cast<std::size_t>(ledger_.held()); }
  // The bytes that the clients of an address hold together.
  std::size_t used_by(const std::string& address) const { return static_cast<std::size_t>(ledger_.held_by(address)); }
  // How often bytes were given back. A refused client need not ask again before this changes.
  std::uint64_t num_returns() const { return ledger_.num_returns(); }

 private:
  Limits limits_;
  Ledger ledger_;
};

// Client is one client: one connection.
class Room::Client {
 public:
  Client(Room& room, Ledger::Client entry) : room_(room), entry_(std::move(entry)) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // The bytes of all its Claims.
  std::size_t held() const { return static_cast<std::size_t>(entry_.held()); }
  // Whether so many bytes are no more than each client may always have.
  bool is_little(std::size_t bytes) const { return bytes <= room_.limits_.small; }
  bool holds_little() const { return is_little(held()); }

 private:
  friend class Room::Claim;

  Room& room_;
  Ledger::Client entry_;
};

// Claim holds bytes of one client until it is destroyed. Without a client it may have any size.
class Room::Claim {
 public:
  Claim() = default;
  explicit Claim(std::shared_ptr<Client> client);
  Claim(Claim&& other) noexcept
      : client_(std::move(other.client_)), lease_(std::move(other.lease_)), size_(std::exchange(other.size_, 0)) {}
  Claim& operator=(Claim&& other) noexcept;

  std::size_t size() const { return size_; }
  // Returns false and changes nothing if the client may not have this many bytes now. Fewer bytes are always allowed.
  bool resize(std::size_t size);

 private:
  std::shared_ptr<Client> client_;  // before its Lease
  Lease lease_;
  std::size_t size_ = 0;
};

}  // namespace weft::onc_tcp
