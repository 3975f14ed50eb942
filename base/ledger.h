#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"

// The ledger of what peers hold. A Ledger counts one kind of resource for each client, for each address and for all
// together. A Lease is a part of it, and the object that occupies the resource owns the Lease. The order of clients
// that wait is a FairLine (base/fair_line.h).
//
// "Client" is one connection or one identity. "Address" is a text that names the addresses which count together; for
// IP it is peer_group (base/peer_group.h). Values without I/O, clock, lock or thread: one thread uses a Ledger with all
// its Clients and Leases, or one lock of the owner covers them.
namespace weft {

// Amount counts a resource in the unit of its kind: octets, places, connections, descriptors, microseconds.
using Amount = std::uint64_t;
inline constexpr Amount kUnbounded = std::numeric_limits<Amount>::max();

// LedgerKind describes one kind of resource for docs/security.md: one row of its tables. The fields `client`, `address`
// and `all` have the bounds in words. Each program's rows are a constant beside the code that makes its Ledgers.
struct LedgerKind {
  std::string_view name;     // what peers hold, with its unit
  std::string_view client;   // the bound for one connection
  std::string_view address;  // for one address
  std::string_view all;      // for all together
  std::string_view place;    // the fields and types that hold the bound, in Markdown
  std::string_view tests;    // the tests that exhaust it and see another client served, in Markdown
};
// The row of a table in Markdown, without a newline.
std::string to_markdown(const LedgerKind& kind);

class Lease;

// Ledger counts one kind of resource. Its Clients and Leases may outlive it.
class Ledger {
 public:
  struct Bounds {
    Amount client = kUnbounded;   // a client that holds nothing else may hold more, if `one_may_exceed`
    Amount address = kUnbounded;  // without what is guaranteed
    Amount all = kUnbounded;      // without what is guaranteed
    Amount guaranteed = 0;        // each client may hold this much, whatever the others hold
    // For resources that come back soon and for which clients wait, such as memory of Calls. An address then holds at
    // most as much as it leaves free, and a client at most as much as it leaves to its address. So each newcomer finds
    // room, and the shares shrink with every address that comes: k addresses of many clients come to hold 1/(k + 1)
    // each.
    bool leaves_as_much = false;
    // Then an address that holds nothing else may take one thing up to `address`: for things that come in one size. A
    // resource that grows byte by byte, such as memory, has no such exception, or the first client would take all.
    bool one_may_fill = true;
    bool one_may_exceed = false;
  };
  // What is exhausted.
  enum class Verdict : std::uint8_t { kFits, kClient, kAddress, kAll };

  // Standing says how easily a client's part can be taken from it.
  enum class Tenure : std::uint8_t {
    kFixed,    // never
    kBusy,     // gives way to an address that holds less, even with this part; and within its own address
    kResting,  // gives way to an address that does not hold more
    kUnused,   // gives way to all others, before any other: it has done nothing with what it holds
  };
  struct Standing {
    Tenure tenure = Tenure::kBusy;
    Amount weight = 0;  // of equal tenure the greater weight goes first; what it costs the others
    TimePoint since{};  // of equal weight the earliest goes first
  };
  // Asks for the Standing of the client that entered with this `tag`.
  using Judge = std::function<Standing(std::uint64_t tag)>;

  class Client;

  explicit Ledger(const Bounds& bounds);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // enter adds a client of an address. `tag` is the caller's name for it (gives_way).
  Client enter(std::string_view address, std::uint64_t tag = 0);

  // asks: whether a client that is not here yet would get this amount.
  Verdict asks(std::string_view address, Amount amount) const;
  // gives_way names the client that gives way to a newcomer of this address for which asks() did not say kFits; nothing
  // if none does. If the address is full, it is one of this address. Otherwise the address that holds most gives way,
  // as long as it keeps as much as the newcomer's address then has; or else one of the newcomer's own address does. The
  // caller ends that client, whose Leases end with it, and asks again.
  std::optional<std::uint64_t> gives_way(std::string_view newcomer, Amount amount, const Judge& judge) const;

  const Bounds& bounds() const;
  Amount held() const;                             // guaranteed parts included
  Amount shared() const;                           // held beyond the guarantees; bounded by Bounds::all
  Amount held_by(std::string_view address) const;  // the same for an address
  Amount shared_by(std::string_view address) const;
  std::size_t num_clients() const;
  std::size_t num_clients(std::string_view address) const;
  std::size_t num_addresses() const;  // with clients or Leases
  // How often something came back. Who was refused need not ask again before this changes.
  std::uint64_t num_returns() const;

 private:
  friend class Lease;
  struct State;
  struct Address;
  struct Holder;
  std::shared_ptr<State> state_;
};

// Client is one client's entry in a Ledger. When it is destroyed, the client is gone: it has no guarantee any more, and
// what its remaining Leases hold counts in full. An empty Client (default, moved from) gets no Lease.
class Ledger::Client {
 public:
  Client() = default;
  Client(Client&&) noexcept = default;
  Client& operator=(Client&& other) noexcept;
  ~Client() { leave(); }

  explicit operator bool() const { return holder_ != nullptr; }
  // take gives a Lease of this amount. It has the amount 0 if that does not fit; asks() has the reason.
  Lease take(Amount amount);
  // An empty Lease of this client, to be resized.
  Lease lease();
  Verdict asks(Amount amount) const;
  // Whether so much more is within the guarantee.
  bool is_guaranteed(Amount amount) const;
  Amount held() const;
  const std::string& address() const;

 private:
  friend class Ledger;
  explicit Client(std::shared_ptr<Holder> holder) : holder_(std::move(holder)) {}
  void leave();
  std::shared_ptr<Holder> holder_;
};

// Lease is an amount that one client holds until the Lease is destroyed. It belongs into the object that occupies the
// resource (the record, the task, the coroutine's frame), not beside a flag that says whether work goes on. It may
// outlive its Client and the Ledger. A default Lease belongs to no client and always has the amount 0.
class Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept : holder_(std::move(other.holder_)), amount_(std::exchange(other.amount_, 0)) {}
  Lease& operator=(Lease&& other) noexcept;
  ~Lease() { end(); }

  Amount amount() const { return amount_; }
  explicit operator bool() const { return amount_ != 0; }
  // resize changes nothing unless it returns kFits. A smaller amount always fits. A default Lease fits 0 alone.
  [[nodiscard]] Ledger::Verdict resize(Amount amount);
  // resize for the Lease whose turn has come in a line: as if Bounds::one_may_fill were set. It returns kClient if the
  // amount would fit once the client gave back its other Leases, and kAll if it would fit once other addresses gave
  // back theirs.
  [[nodiscard]] Ledger::Verdict resize_in_turn(Amount amount);
  // split moves a part, at most all, to another Lease of the same client.
  Lease split(Amount amount);
  // merge takes over the amount of another Lease of the same client, or of a default one.
  void merge(Lease&& other);
  // end gives everything back.
  void end();

 private:
  friend class Ledger::Client;
  explicit Lease(std::shared_ptr<Ledger::Holder> holder) : holder_(std::move(holder)) {}
  Ledger::Verdict resize(Amount amount, bool one_may_fill);
  std::shared_ptr<Ledger::Holder> holder_;
  Amount amount_ = 0;
};

}  // namespace weft
