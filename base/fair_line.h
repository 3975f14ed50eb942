#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ledger.h"
#include "base/queue.h"

namespace weft {

// FairLine orders what clients wait for: turns of a worker, memory, a search. The next turn belongs to the address that
// will have received least after it, and in it to the client of which the same is true. What a turn costs is known when
// it ends (microseconds) or when it begins (octets); until then the caller's guess counts, or the client's last turns
// tell. So a client that asks for little is next, however many others wait for how much.
//
// Waiting earns nothing. A client that comes into the line counts as if it had received as much as the client that was
// next last. So does a client that others passed because it could not begin.
//
// Coming anew earns nothing, either. An address that comes back counts as if it had received as much as it had when it
// went. A connection cannot be known again, so a newcomer of an address counts as if it had received as much as any
// client of this address that is gone. So a client that leaves and comes back begins no earlier than if it had stayed.
// Newcomers with one turn and no second one count together as one client, and the next newcomer stands behind all that
// they received. But a newcomer that asks for little stands no further back than if each of them, and the client that
// received most, had received as little. A client that received nothing moves no place.
//
// The line knows a client from its first push until remove() and the end of its last turn. It bounds nothing: the
// things in it hold Leases of a Ledger. The same rule for threads as of the Ledger.
template <typename T>
class FairLine {
 public:
  struct Client {
    std::uint64_t number = 0;  // names the client in this line
    std::string address;
  };
  struct Turn {
    T what;
    std::uint64_t client = 0;
    Amount expected = 0;  // for done()
  };

  // max_turns: turns of one address that may go on at once.
  explicit FairLine(std::size_t max_turns = SIZE_MAX) : max_turns_(max_turns) {}
  FairLine(const FairLine&) = delete;
  FairLine& operator=(const FairLine&) = delete;

  // push: what one client waits for stays in the order of its pushes, but for put_back. Not for a client that was
  // removed. expected: the likely cost of the turn; 0: the client's last turns are the only hint.
  void push(const Client& client, T what, Amount expected = 0);
  // Whether a turn may begin now.
  bool has_next() const { return next_address() != nullptr; }
  // The next turn, which goes on until done(); nothing if none may begin.
  std::optional<Turn> take();
  // A turn of take() does not begin. It would cost much more than was expected. What waited stands in the line again,
  // behind what else its client waits for. Its address counts as one whose turns cost as much.
  void put_back(Turn turn, Amount expected);
  // A turn of take() has ended, and cost this much.
  void done(const Turn& turn, Amount cost) { done(turn.client, turn.expected, cost); }
  void done(std::uint64_t client, Amount expected, Amount cost);

  // serve_at_once: a client that does not wait received something; 0: nothing to speak of. From now on the line knows
  // the client. Later newcomers that expect as much stand behind it.
  void serve_at_once(const Client& client, Amount cost);

  // Offer is the answer of a client whose turn came: it began, at this cost, or it has to wait on. Then others do not
  // take what it waits for. But clients of its address that expect less may pass it as long as all of them together
  // take no more than it expects.
  struct Offer {
    Ledger::Verdict verdict = Ledger::Verdict::kClient;
    Amount cost = 0;  // with kFits

    static Offer begun(Amount cost) { return {Ledger::Verdict::kFits, cost}; }
    // kClient: for something of its own, so others may pass it. kAddress: for something of its address. kAll: for
    // something that all have in common.
    static Offer waits(Ledger::Verdict verdict) { return {verdict, 0}; }
  };
  // serve_next offers the first things of the clients, in the order of the line, until one of them begins: `begins`
  // gets the client's number and the thing, and returns an Offer. What has begun has left the line. False: nothing has
  // begun. `begins` may push and remove other clients.
  template <typename F>
  bool serve_next(F&& begins);
  // The client waits no more. The line still knows it.
  void withdraw(std::uint64_t client);

  // The client is gone. Its waiting things are returned.
  std::vector<T> remove(std::uint64_t client);

  // Waiting things: of all, of an address, of a client.
  std::size_t size() const { return size_; }
  std::size_t size_of(std::string_view address) const;
  std::size_t size_of_client(std::uint64_t client) const;
  // Whether others than this client wait.
  bool others_wait(std::uint64_t client) const { return size_ > size_of_client(client); }
  std::size_t num_clients() const { return clients_.size(); }
  std::size_t num_addresses() const { return addresses_.size(); }

