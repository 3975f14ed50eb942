#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/fair_line.h"
#include "base/ledger.h"
#include "base/time.h"
#include "rpcrdma/earned_time.h"

namespace weft::rpcrdma {

class BudgetShare;
class Responder;

// CallLease: the octets of a Budget that one Call holds. It belongs into the object that holds the memory.
struct CallLease {
  Lease shared;
  Lease finishing;  // of the octets that are kept for Calls that have begun
  Lease slow;       // of the part of `shared` that slow Calls may have (ResultsOf::is_slow)

  struct Amounts {
    Amount shared = 0, finishing = 0;
  };
  Amounts amounts() const { return {shared.amount(), finishing.amount()}; }
  // For a Call that does not begin yet.
  void shrink(const Amounts& to) {
    (void)shared.resize(to.shared);
    (void)finishing.resize(to.finishing);
    slow.end();
  }
  void give_back(std::size_t octets) {
    (void)shared.resize(shared.amount() - std::min<Amount>(octets, shared.amount()));
  }
  std::size_t octets() const { return static_cast<std::size_t>(shared.amount() + finishing.amount()); }
  void end() {
    shared.end();
    finishing.end();
    slow.end();
  }
};

// Budget: octets that all responders of a server promise to hold for chunks, parts and results: a Ledger by connection
// and address, and the lines of connections whose Calls wait for it. One thread, the server's. The Budget outlives its
// BudgetShares; Leases may outlive it.
//
// With a bound for each address, an address holds at most as much as it leaves free, and a connection at most as much
// as it leaves to its address (Ledger::Bounds::leaves_as_much). So octets are left for every other address, and for
// smaller Calls of the same one. A Call beyond the bound of its connection may run alone.
//
// Slow Calls (ResultsOf::is_slow) may hold their memory for a while before the service begins with them. They have what
// is guaranteed to their connections, and a quarter of the rest. So other Calls find room beside any number of slow
// ones. Slow Calls that need more than the guarantee have a line of their own. In it they wait for their part of the
// quarter, and no other Call waits for them. With their part they stand in line with the others.
//
// A Call that came in parts holds the memory of its parts while it waits for the memory of its chunks and results.
// Such Calls could wait for each other for ever. So they are first in line, and `finishing` more octets are for them
// alone: at least one of them goes on, and then the next.
class Budget {
 public:
  struct Bounds {
    std::size_t all = SIZE_MAX;         // without what is guaranteed
    std::size_t address = SIZE_MAX;     // the same; SIZE_MAX: addresses have no bound of their own
    std::size_t connection = SIZE_MAX;  // one larger Call may run alone
    std::size_t guaranteed = 0;         // each connection may hold so many, whatever the others hold
    std::size_t finishing = 0;          // beyond `all`, for Calls that have begun; at least what one Call needs
  };
  explicit Budget(const Bounds& bounds);
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  const Bounds& bounds() const { return bounds_; }
  // Octets that are held: all, and without what connections hold of their guarantees.
  std::size_t held() const { return static_cast<std::size_t>(memory_.held() + finishing_.held()); }
  std::size_t used() const { return static_cast<std::size_t>(memory_.shared() + finishing_.held()); }

  // Lets the waiting connections start Calls, one Call in each turn. Call it after octets came back.
  void admit_waiting();
  // Whether connections of this address wait.
  bool is_short(const std::string& address) const;

 private:
  friend class BudgetShare;
  // The lines (BudgetShare::Line): connections with Calls that came in parts and wait for the rest of their memory,
  // connections with other Calls, or parts, and connections with slow Calls.
  static constexpr std::size_t kNumLines = 3;
  using Line = FairLine<BudgetShare*>;

  bool serve_next(std::size_t line);
  // Those that wait for what any Call holds: not slow Calls, which wait for each other.
  std::span<const Line> lines_that_want() const { return std::span(lines_).first(kNumLines - 1); }

