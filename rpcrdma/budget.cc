#include "rpcrdma/budget.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "rpcrdma/responder.h"

namespace weft::rpcrdma {

// Rest: bytes of Calls that a service still has after their connection is gone.
class Budget::Rest {
 public:
  Rest(Budget& budget, Group& group, std::size_t octets) : budget_(budget.alive_), group_(group), octets_(octets) {
    budget.charge(group, octets);
    budget.held += octets;
    ++group.num_users;
  }
  ~Rest() {
    const auto budget = budget_.lock();
    if (!budget) return;
    (*budget)->give_back(group_, octets_);
    subtract((*budget)->held, octets_);
    (*budget)->is_due_ = true;
    (*budget)->leave(group_);
  }
  Rest(const Rest&) = delete;
  Rest& operator=(const Rest&) = delete;

 private:
  std::weak_ptr<Budget*> budget_;
  Group& group_;
  std::size_t octets_;
};

Budget::Group& Budget::enter(const std::string& name) {
  std::unique_ptr<Group>& group = groups_[name];
  if (!group) {
    group = std::make_unique<Group>();
    group->name = name;
  }
  ++group->num_users;
  return *group;
}

void Budget::leave(Group& group) {
  if (--group.num_users != 0) return;
  const std::string name = group.name;
  groups_.erase(name);
}

bool Budget::fits(const Group& group, std::size_t octets, std::size_t own) const {
  if (used > limit || octets > limit - used) return false;
  if (max_per_group == 0) return true;
  if (group.used == own) return own <= max_per_group && octets <= max_per_group - own;
  const std::size_t free = limit - used;
  if (group.used > max_per_group || group.used > free) return false;
  const std::size_t room = std::min(max_per_group - group.used, free - group.used);
  return octets <= room / 2;
}

void Budget::charge(Group& group, std::size_t octets) {
  group.used += octets;
  used += octets;
}

// Nothing comes back that was not taken. If it did all the same, a sum that wraps would make all Calls wait for ever.
void Budget::subtract(std::size_t& from, std::size_t octets) {
  assert(octets <= from);
  from -= std::min(from, octets);
}

void Budget::give_back(Group& group, std::size_t octets) {
  subtract(group.used, octets);
  subtract(used, octets);
}

void Budget::admit_waiting() {
  while (std::exchange(is_due_, false) && !line_.empty()) {
    // A connection that started a Call goes to the end of the line. This round covers only the connections that are in
    // the line now.
    const std::vector<Responder*> round(line_.begin(), line_.end());
    for (Responder* responder : round) responder->take_turn();
  }
}

bool Budget::is_short(const std::string& group) const {
  const auto at = groups_.find(group);
  return at != groups_.end() && at->second->num_waiting != 0;
}

BudgetShare::BudgetShare(Budget& budget, Responder& owner, const std::string& group, const Limits& limits)
    : budget_(budget), owner_(owner), group_(budget.enter(group)), limits_(limits) {}

BudgetShare::~BudgetShare() {
  wait_no_more();
  give_back(held_);
  budget_.leave(group_);
}

BudgetShare::Verdict BudgetShare::take(std::size_t octets, std::size_t own) {
  const bool is_alone = held_ == own;
  if (!is_alone && (held_ > limits_.max_held || octets > limits_.max_held - held_)) return Verdict::kOwnLimit;
  const std::size_t more = beyond(held_ + octets) - beyond(held_);
  if (more != 0 && !budget_.fits(group_, more, is_alone ? beyond(held_) : 0)) return Verdict::kShort;
  budget_.charge(group_, more);
  budget_.held += octets;
  held_ += octets;
  return Verdict::kTaken;
}

void BudgetShare::give_back(std::size_t octets) {
  if (octets == 0) return;
  cancel(octets);
  budget_.is_due_ = true;
}

void BudgetShare::cancel(std::size_t octets) {
  const std::size_t before = held_;
  Budget::subtract(held_, octets);
  budget_.give_back(group_, beyond(before) - beyond(held_));
  Budget::subtract(budget_.held, before - held_);
}

std::shared_ptr<const void> BudgetShare::leave_behind(std::size_t octets) {
  give_back(octets);
  // A connection that is gone has no guarantee.
  return std::make_shared<const Budget::Rest>(budget_, group_, octets);
}

bool BudgetShare::others_wait() const {
  return group_.num_waiting > (waits_ ? 1u : 0u);
}

bool BudgetShare::is_wanted() const {
  const bool is_scarce = budget_.used >= budget_.limit - budget_.limit / 4;
  return others_wait() || (is_scarce && budget_.line_.size() > (waits_ ? 1u : 0u));
}

void BudgetShare::wait_in_line() {
  if (std::exchange(waits_, true)) return;
  at_ = budget_.line_.insert(budget_.line_.end(), &owner_);
  ++group_.num_waiting;
  budget_.is_due_ = true;
}

void BudgetShare::go_to_end() {
  if (!waits_) return;
  budget_.line_.splice(budget_.line_.end(), budget_.line_, at_);
  budget_.is_due_ = true;
}

void BudgetShare::wait_no_more() {
  if (!std::exchange(waits_, false)) return;
  budget_.line_.erase(at_);
  --group_.num_waiting;
}

}  // namespace weft::rpcrdma
