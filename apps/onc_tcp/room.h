#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/fair_line.h"
#include "base/ledger.h"

namespace weft::onc_tcp {

// Room bounds the memory that a program holds for clients, so that no client and no address can take the memory that
// others need: a Ledger of bytes, for the clients of Streams, and the line of those that wait for bytes. It counts
// bytes and holds none. One thread uses it.
//
// A reserve of the total is for clients that hold little: with up to `reserve / small` clients, each of them always
// gets `small` bytes, without a wait. The rest is shared as Ledger::Bounds::leaves_as_much says: each client leaves the
// next one at least half of the free memory that it found. Clients that give their memory back come to hold equal
// parts.
//
// A Claim that is refused bytes stands in a FairLine. So what others give back comes to the client that received least,
// also if it needs more at once than they do: in its turn, the only Claim of an address may have all that there is, up
// to the bound of an address. If a client gives nothing back, ending it is not the Room's task.
//
// A Claim is never for more than an address may have.
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

  // Gives the Claims in the line the bytes that they wait for, as long as there are some. Returns whether a Claim got
  // bytes. Call it after bytes came back.
  bool serve_line();
  // Whether serve_line may have something to give.
  bool is_line_due() const { return line_.size() != 0 && (is_due_ || ledger_.num_returns() != seen_returns_); }

  std::size_t num_waiting() const { return line_.size(); }
  std::size_t used() const { return static_cast<std::size_t>(ledger_.held()); }
  // The bytes that the clients of an address hold together.
  std::size_t used_by(const std::string& address) const { return static_cast<std::size_t>(ledger_.held_by(address)); }
  // How often bytes were given back, or given to a Claim of the line. A Claim that was refused need not ask again
  // before this changes.
  std::uint64_t num_changes() const { return ledger_.num_returns() + num_turns_; }

 private:
  struct Holding;
  // Whether a client may take bytes without a wait, although others wait.
  bool may_pass(const Client& client) const;

  Limits limits_;
  Ledger ledger_;
  FairLine<Holding*> line_;
  std::uint64_t last_number_ = 0;
  std::uint64_t num_turns_ = 0;
  std::uint64_t seen_returns_ = 0;
  bool is_due_ = false;        // the line has changed
  bool is_all_short_ = false;  // the first Claim lacks bytes of the whole Room
};

// Client is one client: one connection.
class Room::Client {
 public:
  Client(Room& room, Ledger::Client entry);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // The bytes of all its Claims.
  std::size_t held() const { return static_cast<std::size_t>(entry_.held()); }
  // Whether so many bytes are no more than each client may always have.
  bool is_little(std::size_t bytes) const { return bytes <= room_.limits_.small; }
  bool holds_little() const { return is_little(held()); }
  // In a round each client that waits has one turn. This is the part of a round that one turn may last, 0 to 1, if each
  // client takes as many bytes as this one holds. It is 1 if no other client waits.
  double share_of_round() const;

 private:
  friend class Room;

  Room& room_;
  const std::uint64_t number_;  // in the line
  Ledger::Client entry_;
  Holding* waits_ = nullptr;  // in the line: one Claim at a time
};

// Claim holds bytes of one client until it is destroyed. Without a client it may have any size.
class Room::Claim {
 public:
  Claim();
  explicit Claim(std::shared_ptr<Client> client);
  ~Claim();
  Claim(Claim&&) noexcept;
  Claim& operator=(Claim&&) noexcept;

  std::size_t size() const;
  // Returns false and changes nothing if the client may not have this many bytes now. The Claim then waits in the line
  // for this size, until its next resize or its end: serve_line gives it the bytes. Fewer bytes are always allowed. If
  // another Claim of the client waits already, this one is only refused.
  bool resize(std::size_t size);
  bool waits() const;
  bool has_client() const { return holding_ != nullptr; }
  bool is_of(const Room& room) const;

 private:
  std::unique_ptr<Holding> holding_;  // null: without a client
  std::size_t size_ = 0;              // without a client
};

}  // namespace weft::onc_tcp
