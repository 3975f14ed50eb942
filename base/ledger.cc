#include "base/ledger.h"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace weft {

struct Ledger::Address {
  std::string name;
  Amount held = 0;
  Amount shared = 0;
  std::unordered_set<Holder*> clients;  // that are not gone
  std::size_t num_holders = 0;          // clients, and those that are gone and have Leases
};

struct Ledger::State {
  explicit State(const Bounds& b) : bounds(b) {}

  const Bounds bounds;
  Amount held = 0;
  Amount shared = 0;
  std::size_t num_clients = 0;
  std::uint64_t num_returns = 0;
  std::map<std::string, Address, std::less<>> addresses;

  const Address* find(std::string_view name) const {
    const auto at = addresses.find(name);
    return at == addresses.end() ? nullptr : &at->second;
  }
  // Amounts that are held beyond the guarantees.
  struct Shared {
    Amount all = 0, of_address = 0, of_client = 0;
    Amount own = 0;  // of the thing that grows, if its client holds nothing else
  };
  Verdict fits(const Shared& held, Amount more, bool one_may_fill) const;
};

struct Ledger::Holder {
  Holder(std::shared_ptr<State> s, Address& a, std::uint64_t t)
      : state(std::move(s)), address(a), tag(t), guaranteed(state->bounds.guaranteed) {
    ++address.num_holders;
    ++state->num_clients;
    address.clients.insert(this);
  }
  ~Holder() {
    assert(held == 0);
    if (--address.num_holders != 0) return;
    const auto at = state->addresses.find(address.name);
    state->addresses.erase(at);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  Amount beyond(Amount amount) const { return amount > guaranteed ? amount - guaranteed : 0; }
  void set(Amount amount, Amount guarantee);
  Verdict asks(Amount more, Amount own, bool one_may_fill) const;
  // What a thing of `own` waits for, if its turn did not let it have `more` although so much is there.
  Verdict lacks(Amount more, Amount own) const;
  void give_back(Amount amount) {
    assert(amount <= held);
    set(held - std::min(held, amount), guaranteed);
    ++state->num_returns;
  }

  const std::shared_ptr<State> state;
  Address& address;
  const std::uint64_t tag;
  Amount held = 0;
  Amount guaranteed;
};

// Nothing is taken away that was not added before, so no sum wraps.
void Ledger::Holder::set(Amount amount, Amount guarantee) {
  const Amount shared_before = beyond(held);
  guaranteed = guarantee;
  const Amount shared_now = beyond(amount);
  state->shared = state->shared - shared_before + shared_now;
  address.shared = address.shared - shared_before + shared_now;
  state->held = state->held - held + amount;
  address.held = address.held - held + amount;
  held = amount;
}

Ledger::Verdict Ledger::Holder::asks(Amount more, Amount own, bool one_may_fill) const {
  const Bounds& bounds = state->bounds;
  const bool is_alone = held == own;
  if (more > kUnbounded - state->held) return Verdict::kClient;
  if (!(is_alone && bounds.one_may_exceed) && (held > bounds.client || more > bounds.client - held)) {
    return Verdict::kClient;
  }
  const State::Shared shared{state->shared, address.shared, beyond(held), is_alone ? beyond(held) : 0};
  return state->fits(shared, beyond(held + more) - beyond(held), one_may_fill);
}

Ledger::Verdict Ledger::Holder::lacks(Amount more, Amount own) const {
  const Amount others = beyond(held) - beyond(own);
  const State::Shared alone{state->shared - others, address.shared - others, beyond(own), beyond(own)};
  if (others != 0 && state->fits(alone, beyond(own + more) - beyond(own), true) == Verdict::kFits) {
    return Verdict::kClient;
  }
  const State::Shared only_address{address.shared, address.shared, beyond(held), others == 0 ? beyond(held) : 0};
  const bool would_fit = state->fits(only_address, beyond(held + more) - beyond(held), true) == Verdict::kFits;
  return would_fit ? Verdict::kAll : Verdict::kAddress;
}

Ledger::Verdict Ledger::State::fits(const Shared& held, Amount more, bool one_may_fill) const {
  if (more == 0) return Verdict::kFits;
  if (held.of_address > bounds.address || more > bounds.address - held.of_address) return Verdict::kAddress;
  if (held.all > bounds.all || more > bounds.all - held.all) return Verdict::kAll;
  if (!bounds.leaves_as_much || (one_may_fill && held.of_address == held.own)) return Verdict::kFits;
  const Amount most = std::min(bounds.address, bounds.all - held.all - more);
  if (held.of_address > most || more > most - held.of_address) return Verdict::kAddress;
  const Amount left = most - held.of_address - more;
  return held.of_client > left || more > left - held.of_client ? Verdict::kAddress : Verdict::kFits;
}

Ledger::Ledger(const Bounds& bounds) : state_(std::make_shared<State>(bounds)) {}
Ledger::~Ledger() = default;

Ledger::Client Ledger::enter(std::string_view address, std::uint64_t tag) {
  auto at = state_->addresses.find(address);
  if (at == state_->addresses.end()) {
    at = state_->addresses.try_emplace(std::string(address)).first;
    at->second.name = at->first;
  }
  return Client(std::make_shared<Holder>(state_, at->second, tag));
}

Ledger::Verdict Ledger::asks(std::string_view address, Amount amount) const {
  const Bounds& bounds = state_->bounds;
  if (!bounds.one_may_exceed && amount > bounds.client) return Verdict::kClient;
  const Amount more = amount > bounds.guaranteed ? amount - bounds.guaranteed : 0;
  const Address* of = state_->find(address);
  return state_->fits({.all = state_->shared, .of_address = of == nullptr ? 0 : of->shared}, more, bounds.one_may_fill);
}

std::optional<std::uint64_t> Ledger::gives_way(std::string_view newcomer, Amount amount, const Judge& judge) const {
  const Address* own = state_->find(newcomer);
  const Amount before = own == nullptr ? 0 : own->shared;
  // An address that has nothing and finds too little left (leaves_as_much) needs what others have.
  const bool has_share = before != 0 || amount > bounds().address;
  const bool only_own = has_share && asks(newcomer, amount) == Verdict::kAddress;
  const Amount after = amount > kUnbounded - before ? kUnbounded : before + amount;

  const Holder* found = nullptr;
  using Rank = std::tuple<bool, Amount, Tenure, Amount, TimePoint::duration>;
  Rank best;
  const auto consider = [&](const Address& from, const Holder& client) {
    if (client.held == 0) return;
    const Standing standing = judge(client.tag);
    if (standing.tenure == Tenure::kFixed) return;
    const Amount kept = from.shared - std::min(from.shared, amount);
    const bool keeps_as_much = standing.tenure == Tenure::kBusy ? kept >= after : from.shared >= before;
    if (&from != own && standing.tenure != Tenure::kUnused && !keeps_as_much) return;
    const bool is_unused = standing.tenure == Tenure::kUnused;
    const Rank rank{is_unused, from.shared, standing.tenure, standing.weight, -standing.since.time_since_epoch()};
    if (found != nullptr && rank <= best) return;
    found = &client;
    best = rank;
  };
  for (const auto& [name, from] : state_->addresses) {
    if (only_own && &from != own) continue;
    for (const Holder* client : from.clients) consider(from, *client);
  }
  return found == nullptr ? std::nullopt : std::optional(found->tag);
}

const Ledger::Bounds& Ledger::bounds() const {
  return state_->bounds;
}
Amount Ledger::held() const {
  return state_->held;
}
Amount Ledger::shared() const {
  return state_->shared;
}
Amount Ledger::held_by(std::string_view address) const {
  const Address* at = state_->find(address);
  return at == nullptr ? 0 : at->held;
}
Amount Ledger::shared_by(std::string_view address) const {
  const Address* at = state_->find(address);
  return at == nullptr ? 0 : at->shared;
}
std::size_t Ledger::num_clients() const {
  return state_->num_clients;
}
std::size_t Ledger::num_clients(std::string_view address) const {
  const Address* at = state_->find(address);
  return at == nullptr ? 0 : at->clients.size();
}
std::size_t Ledger::num_addresses() const {
  return state_->addresses.size();
}
std::uint64_t Ledger::num_returns() const {
  return state_->num_returns;
}

Ledger::Client& Ledger::Client::operator=(Client&& other) noexcept {
  if (this == &other) return *this;
  leave();
  holder_ = std::move(other.holder_);
  return *this;
}

void Ledger::Client::leave() {
  if (!holder_) return;
  holder_->set(holder_->held, 0);
  holder_->address.clients.erase(holder_.get());
  --holder_->state->num_clients;
  holder_.reset();
}

Lease Ledger::Client::lease() {
  return Lease(holder_);
}

Lease Ledger::Client::take(Amount amount) {
  Lease taken(holder_);
  (void)taken.resize(amount);
  return taken;
}

Ledger::Verdict Ledger::Client::asks(Amount amount) const {
  return holder_ ? holder_->asks(amount, 0, holder_->state->bounds.one_may_fill) : Verdict::kClient;
}

bool Ledger::Client::is_guaranteed(Amount amount) const {
  return holder_ && holder_->held <= holder_->guaranteed && amount <= holder_->guaranteed - holder_->held;
}

Amount Ledger::Client::held() const {
  return holder_ ? holder_->held : 0;
}

const std::string& Ledger::Client::address() const {
  static const std::string none;
  return holder_ ? holder_->address.name : none;
}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  end();
  holder_ = std::move(other.holder_);
  amount_ = std::exchange(other.amount_, 0);
  return *this;
}