  const Bounds bounds_;
  Ledger memory_;
  Ledger finishing_;
  Ledger slow_;
  std::array<Line, kNumLines> lines_;
  std::uint64_t last_number_ = 0;
  std::uint64_t seen_returns_ = 0;
  bool is_due_ = false;           // a line has changed
  bool is_all_short_ = false;     // the connection whose turn it is waits for octets that no address has
  bool keeps_finishing_ = false;  // the same for the octets for Calls that have begun
  BudgetShare* offered_ = nullptr;
};

// BudgetShare: one connection's entry in a Budget.
class BudgetShare {
 public:
  // kClient: Calls of the connection have to end first; kAddress, kAll: Calls of others.
  using Verdict = Ledger::Verdict;
  enum class Line : std::uint8_t { kBegun, kNew, kSlow };

  BudgetShare(Budget& budget, Responder& owner, const std::string& address);
  ~BudgetShare();
  BudgetShare(const BudgetShare&) = delete;
  BudgetShare& operator=(const BudgetShare&) = delete;

  // take adds octets to the Lease.
  [[nodiscard]] Verdict take(Lease& lease, std::size_t octets);
  [[nodiscard]] Verdict take(CallLease& lease, std::size_t octets) { return take(lease.shared, octets); }
  // Whether a slow Call may take so many octets beyond the guarantee. take_slow lets it.
  bool has_slow(std::size_t octets);
  [[nodiscard]] Verdict take_slow(CallLease& lease, std::size_t octets);
  // Whether a Call of so many octets may count as slow. Slow Calls of its address find room beside it.
  bool may_be_slow(std::size_t octets) const;
  std::size_t guaranteed() const { return budget_.bounds_.guaranteed; }
  // The same as take for a Call that came in parts.
  [[nodiscard]] Verdict finish(CallLease& lease, std::size_t octets);

  std::size_t held() const { return static_cast<std::size_t>(client_.held() + finishing_.held()); }
  // Whether so many more octets are within the guarantee.
  bool is_guaranteed(std::size_t octets) const { return client_.is_guaranteed(octets); }
  // Whether a Call that holds `own` could have so many more octets if other Calls held none.
  bool could_have(std::size_t octets, std::size_t own) const;

  // Whether Calls beyond the guarantee have to stand in this line: others would be passed.
  bool must_wait(Line line) const;
  // Whether other connections wait for octets that this connection holds: connections of its address, or any if little
  // is free.
  bool is_wanted() const;
  // The time that is given to the peer of this connection while they do. `is_proven`: it has moved as many octets as it
  // holds. The others are given less, the more of them wait and the more this one holds.
  Duration given_time(const EarnedTime::Terms& terms, bool is_proven) const;
  // wait joins the line for a Call of so many octets, or keeps its place in it. wait_no_more leaves it.
  void wait(Line line, std::size_t octets);
  void wait_no_more(Line line);

 private:
  friend class Budget;
  using Offer = Budget::Line::Offer;
  struct Wish {
    bool is_there = false;
    bool is_in_line = false;
    std::size_t octets = 0;
  };
  Budget::Line& line_of(Line line) const { return budget_.lines_[static_cast<std::size_t>(line)]; }
  Wish& wish_of(Line line) { return wishes_[static_cast<std::size_t>(line)]; }
  bool others_wait(Line line) const;
  bool is_wanted_by_all() const;
  bool is_wanted_by_slow() const;
  void settle(Line line);
  void settle();
  Offer take_turn(Line line);

  Budget& budget_;
  Responder& owner_;
  const std::uint64_t number_;
  Ledger::Client client_;
  Ledger::Client finishing_;  // from the first Call on that needs it
  Ledger::Client slow_;       // the same
  std::array<Wish, Budget::kNumLines> wishes_;
  bool is_known_ = false;  // to the lines
};

}  // namespace weft::rpcrdma
