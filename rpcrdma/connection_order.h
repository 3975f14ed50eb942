#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/time.h"

namespace weft::rpcrdma {

// ConnectionOrder says which connection of a Server, or of a gateway, gives way to a newcomer. A connection without
// a Call goes before all others once the time for its first Call has passed. Else the group of addresses with most
// connections gives one up: one that has rested for a second; then one that was silent for a second with Calls under
// way, which its client sends again; then one without a Call yet, if these are more than a quarter of all; then any;
// last of all one whose Calls must not run twice. Of several the one that was silent longest goes.
//
// A group gives up a connection that is not at rest, or one without a Call that came less than a second ago, only to
// another group that then has no more connections than it keeps. Ledger::gives_way has the same rules and judges every
// connection. Here all connections are in order by what they were last seen to be, so each operation takes a time that
// grows with the logarithm of their number. Values without I/O or clock.
class ConnectionOrder {
 public:
  // kNew: without a Call so far. kIdle: without a Call under way. kBusy: with Calls under way, all of which may run
  // twice; kOnce: one of them must not.
  enum class Kind : std::uint8_t { kNew, kIdle, kBusy, kOnce };
  struct Seen {
    Kind kind = Kind::kNew;
    TimePoint used_at{};
    friend auto operator<=>(const Seen&, const Seen&) = default;
  };

  // first_call: the time that each connection has for its first Call, from its arrival on.
  explicit ConnectionOrder(TimePoint::duration first_call = std::chrono::seconds(1)) : first_call_(first_call) {}

  // Each connection has a serial number of its own.
  void add(std::uint32_t serial, const std::string& group, const Seen& seen);
  // The connection was last seen as `before`.
  void see(std::uint32_t serial, const std::string& group, const Seen& before, const Seen& now);
  void remove(std::uint32_t serial, const std::string& group, const Seen& seen);

  // The connection that gives way to a newcomer of that group. only_own: to a newcomer whose group may not have more.
  std::optional<std::uint32_t> gives_way(const std::string& newcomer, bool only_own, TimePoint now) const;

  // How many connections gives_way looked at so far.
  std::uint64_t num_judged() const { return num_judged_; }

 private:
  // Of several that were used last at the same time the newest goes first.
  struct Key {
    TimePoint used_at{};
    std::uint32_t serial = 0;
    friend bool operator==(const Key&, const Key&) = default;
    friend std::strong_ordering operator<=>(const Key& a, const Key& b) {
      const std::strong_ordering by_time = a.used_at <=> b.used_at;
      return std::is_neq(by_time) ? by_time : b.serial <=> a.serial;
    }
  };
  static constexpr std::size_t kKinds = 4;
  using ByKind = std::array<std::set<Key>, kKinds>;
  // The first connection of each kind.
  using Fronts = std::array<std::optional<Key>, kKinds>;
  struct Group {
    std::size_t size = 0;
    ByKind connections;
  };
  class Judge;

  static Fronts fronts_of(const ByKind& connections);
  template <typename F>
  void change(const std::string& name, F&& f);

  const TimePoint::duration first_call_;
  std::map<std::string, Group, std::less<>> groups_;
  // The first connections of the groups of each size.
  std::map<std::size_t, ByKind> by_size_;
  std::set<Key> new_;  // without a Call, of all groups
  std::size_t size_ = 0;
  mutable std::uint64_t num_judged_ = 0;
};

}  // namespace weft::rpcrdma