 private:
  // Place says where a member stands: by what it will have received after its next turn, then by its last turn.
  struct Place {
    Amount due = 0;
    std::uint64_t served = 0;
    auto operator<=>(const Place&) const = default;
  };
  // Turns: a member has had none yet, its first one, or more.
  enum class Turns : std::uint8_t { kNone, kFirst, kMore };
  // Received is what a member of an Order received, and what it is likely to receive in its next turn.
  struct Received {
    Amount sum = 0;
    Amount per_turn = 0;
    Turns turns = Turns::kNone;
    Amount in_door = 0;  // kFirst: its part of Order::door

    void count(Amount cost) { per_turn = per_turn == 0 ? cost : per_turn - per_turn / 4 + cost / 4; }
  };
  // Order: the members that wait, the next one first; and where newcomers begin. A turn begins at no more than `floor`.
  // So `most` and `gone` exceed `floor` by no more than the turns that one member had at once. `door` exceeds it by no
  // more than the first turns in it.
  template <typename Member>
  struct Order {
    std::map<Place, Member*> line;
    Amount floor = 0;      // received by the one that was next last
    Amount most = 0;       // the most that a member has received
    Amount gone = 0;       // the most that a client had received when it went; addresses have `debts_`
    Amount door = 0;       // where the first turns of newcomers began, and what these turns cost
    double num_first = 0;  // of these turns, those by which the door exceeds the floor

    // First turns that the floor has passed keep no newcomer back any more.
    void raise_floor(Amount to) {
      const Amount now = std::max(floor, to);
      const Amount before = door - std::min(door, floor), left = door - std::min(door, now);
      num_first = left == 0 ? 0 : num_first * static_cast<double>(left) / static_cast<double>(before);
      floor = now;
    }
  };
  struct Address;
  struct Member {
    std::uint64_t number = 0;
    Address* address = nullptr;
    Place place;
    Received received;
    struct Waiting {
      T what;
      Amount expected = 0;
    };
    Queue<Waiting> things;
    std::size_t num_turns = 0;
    bool is_removed = false;
    bool waits() const { return !things.empty(); }
    // What its next turn is likely to cost.
    Amount likely() const {
      return waits() && things.front().expected != 0 ? things.front().expected : received.per_turn;
    }
  };
  struct Address {
    std::string name;
    Place place;
    Received received;
    Order<Member> order;
    std::size_t num_things = 0;
    std::size_t num_turns = 0;
    std::size_t num_members = 0;
    std::uint64_t passed = 0;  // the client whose turn it is, and that has to wait
    Amount passed_by = 0;      // what others have taken meanwhile
    bool waits() const { return !order.line.empty(); }
    Amount likely() const { return received.per_turn; }
  };

  // Debts: what addresses that are gone had received, where that is more than a newcomer begins with. So many are
  // remembered; of more, those that received least are forgotten.
  class Debts {
   public:
    void note(const std::string& name, Amount sum, Amount floor) {
      if (const auto at = sums_.find(name); at != sums_.end()) by_sum_.erase({at->second, name});
      sums_[name] = sum;
      by_sum_.insert({sum, name});
      while (!by_sum_.empty() && (by_sum_.begin()->first <= floor || by_sum_.size() > kMost)) {
        sums_.erase(by_sum_.begin()->second);
        by_sum_.erase(by_sum_.begin());
      }
    }
    Amount of(const std::string& name) const {
      const auto at = sums_.find(name);
      return at == sums_.end() ? 0 : at->second;
    }

   private:
    static constexpr std::size_t kMost = 4096;
    std::unordered_map<std::string, Amount> sums_;
    std::set<std::pair<Amount, std::string>> by_sum_;
  };

