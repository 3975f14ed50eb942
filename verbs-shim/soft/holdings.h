#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/ledger.h"
#include "verbs-shim/soft/handle.h"

namespace weft::verbs::soft {

// Holdings counts the things that peers make a loop hold: connections that have sent no whole MPA Request, connections
// that deliver their end without an owner, octets of FPDUs that arrived in part (RFC 5042 section 6). Beyond a bound
// one connection has to go: the oldest of the address that holds most. So an address loses its own, and where all hold
// as much, a newcomer is the last to go. The loop asks for such connections until no bound is exceeded.
class Holdings {
 public:
  struct Limits {
    std::size_t max_silent = 0;
    std::size_t max_lingering = 0;
    std::size_t max_parked = 0;  // octets
  };
  enum class What : std::uint8_t { kSilent, kLingering, kParked };
  struct Excess {
    Handle who;
    What what = What::kSilent;
    bool operator==(const Excess&) const = default;
  };

  explicit Holdings(const Limits& limits);

  // The connection is one from this address (peer_group). Others count together, as an address without a name: the
  // loop's own connections to servers.
  void enter(Handle who, const std::string& address);
  void add_silent(Handle who);
  void add_lingering(Handle who);
  // The connection has sent a whole Request, or its end has come.
  void remove_silent(Handle who);
  // num_octets octets (perhaps none) of an FPDU wait in the connection's own memory. same_fpdu: octets of this FPDU
  // were parked before, so it keeps its age.
  void park(Handle who, std::size_t num_octets, bool same_fpdu);
  // The parked octets are back in the receive buffer.
  void unpark(Handle who);
  // Names the address of a connection that has entered, as long as it lives; null for any other.
  const void* address_of(Handle who) const {
    return who.index < entries_.size() ? entries_[who.index].address : nullptr;
  }
  // The connection died.
  void forget(Handle who);

  // The silent connection that gives way to another one.
  std::optional<Handle> oldest_silent() const;
  // Whether a bound is exceeded. If so, excess() names the connection that has to go next.
  bool exceeds() const;
  std::optional<Excess> excess() const;

 private:
  using ByAge = std::map<std::uint64_t, Handle>;
  static constexpr std::size_t kKinds = 3;  // of What

  // What the connections of one address hold of one kind.
  struct Shelf {
    Ledger::Client client;
    Lease lease;
    ByAge by_age;
  };
  // The shelf that holds more, or as much and something older.
  struct LosesFirst {
    bool operator()(const Shelf* a, const Shelf* b) const;
  };
  struct Address {
    std::string name;
    std::array<Shelf, kKinds> shelves;
    std::size_t num_members = 0;
  };
  struct Kind {
    Ledger ledger{Ledger::Bounds{}};  // beyond the bound until the loop has acted
    std::size_t most = 0;
    std::set<const Shelf*, LosesFirst> shelves;  // those with anything on them
  };
  struct Holding {
    std::uint64_t age = 0;
    std::size_t amount = 0;  // 0: nothing is held
  };
  struct Entry {
    Address* address = nullptr;  // null: the one without a name
    std::array<Holding, kKinds> holdings;
  };

  Entry& entry(Handle who);
  Shelf& shelf_of(const Entry& entry, What what);
  void add(Handle who, What what, std::size_t amount, std::uint64_t age);
  void remove(Handle who, What what);
  // Changes a shelf, which then has another place among those of its kind.
  template <typename F>
  void change(Shelf& shelf, What what, F with);
  std::optional<Handle> next_out(What what) const;

  std::array<Kind, kKinds> kinds_;
  std::map<std::string, Address, std::less<>> addresses_;
  Address* unnamed_;
  std::vector<Entry> entries_;  // by slot; forget leaves an empty one
  std::uint64_t last_age_ = 0;
};

}  // namespace weft::verbs::soft
