#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

namespace weft::rpcrdma {

class Responder;

// Budget: bytes that all responders of a server promise to hold for chunks and results, with a limit for all and a
// limit for each group of addresses (peer_group.h). Calls that do not fit wait, and their connections take turns. One
// thread, the server's. The Budget outlives its BudgetShares.
//
// With a limit for each group, a group may take at most as much as it leaves free. One Call may take at most half of
// that, unless the group holds nothing. So bytes are left for every other group, and for smaller Calls of the same
// group.
class Budget {
 public:
  explicit Budget(std::size_t limit_of_all = 0, std::size_t used_now = 0) : limit(limit_of_all), used(used_now) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  std::size_t limit;
  std::size_t used;
  std::size_t held = 0;           // the same with all that connections hold of their guarantees
  std::size_t max_per_group = 0;  // 0: groups have no limit of their own

  // Lets the waiting connections start Calls, in turn, one Call each time. Call it after bytes came back.
  void admit_waiting();
  // Whether connections of this group wait.
  bool is_short(const std::string& group) const;

 private:
  friend class BudgetShare;
  struct Group {
    std::string name;
    std::size_t used = 0;
    std::size_t num_waiting = 0;
    std::size_t num_users = 0;  // shares and rests
  };
  class Rest;

  // own: octets that the same Call holds.
  bool fits(const Group& group, std::size_t octets, std::size_t own) const;
  static void subtract(std::size_t& from, std::size_t octets);
  Group& enter(const std::string& name);
  void leave(Group& group);
  void charge(Group& group, std::size_t octets);
  void give_back(Group& group, std::size_t octets);

  std::unordered_map<std::string, std::unique_ptr<Group>> groups_;
  std::list<Responder*> line_;
  bool is_due_ = false;  // another Call of the line may fit by now
  std::shared_ptr<Budget*> alive_ = std::make_shared<Budget*>(this);
};

// BudgetShare: the bytes that one connection holds of a Budget.
class BudgetShare {
 public:
  struct Limits {
    std::size_t guaranteed = 0;       // bytes that the connection may hold whatever other connections do
    std::size_t max_held = SIZE_MAX;  // the most that it may hold; one larger Call may run alone
  };
  enum class Verdict : std::uint8_t {
    kTaken,
    kOwnLimit,  // the connection's own Calls have to end first
    kShort,     // Calls of other connections have to end first
  };

  BudgetShare(Budget& budget, Responder& owner, const std::string& group, const Limits& limits);
  // Gives everything back.
  ~BudgetShare();
  BudgetShare(const BudgetShare&) = delete;
  BudgetShare& operator=(const BudgetShare&) = delete;

  // own: octets that the same Call took before.
  Verdict take(std::size_t octets, std::size_t own = 0);
  void give_back(std::size_t octets);
  // As give_back, after a take() that turned out to be useless. It gives no connection a turn.
  void cancel(std::size_t octets);
  std::size_t held() const { return held_; }
  // Whether so many more octets are within the guarantee.
  bool is_guaranteed(std::size_t octets) const {
    return held_ <= limits_.guaranteed && octets <= limits_.guaranteed - held_;
  }
  // Moves so many bytes to an object that gives them back when it is destroyed. The object may outlive this share and
  // the budget.
  std::shared_ptr<const void> leave_behind(std::size_t octets);

  // Whether other connections of the group have been waiting.
  bool others_wait() const;
  // Whether other connections wait for bytes that this connection holds: connections of its group, or any if little is
  // free.
  bool is_wanted() const;
  // wait_in_line joins the line, or keeps its place in it. go_to_end moves to the end of the line. wait_no_more leaves
  // it.
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