  Member& enter(const Client& client, Amount expected);
  Address* next_address() const;
  void leave(Member& member);
  void forget_if_over(Member& member);
  // Changes what a member and its address have received.
  void charge(Member& member, Amount from, Amount to);
  // The same with the cost of a turn that has ended.
  void settle(Member& member, Amount expected, Amount cost);
  void pop(Member& member);
  enum class Served : std::uint8_t { kBegun, kNextAddress, kNone };
  template <typename F>
  Served serve_address(const Place& address, F& begins);
  bool may_pass(const Place& address, std::uint64_t client, Amount expected);
  void begin_turn(Member& member);
  template <typename M>
  void charge(M& member, Order<M>& order, Amount from, Amount to);
  // Where a newcomer begins.
  template <typename M>
  static Amount beginning(const Order<M>& order, Amount expected, Amount debt);
  // A member that was known before it waits for the first time begins no further back than a newcomer does.
  template <typename M>
  static void begin_as_newcomer(M& member, const Order<M>& order, Amount expected, Amount debt);
  template <typename M>
  void begin_turn(M& member, Order<M>& order);
  // The first turn of a member did not begin. The member stands where a newcomer with this expectation does.
  template <typename M>
  void begin_again(M& member, Order<M>& order, Amount at_least);
  template <typename M>
  void stand(M& member, Order<M>& order);
  template <typename M>
  void restand(M& member, Order<M>& order);

  // So many turns of this cost sum up to no more than an Amount holds for centuries.
  static constexpr Amount kMaxCost = Amount{1} << 40;

