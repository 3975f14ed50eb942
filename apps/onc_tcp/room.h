#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace weft::onc_tcp {

// Room bounds the memory that clients make a program hold, so that no client and no address can take what the others
// need. It counts bytes and holds none. One thread.
//
// Of the total, a reserve is for clients that hold little: with as many clients as `reserve / small`, each of them
// always gets `small` bytes. Of the rest, an address may hold `per_address`, and no more than then is free; a client
// may hold no more than then is left to its address. So each leaves the next one at least half of what it found, and
// clients that give back what they had come to hold equal parts. A client that gives nothing back is not the Room's to
// end.
class Room {
 public:
  struct Limits {
    std::size_t total = 0;        // bytes
    std::size_t per_address = 0;  // bytes, of what is not reserve
    std::size_t reserve = 0;      // bytes, at most total
    std::size_t small = 0;        // bytes
  };
  class Client;
  class Claim;

  // Outlives its Clients and Claims.
  explicit Room(const Limits& limits) : limits_(limits) {}
  ~Room();
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  // enter counts one more client of an address, any text that names it. It stays as long as the Client or a Claim of
  // it.
  std::shared_ptr<Client> enter(const std::string& address);

  std::size_t used() const { return used_; }
  // How often bytes came back: a client that was refused need not ask again before this changes.
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

// One client, which is one connection.
class Room::Client {
 public:
  Client(Room& room, Addresses::iterator address) : room_(room), address_(address) {}
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Bytes of all its Claims.
  std::size_t held() const { return held_; }
  bool holds_little() const { return held_ <= room_.limits_.small; }

 private:
  friend class Room;
  friend class Room::Claim;

  Room& room_;
  Addresses::iterator address_;
  std::size_t held_ = 0;
};

// Claim is bytes of one client, until it is destroyed. Without a client it has any size.
class Room::Claim {
 public:
  Claim() = default;
  explicit Claim(std::shared_ptr<Client> client) : client_(std::move(client)) {}
  Claim(Claim&& other) noexcept : client_(std::move(other.client_)), size_(std::exchange(other.size_, 0)) {}
  Claim& operator=(Claim&& other) noexcept;
  ~Claim() { resize(0); }

  std::size_t size() const { return size_; }
  // False, and nothing changes, where the client may not have so many bytes now. It may always have fewer.
  bool resize(std::size_t size);

 private:
  std::shared_ptr<Client> client_;
  std::size_t size_ = 0;
};

}  // namespace weft::onc_tcp
