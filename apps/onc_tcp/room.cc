#include "apps/onc_tcp/room.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace weft::onc_tcp {

using Verdict = Ledger::Verdict;

// Holding is what a Claim has of a client. It stays where it is while the Claim moves.
struct Room::Holding {
  explicit Holding(std::shared_ptr<Client> of) : client(std::move(of)), lease(client->entry_.lease()) {}
  ~Holding() { withdraw(); }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

  bool waits() const { return client->waits_ == this; }
  void withdraw();
  bool resize(std::size_t to);
  void stand_in_line(std::size_t to);
  // Its turn.
  FairLine<Holding*>::Offer grow();

  std::shared_ptr<Client> client;  // before its Lease
  Lease lease;
  std::size_t wish = 0;  // the size that it waits for
};

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

bool Room::serve_line() {
  if (!is_due_ && ledger_.num_returns() == seen_returns_) return false;
  is_due_ = is_all_short_ = false;
  const auto grow = [this](std::uint64_t, Holding* holding) {
    const auto offer = holding->grow();
    is_all_short_ = is_all_short_ || offer.verdict == Verdict::kAll;
    return offer;
  };
  const std::uint64_t before = num_turns_;
  while (line_.serve_next(grow)) ++num_turns_;
  seen_returns_ = ledger_.num_returns();
  return num_turns_ != before;
}

// A client passes no other client of its address. While the first Claim lacks bytes of the whole Room, it passes no
// client at all.
bool Room::may_pass(const Client& client) const {
  return line_.size_of(client.entry_.address()) == 0 && !(is_all_short_ && line_.size() != 0);
}

// The line knows the client from now on. Memory for that stays as long as the client. Allocated later, it would lie
// among the memory of the first Call, whose pages could then not be given back.
Room::Client::Client(Room& room, Ledger::Client entry)
    : room_(room), number_(++room.last_number_), entry_(std::move(entry)) {
  room_.line_.serve_at_once({number_, entry_.address()}, 0);
}

Room::Client::~Client() {
  room_.line_.remove(number_);
  room_.is_due_ = true;
}

double Room::Client::share_of_round() const {
  if (holds_little()) return 1;
  const auto share = [this](std::size_t room, std::size_t num_waiting) {
    return std::min(1.0, static_cast<double>(room) / (static_cast<double>(num_waiting) * static_cast<double>(held())));
  };
  const FairLine<Holding*>& line = room_.line_;
  const std::size_t own = line.size_of_client(number_), of_address = line.size_of(entry_.address()) - own;
  const Limits& limits = room_.limits_;
  const double among_own = of_address == 0 ? 1 : share(limits.per_address, of_address);
  const std::size_t of_all = room_.is_all_short_ ? line.size() - own : 0;
  return of_all == 0 ? among_own : std::min(among_own, share(limits.total - limits.reserve, of_all));
}

void Room::Holding::withdraw() {
  if (!waits()) return;
  client->waits_ = nullptr;
  client->room_.line_.withdraw(client->number_);
  client->room_.is_due_ = true;
}

void Room::Holding::stand_in_line(std::size_t to) {
  if (client->waits_ != nullptr) return;
  client->waits_ = this;
  wish = to;
  client->room_.line_.push({client->number_, client->entry_.address()}, this, to - lease.amount());
  client->room_.is_due_ = true;
}

bool Room::Holding::resize(std::size_t to) {
  if (waits() && to == wish) return false;
  withdraw();
  Room& room = client->room_;
  if (to <= lease.amount()) return lease.resize(to) == Verdict::kFits;
  const std::size_t more = to - static_cast<std::size_t>(lease.amount());
  // More clients than the reserve is for may be there.
  const bool is_there = more <= room.limits_.total - room.used();
  if (client->entry_.is_guaranteed(more)) return is_there && lease.resize(to) == Verdict::kFits;
  if (is_there && room.may_pass(*client) && lease.resize(to) == Verdict::kFits) {
    room.line_.serve_at_once({client->number_, client->entry_.address()}, more);
    return true;
  }
  stand_in_line(to);
  return false;
}

FairLine<Room::Holding*>::Offer Room::Holding::grow() {
  const std::size_t more = wish - static_cast<std::size_t>(lease.amount());
  if (more > client->room_.limits_.total - client->room_.used()) return FairLine<Holding*>::Offer::waits(Verdict::kAll);
  const Verdict verdict = lease.resize_in_turn(wish);
  if (verdict != Verdict::kFits) return FairLine<Holding*>::Offer::waits(verdict);
  client->waits_ = nullptr;  // the line drops it itself
  return FairLine<Holding*>::Offer::begun(more);
}

Room::Claim::Claim() = default;
Room::Claim::~Claim() = default;
Room::Claim::Claim(Claim&&) noexcept = default;
Room::Claim& Room::Claim::operator=(Claim&&) noexcept = default;

Room::Claim::Claim(std::shared_ptr<Client> client)
    : holding_(client ? std::make_unique<Holding>(std::move(client)) : nullptr) {}

std::size_t Room::Claim::size() const {
  return holding_ ? static_cast<std::size_t>(holding_->lease.amount()) : size_;
}

bool Room::Claim::resize(std::size_t size) {
  if (holding_) return holding_->resize(size);
  size_ = size;
  return true;
}

bool Room::Claim::is_of(const Room& room) const {
  return holding_ && &holding_->client->room_ == &room;
}

bool Room::Claim::waits() const {
  return holding_ && holding_->waits();
}

}  // namespace weft::onc_tcp
