#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

namespace weft::rpcrdma {

class Responder;

// Budget: bytes that all responders of a server promise to hold for chunks and results, against a limit for all and one
// for each group of addresses (peer_group.h). Calls that do not fit wait, and their connections take turns. One thread,
// the server's; it outlives its BudgetShares.
//
// With a limit for each group, a group may take no more than it leaves free, and one Call no more than half of that,
// unless the group holds nothing: so some is left for every other group, and for smaller Calls of the same one.
class Budget {
 public:
  explicit Budget(std::size_t limit_of_all = 0, std::size_t used_now = 0) : limit(limit_of_all), used(used_now) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  std::size_t limit;
  std::size_t used;
  std::size_t max_per_group = 0;  // 0: groups have no limit of their own

  // Lets the connections that wait start Calls, in turn, one Call each time; to be called after bytes came back.
  void admit_waiting();
  // Whether connections of this group wait.
  bool is_short(const std::string& group) const;
  // Bytes that a group holds.
  std::size_t used_by(const std::string& group) const;

 private:
  friend class BudgetShare;
  struct Group {
    std::string name;
    std::size_t used = 0;
    std::size_t num_waiting = 0;
    std::size_t num_users = 0;  // shares and rests
  };
  class Rest;

  bool fits(const Group& group, std::size_t octets) const;
  Group& enter(const std::string& name);
  void leave(Group& group);
  void charge(Group& group, std::size_t octets);
  void give_back(Group& group, std::size_t octets);

  std::unordered_map<std::string, std::unique_ptr<Group>> groups_;
  std::list<Responder*> line_;
  bool is_due_ = false;  // another Call of the line may fit by now
  std::shared_ptr<Budget*> alive_ = std::make_shared<Budget*>(this);
};

// BudgetShare: what one connection holds of a Budget.
class BudgetShare {
 public:
  struct Limits {
    std::size_t guaranteed = 0;       // bytes that the connection may hold whatever others do
    std::size_t max_held = SIZE_MAX;  // and at most, but for one larger Call alone
  };
  enum class Verdict : std::uint8_t {
    kTaken,
    kOwnLimit,  // the connection's own Calls have to end first
    kShort,     // others' have to
  };

  BudgetShare(Budget& budget, Responder& owner, const std::string& group, const Limits& limits);
  // Gives everything back.
  ~BudgetShare();
  BudgetShare(const BudgetShare&) = delete;
  BudgetShare& operator=(const BudgetShare&) = delete;

  Verdict take(std::size_t octets);
  void give_back(std::size_t octets);
  // As give_back, where take() turned out to be of no use: nobody's turn comes by that.
  void cancel(std::size_t octets);
  std::size_t held() const { return held_; }
  // Whether so much more is within what is guaranteed.
  bool is_guaranteed(std::size_t octets) const {
    return held_ <= limits_.guaranteed && octets <= limits_.guaranteed - held_;
  }
  // Moves so many bytes to an object that gives them back with its end, also after this one's and the budget's.
  std::shared_ptr<const void> leave_behind(std::size_t octets);

  // Whether others of the group have been waiting.
  bool others_wait() const;
  // Whether what this connection holds is what others wait for: those of its group, or any where little is free.
  bool is_wanted() const;
  // Stands in line, where it was if it stood there; goes to the end of it; leaves it.
  void wait_in_line();
  void go_to_end();
  void wait_no_more();

 private:
  std::size_t beyond(std::size_t held) const { return held > limits_.guaranteed ? held - limits_.guaranteed : 0; }

  Budget& budget_;
  Responder& owner_;
  Budget::Group& group_;
  const Limits limits_;
  std::size_t held_ = 0;
  std::list<Responder*>::iterator at_;
  bool waits_ = false;
};

}  // namespace weft::rpcrdma
