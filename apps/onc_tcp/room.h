#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace weft::onc_tcp {

// Room bounds the memory that a program holds for clients, so that no client and no address can take the memory that
// others need. It counts bytes and holds none. One thread uses it.
//
// A reserve of the total is for clients that hold little: with up to `reserve / small` clients, each of them always
// gets `small` bytes. The rest is shared. An address may hold at most `per_address` bytes of it, and at most as much as
// then stays free. A client may hold at most as much as then stays available to its address. So each client leaves the
// next one at least half of the free memory that it found. Clients that give their memory back come to hold equal
// parts. If a client gives nothing back, ending it is not the Room's task.
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
  explicit Room(const Limits& limits) : limits_(limits) {}
  ~Room();
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  // enter counts one more client of an address; any text may name the address. The client counts as long as the Client
  // or one of its Claims exists.
  std::shared_ptr<Client> enter(const std::string& address);

  std::size_t used() const { return used_; }
  // How often bytes were given back. A refused client need not ask again before this changes.
  std::uint64_t num_returns() const { return num_returns_; }

 private:
  struct Address {
    std::size_t held = 0;
    std::size_t num_clients = 0;
  };
  using Addresses = std::map<std::string, Address>;

  bool take(Client& client, std::size_t len);
  void give_back(Client& client, std::size_t len);

  Limits limits_;
  std::size_t used_ = 0;
  std::uint64_t num_returns_ = 0;
  Addresses addresses_;
};

// Client is one client: one connection.
class Room::Client {
 public:
  Client(Room& room, Addresses::iterator address) : room_(room), address_(address) {}
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // The bytes of all its Claims.
  std::size_t held() const { return held_; }
  bool holds_little() const { return held_ <= room_.limits_.small; }

 private:
  friend class Room;
  friend class Room::Claim;

  Room& room_;
  Addresses::iterator address_;
  std::size_t held_ = 0;
};

// Claim holds bytes of one client until it is destroyed. Without a client it may have any size.
class Room::Claim {
 public:
  Claim() = default;
  explicit Claim(std::shared_ptr<Client> client) : client_(std::move(client)) {}
  Claim(Claim&& other) noexcept : client_(std::move(other.client_)), size_(std::exchange(other.size_, 0)) {}
  Claim& operator=(Claim&& other) noexcept;
  ~Claim() { resize(0); }

  std::size_t size() const { return size_; }
  // Returns false and changes nothing if the client may not have this many bytes now. Fewer bytes are always allowed.
  bool resize(std::size_t size);

 private:
  std::shared_ptr<Client> client_;
  std::size_t size_ = 0;
};

}  // namespace weft::onc_tcp