  const std::size_t max_turns_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Member>> clients_;
  std::unordered_map<std::string, std::unique_ptr<Address>> addresses_;
  Order<Address> order_;
  Debts debts_;
  std::uint64_t last_served_ = 0;
  Received mean_;  // of all turns
  std::size_t size_ = 0;
};

template <typename T>
template <typename M>
Amount FairLine<T>::beginning(const Order<M>& order, Amount expected, Amount debt) {
  Amount ahead = std::max({order.floor, order.most, order.door}) - order.floor;
  if (expected != 0) {
    const double least = (1 + order.num_first) * static_cast<double>(expected);
    if (least < static_cast<double>(ahead)) ahead = static_cast<Amount>(least);
  }
  return std::max(order.floor + ahead, debt);
}

template <typename T>
template <typename M>
void FairLine<T>::begin_as_newcomer(M& member, const Order<M>& order, Amount expected, Amount debt) {
  if (member.waits() || member.received.turns != Turns::kNone) return;
  member.received.sum = std::min(member.received.sum, beginning(order, expected, debt));
}

template <typename T>
template <typename M>
void FairLine<T>::begin_turn(M& member, Order<M>& order) {
  Received& received = member.received;
  // A member whose turn it was would have begun before the floor came so far.
  if (member.waits() && order.floor > member.place.due) received.sum += order.floor - member.place.due;
  order.raise_floor(received.sum);
  if (received.turns == Turns::kNone) {
    received.turns = Turns::kFirst;
    order.door = std::max(order.door, received.sum);
    ++order.num_first;
  } else if (received.turns == Turns::kFirst) {
    received.turns = Turns::kMore;
    order.door -= std::min(order.door, received.in_door);
    order.num_first -= std::min(order.num_first, 1.0);
  }
}

template <typename T>
template <typename M>
void FairLine<T>::stand(M& member, Order<M>& order) {
  member.received.sum = std::max(member.received.sum, order.floor);
  member.place.due = member.received.sum + member.likely();
  order.line.emplace(member.place, &member);
}

template <typename T>
typename FairLine<T>::Member& FairLine<T>::enter(const Client& client, Amount expected) {
  std::unique_ptr<Member>& member = clients_[client.number];
  if (member) return *member;
  member = std::make_unique<Member>();
  member->number = client.number;
  std::unique_ptr<Address>& address = addresses_[client.address];
  if (!address) {
    address = std::make_unique<Address>();
    address->name = client.address;
    address->received.sum = beginning(order_, expected, debts_.of(client.address));
    address->place.served = ++last_served_;
  }
  member->address = address.get();
  ++address->num_members;
  member->received.sum = beginning(address->order, expected, address->order.gone);
  member->place.served = ++last_served_;
  return *member;
}

template <typename T>
void FairLine<T>::push(const Client& client, T what, Amount expected) {
  expected = std::min(expected, kMaxCost);
  Member& member = enter(client, expected);
  Address& address = *member.address;
  begin_as_newcomer(address, order_, expected, debts_.of(address.name));
  begin_as_newcomer(member, address.order, expected, address.order.gone);
  const bool is_first = !member.waits();
  member.things.push_back({std::move(what), expected});
  if (is_first) {
    if (!address.waits()) stand(address, order_);
    stand(member, address.order);
  }
  ++address.num_things;
  ++size_;
}

// The member has no waiting thing any more.
template <typename T>
void FairLine<T>::leave(Member& member) {
  Address& address = *member.address;
  address.order.line.erase(member.place);
  if (!address.waits()) order_.line.erase(address.place);
}

template <typename T>
void FairLine<T>::pop(Member& member) {
  if (member.things.size() == 1) leave(member);
  member.things.pop_front();
  member.things.trim();
  --member.address->num_things;
  --size_;
  if (member.waits()) restand(member, member.address->order);
}

template <typename T>
typename FairLine<T>::Address* FairLine<T>::next_address() const {
  for (const auto& [place, address] : order_.line) {
    if (address->num_turns < max_turns_) return address;
  }
  return nullptr;
}

template <typename T>
template <typename M>
void FairLine<T>::charge(M& member, Order<M>& order, Amount from, Amount to) {
  Received& received = member.received;
  received.sum = received.sum - std::min(received.sum, from) + to;
  if (received.turns == Turns::kFirst) {
    received.in_door = received.in_door - std::min(received.in_door, from) + to;
    order.door = order.door - std::min(order.door, from) + to;
  }
  restand(member, order);
}

// Gives the member the place that it has by now, also in the line if it stands there.
template <typename T>
template <typename M>
void FairLine<T>::restand(M& member, Order<M>& order) {
  const Place place{member.received.sum + member.likely(), ++last_served_};
  if (member.waits()) {
    auto node = order.line.extract(member.place);
    node.key() = place;
    order.line.insert(std::move(node));
  }
  member.place = place;
}

template <typename T>
void FairLine<T>::charge(Member& member, Amount from, Amount to) {
  charge(member, member.address->order, from, to);
  charge(*member.address, order_, from, to);
}

template <typename T>
void FairLine<T>::settle(Member& member, Amount expected, Amount cost) {
  cost = std::min(cost, kMaxCost);
  mean_.count(cost);
  member.received.count(cost);
  member.address->received.count(cost);
  charge(member, expected, cost);
  Address& address = *member.address;
  address.order.most = std::max(address.order.most, member.received.sum);
  order_.most = std::max(order_.most, address.received.sum);
}

template <typename T>
std::optional<typename FairLine<T>::Turn> FairLine<T>::take() {
  Address* address = next_address();
  if (address == nullptr) return std::nullopt;
  Member& member = *address->order.line.begin()->second;
  begin_turn(member);
  const Amount likely = member.likely() != 0 ? member.likely() : mean_.per_turn;
  const Amount expected = std::max<Amount>(likely, 1);
  Turn turn{std::move(member.things.front().what), member.number, expected};
  charge(member, 0, expected);
  pop(member);
  ++member.num_turns;
  ++address->num_turns;
  return turn;
}

template <typename T>
template <typename M>
void FairLine<T>::begin_again(M& member, Order<M>& order, Amount at_least) {
  Received& received = member.received;
  if (received.turns != Turns::kFirst) return;
  received.turns = Turns::kNone;
  received.in_door = 0;
  order.num_first -= std::min(order.num_first, 1.0);
  received.sum = std::max(received.sum, at_least);
  restand(member, order);
}

template <typename T>
void FairLine<T>::put_back(Turn turn, Amount expected) {
  Member& member = *clients_.at(turn.client);
  Address& address = *member.address;
  // The place of an address depends on the cost of its turns, and this cost is new.
  address.received.per_turn = std::max(address.received.per_turn, expected);
  charge(member, turn.expected, 0);
  begin_again(member, address.order, beginning(address.order, expected, address.order.gone));
  begin_again(address, order_, beginning(order_, expected, debts_.of(address.name)));
  --member.num_turns;
  --address.num_turns;
  push({turn.client, address.name}, std::move(turn.what), expected);
}

template <typename T>
void FairLine<T>::done(std::uint64_t client, Amount expected, Amount cost) {
  const auto at = clients_.find(client);
  if (at == clients_.end()) return;
  Member& member = *at->second;
  settle(member, expected, cost);
  --member.num_turns;
  --member.address->num_turns;
  forget_if_over(member);
}

// Places stay in order while others come and go, so a Place is where the round goes on.
template <typename T>
template <typename F>
bool FairLine<T>::serve_next(F&& begins) {
  for (auto at = order_.line.begin(); at != order_.line.end();) {
    const Place place = at->first;
    const Served served = serve_address(place, begins);
    if (served != Served::kNextAddress) return served == Served::kBegun;
    at = order_.line.upper_bound(place);
  }
  return false;
}

template <typename T>
template <typename F>
typename FairLine<T>::Served FairLine<T>::serve_address(const Place& address, F& begins) {
  using Verdict = Ledger::Verdict;
  std::optional<Place> last;
  Amount below = kUnbounded;  // clients that expect as much or more are passed over
  bool passes = false;
  for (;;) {
    const auto of = order_.line.find(address);
    if (of == order_.line.end()) return Served::kNextAddress;
    Address& from = *of->second;
    const auto& line = from.order.line;
    const auto at = last ? line.upper_bound(*last) : line.begin();
    if (at == line.end()) return Served::kNextAddress;
    last = at->first;
    const std::uint64_t number = at->second->number;
    const Amount expected = at->second->likely();
    if (expected >= below) continue;
    const Offer offer = begins(number, at->second->things.front().what);
    if (offer.verdict == Verdict::kAll) return Served::kNone;
    if (offer.verdict == Verdict::kClient) continue;
    if (offer.verdict == Verdict::kAddress) {
      if (!passes && !may_pass(address, number, expected)) return Served::kNextAddress;
      passes = true;
      below = expected;
      continue;
    }
    const auto again = clients_.find(number);
    if (again == clients_.end()) return Served::kBegun;
    Member& member = *again->second;
    begin_turn(member);
    if (passes) member.address->passed_by += offer.cost;
    settle(member, 0, offer.cost);
    if (member.waits()) pop(member);
    forget_if_over(member);
    return Served::kBegun;
  }
}

// Whether others may pass this client, the first one of its address that waits for what others would take.
template <typename T>
bool FairLine<T>::may_pass(const Place& address, std::uint64_t client, Amount expected) {
  const auto of = order_.line.find(address);
  if (of == order_.line.end()) return false;
  Address& from = *of->second;
  if (std::exchange(from.passed, client) != client) from.passed_by = 0;
  return from.passed_by < expected;
}

template <typename T>
void FairLine<T>::begin_turn(Member& member) {
  begin_turn(*member.address, order_);
  begin_turn(member, member.address->order);
}

// As if it had come into the line and been next.
template <typename T>
void FairLine<T>::serve_at_once(const Client& client, Amount cost) {
  Member& member = enter(client, cost);
  if (cost == 0) return;
  Address& address = *member.address;
  if (!address.waits()) address.received.sum = std::max(address.received.sum, order_.floor);
  if (!member.waits()) member.received.sum = std::max(member.received.sum, address.order.floor);
  begin_turn(member);
  settle(member, 0, cost);
}

template <typename T>
void FairLine<T>::withdraw(std::uint64_t client) {
  const auto at = clients_.find(client);
  if (at == clients_.end()) return;
  while (at->second->waits()) pop(*at->second);
}

template <typename T>
std::vector<T> FairLine<T>::remove(std::uint64_t client) {
  std::vector<T> left;
  const auto at = clients_.find(client);
  if (at == clients_.end()) return left;
  Member& member = *at->second;
  member.is_removed = true;
  if (member.waits()) {
    leave(member);
    for (auto& thing : member.things.take_all()) left.push_back(std::move(thing.what));
    member.address->num_things -= left.size();
    size_ -= left.size();
  }
  forget_if_over(member);
  return left;
}

template <typename T>
void FairLine<T>::forget_if_over(Member& member) {
  if (!member.is_removed || member.waits() || member.num_turns != 0) return;
  Address& address = *member.address;
  const auto has_received = [](const Received& received) { return received.turns != Turns::kNone; };
  if (has_received(member.received)) address.order.gone = std::max(address.order.gone, member.received.sum);
  const std::uint64_t number = member.number;
  clients_.erase(number);
  if (--address.num_members != 0) return;
  const std::string name = address.name;
  if (has_received(address.received)) debts_.note(name, address.received.sum, order_.floor);
  addresses_.erase(name);
}

template <typename T>
std::size_t FairLine<T>::size_of(std::string_view address) const {
  const auto at = addresses_.find(std::string(address));
  return at == addresses_.end() ? 0 : at->second->num_things;
}

template <typename T>
std::size_t FairLine<T>::size_of_client(std::uint64_t client) const {
  const auto at = clients_.find(client);
  return at == clients_.end() ? 0 : at->second->things.size();
}

}  // namespace weft
