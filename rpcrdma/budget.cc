#include "rpcrdma/budget.h"

#include <algorithm>
#include <utility>

#include "rpcrdma/responder.h"

namespace weft::rpcrdma {

namespace {

Amount amount_of(std::size_t octets) {
  return octets == SIZE_MAX ? kUnbounded : Amount{octets};
}

Ledger::Bounds memory_bounds(const Budget::Bounds& bounds) {
  return {.client = amount_of(bounds.connection),
          .address = amount_of(bounds.address),
          .all = amount_of(bounds.all),
          .guaranteed = bounds.guaranteed,
          .leaves_as_much = bounds.address != SIZE_MAX,
          .one_may_fill = true,
          .one_may_exceed = true};
}

Ledger::Bounds slow_bounds(const Budget::Bounds& bounds) {
  const auto part = [](std::size_t octets) { return amount_of(octets == SIZE_MAX ? octets : octets / 4); };
  return {.address = part(bounds.address), .all = part(bounds.all), .leaves_as_much = bounds.address != SIZE_MAX};
}

}  // namespace

Budget::Budget(const Bounds& bounds)
    : bounds_(bounds),
      memory_(memory_bounds(bounds)),
      finishing_({.all = bounds.finishing}),
      slow_(slow_bounds(bounds)) {}

void Budget::admit_waiting() {
  const std::uint64_t num_returns = memory_.num_returns() + finishing_.num_returns();
  if (num_returns == seen_returns_ && !is_due_) return;
  is_due_ = is_all_short_ = keeps_finishing_ = false;
  // Slow Calls go before new ones. They have a quarter at most, so most of what comes back is for the new ones.
  for (const auto line : {BudgetShare::Line::kBegun, BudgetShare::Line::kSlow, BudgetShare::Line::kNew}) {
    while (serve_next(static_cast<std::size_t>(line))) continue;
  }
  // Octets that a turn took and gave back again need no further round.
  seen_returns_ = memory_.num_returns() + finishing_.num_returns();
}

bool Budget::serve_next(std::size_t line) {
  const auto which = static_cast<BudgetShare::Line>(line);
  BudgetShare* begun = nullptr;
  const bool has_begun = lines_[line].serve_next([&](std::uint64_t, BudgetShare* share) {
    offered_ = share;
    const Line::Offer offer = share->take_turn(which);
    share = std::exchange(offered_, nullptr);  // null: its connection is gone
    is_all_short_ = is_all_short_ || (which != BudgetShare::Line::kSlow && offer.verdict == Ledger::Verdict::kAll);
    if (offer.verdict == Ledger::Verdict::kFits) {
      begun = share;
    } else if (share != nullptr) {
      share->settle();
    }
    return offer;
  });
  if (begun == nullptr) return has_begun;
  begun->wish_of(which).is_in_line = false;
  begun->settle();
  return true;
}

bool Budget::is_short(const std::string& address) const {
  return std::ranges::any_of(lines_that_want(), [&](const Line& line) { return line.size_of(address) != 0; });
}

BudgetShare::BudgetShare(Budget& budget, Responder& owner, const std::string& address)
    : budget_(budget), owner_(owner), number_(++budget.last_number_), client_(budget.memory_.enter(address)) {}

BudgetShare::~BudgetShare() {
  budget_.is_due_ = true;
  for (Budget::Line& line : budget_.lines_) line.remove(number_);
  if (budget_.offered_ == this) budget_.offered_ = nullptr;
}

BudgetShare::Verdict BudgetShare::take(Lease& lease, std::size_t octets) {
  const bool is_counted = !client_.is_guaranteed(octets);
  if (!is_counted && !std::exchange(is_known_, true)) {
    line_of(Line::kNew).serve_at_once({number_, client_.address()}, 0);
  }
  if (!lease) lease = client_.lease();
  const Verdict verdict = lease.resize(lease.amount() + octets);
  // The turn's end counts the octets of a turn.
  if (verdict == Verdict::kFits && is_counted && budget_.offered_ != this) {
    line_of(Line::kNew).serve_at_once({number_, client_.address()}, octets);
  }
  return verdict;
}

bool BudgetShare::has_slow(std::size_t octets) {
  if (!slow_) slow_ = budget_.slow_.enter(client_.address());
  return slow_.asks(octets) == Verdict::kFits;
}

BudgetShare::Verdict BudgetShare::take_slow(CallLease& lease, std::size_t octets) {
  if (!slow_) slow_ = budget_.slow_.enter(client_.address());
  lease.slow = slow_.lease();
  return lease.slow.resize(octets);
}

// Half of what an address has for slow Calls.
bool BudgetShare::may_be_slow(std::size_t octets) const {
  const std::size_t most = std::min(budget_.bounds_.address, budget_.bounds_.all);
  return octets <= most / 8;
}

// While the connection that is next waits for more of these octets, no other one takes any.
BudgetShare::Verdict BudgetShare::finish(CallLease& lease, std::size_t octets) {
  if (take(lease.shared, octets) == Verdict::kFits) return Verdict::kFits;
  if (budget_.keeps_finishing_) return Verdict::kAddress;
  if (!finishing_) finishing_ = budget_.finishing_.enter(client_.address());
  if (!lease.finishing) lease.finishing = finishing_.lease();
  const bool fits = lease.finishing.resize(lease.finishing.amount() + octets) == Verdict::kFits;
  if (!fits && budget_.offered_ == this) budget_.keeps_finishing_ = true;
  return fits ? Verdict::kFits : Verdict::kAddress;
}

bool BudgetShare::could_have(std::size_t octets, std::size_t own) const {
  const Budget::Bounds& bounds = budget_.bounds_;
  if (own != 0 && octets <= bounds.finishing) return true;
  const std::size_t most = std::min(bounds.address, bounds.all);
  const std::size_t room = most > SIZE_MAX - bounds.guaranteed ? SIZE_MAX : most + bounds.guaranteed;
  return own <= room && octets <= room - own;
}

bool BudgetShare::others_wait(Line line) const {
  const Budget::Line& all = line_of(line);
  if (all.size() == 0) return false;
  return all.size_of(client_.address()) > all.size_of_client(number_);
}

bool BudgetShare::must_wait(Line line) const {
  if (others_wait(line)) return true;
  return line == Line::kNew &&
         (others_wait(Line::kBegun) || (budget_.is_all_short_ && line_of(line).others_wait(number_)));
}

bool BudgetShare::is_wanted() const {
  if (held() <= budget_.bounds_.guaranteed) return false;
  return others_wait(Line::kBegun) || others_wait(Line::kNew) || is_wanted_by_all() || is_wanted_by_slow();
}

// Whether slow Calls wait for a part that its slow Calls have.
bool BudgetShare::is_wanted_by_slow() const {
  if (!slow_ || slow_.held() == 0) return false;
  const Amount all = slow_bounds(budget_.bounds_).all;
  return others_wait(Line::kSlow) ||
         (budget_.slow_.held() >= all - all / 4 && line_of(Line::kSlow).others_wait(number_));
}

bool BudgetShare::is_wanted_by_all() const {
  const std::size_t all = budget_.bounds_.all;
  return budget_.used() >= all - all / 4 &&
         std::ranges::any_of(budget_.lines_that_want(), [this](const auto& line) { return line.others_wait(number_); });
}

// As many as wait have their turns one after the other, so many at a time as have room for what this one holds.
Duration BudgetShare::given_time(const EarnedTime::Terms& terms, bool is_proven) const {
  if (is_proven) return terms.grace;
  const Budget::Bounds& bounds = budget_.bounds_;
  const auto of_a_round = [&](std::size_t room, auto num_waiting) {
    std::size_t num = 0;
    for (const Budget::Line& line : budget_.lines_that_want()) num += num_waiting(line);
    const double need = static_cast<double>(num) * static_cast<double>(held());
    return terms.round * std::min(1.0, static_cast<double>(room) / std::max(need, 1.0));
  };
  auto time = of_a_round(std::min(bounds.address, bounds.all),
                         [this](const Budget::Line& line) { return line.size_of(client_.address()); });
  if (is_wanted_by_all()) time = std::min(time, of_a_round(bounds.all, [](const auto& line) { return line.size(); }));
  return std::clamp(std::chrono::duration_cast<Duration>(time), std::min(terms.least, terms.grace), terms.grace);
}

void BudgetShare::wait(Line line, std::size_t octets) {
  Wish& wish = wish_of(line);
  wish.is_there = true;
  wish.octets = octets;
  settle(line);
}

void BudgetShare::wait_no_more(Line line) {
  wish_of(line).is_there = false;
  settle(line);
}

// The place in a line stays as it is during the connection's own turn.
void BudgetShare::settle(Line line) {
  Wish& wish = wish_of(line);
  if (wish.is_there == wish.is_in_line || budget_.offered_ == this) return;
  wish.is_in_line = wish.is_there;
  budget_.is_due_ = true;
  if (!wish.is_there) return line_of(line).withdraw(number_);
  line_of(line).push({number_, client_.address()}, this, wish.octets);
}

void BudgetShare::settle() {
  for (const Line line : {Line::kBegun, Line::kNew, Line::kSlow}) settle(line);
}

BudgetShare::Offer BudgetShare::take_turn(Line line) {
  return owner_.take_turn(line);
}

}  // namespace weft::rpcrdma