Ledger::Verdict Lease::resize(Amount amount) {
  return resize(amount, holder_ && holder_->state->bounds.one_may_fill);
}

Ledger::Verdict Lease::resize_in_turn(Amount amount) {
  const Ledger::Verdict verdict = resize(amount, true);
  if (verdict != Ledger::Verdict::kAddress) return verdict;
  return holder_->lacks(amount - amount_, amount_);
}

Ledger::Verdict Lease::resize(Amount amount, bool one_may_fill) {
  using Verdict = Ledger::Verdict;
  if (!holder_) return amount == 0 ? Verdict::kFits : Verdict::kClient;
  if (amount > amount_) {
    const Verdict verdict = holder_->asks(amount - amount_, amount_, one_may_fill);
    if (verdict != Verdict::kFits) return verdict;
    holder_->set(holder_->held + (amount - amount_), holder_->guaranteed);
  } else if (amount < amount_) {
    holder_->give_back(amount_ - amount);
  }
  amount_ = amount;
  return Verdict::kFits;
}

Lease Lease::split(Amount amount) {
  Lease part(holder_);
  part.amount_ = std::min(amount, amount_);
  amount_ -= part.amount_;
  return part;
}

void Lease::merge(Lease&& other) {
  if (!holder_) {
    *this = std::move(other);
    return;
  }
  assert(!other.holder_ || other.holder_ == holder_);
  amount_ += std::exchange(other.amount_, 0);
  other.holder_.reset();
}

void Lease::end() {
  if (amount_ != 0) holder_->give_back(std::exchange(amount_, 0));
}

std::string to_markdown(const LedgerKind& kind) {
  std::string row = "|";
  for (const std::string_view cell : {kind.name, kind.client, kind.address, kind.all, kind.place, kind.tests}) {
    if (!cell.empty()) row.append(" ").append(cell);
    row += " |";
  }
  return row;
}

}  // namespace weft
