#include "rpcrdma/connection_order.h"

#include <algorithm>
#include <chrono>
#include <ranges>

namespace weft::rpcrdma {

namespace {

// A client that was silent for so long gives way before one that was not, also while a service has its Calls. So
// neighbours that keep Calls under way take no place from a client that makes one Call after the other.
constexpr std::chrono::seconds kSilence{1};
// Of so many connections one may be without a Call. Where more are, they give way to each other: peers that only
// connect take no place from clients. Where fewer are, a client that is still connecting keeps its place beside
// neighbours that make one Call and connect again.
constexpr std::size_t kPartOfNew = 4;

constexpr std::size_t index_of(ConnectionOrder::Kind kind) {
  return static_cast<std::size_t>(kind);
}

}  // namespace

// Judge chooses among the first connections of each kind of one group, or of all groups of one size. A later one of a
// kind was used later, so it does not go before the first.
class ConnectionOrder::Judge {
 public:
  Judge(TimePoint now, TimePoint::duration first_call, bool has_many_new, std::uint64_t& num_judged)
      : now_(now), first_call_(first_call), has_many_new_(has_many_new), num_judged_(num_judged) {}

  // Whether one of these was silent for that time.
  bool is_silent(const std::set<Key>& connections, TimePoint::duration silence) const {
    if (connections.empty()) return false;
    ++num_judged_;
    return now_ - connections.begin()->used_at >= silence;
  }
  // Whether the time for the first Call of one of these has passed.
  bool is_unused(const std::set<Key>& new_connections) const { return is_silent(new_connections, first_call_); }
  // takes_young: whether the newcomer may take the place of one that came a moment ago.
  std::optional<std::uint32_t> unused(const ByKind& of, bool takes_young) const {
    const std::set<Key>& connections = of[index_of(Kind::kNew)];
    const bool goes =
        is_silent(connections, takes_young ? first_call_ : std::max(first_call_, TimePoint::duration(kSilence)));
    return goes ? std::optional(connections.begin()->serial) : std::nullopt;
  }
  std::optional<std::uint32_t> at_rest(const ByKind& of) const { return silent(of, Kind::kIdle); }
  // Any connection, where unused() names none.
  std::optional<std::uint32_t> any(const ByKind& of) const {
    if (const auto out = at_rest(of)) return out;
    if (const auto out = silent(of, Kind::kBusy)) return out;
    const Fronts fronts = fronts_of(of);
    num_judged_ += kKinds;
    if (const auto& first = fronts[index_of(Kind::kNew)]; first && has_many_new_) return first->serial;
    std::optional<Key> out;
    for (const Kind kind : {Kind::kNew, Kind::kIdle, Kind::kBusy}) {
      const std::optional<Key>& first = fronts[index_of(kind)];
      if (first && (!out || *first < *out)) out = first;
    }
    if (!out) out = fronts[index_of(Kind::kOnce)];
    return out ? std::optional(out->serial) : std::nullopt;
  }

 private:
  std::optional<std::uint32_t> silent(const ByKind& of, Kind kind) const {
    const std::set<Key>& connections = of[index_of(kind)];
    return is_silent(connections, kSilence) ? std::optional(connections.begin()->serial) : std::nullopt;
  }

  const TimePoint now_;
  const TimePoint::duration first_call_;
  const bool has_many_new_;
  std::uint64_t& num_judged_;
};

ConnectionOrder::Fronts ConnectionOrder::fronts_of(const ByKind& connections) {
  Fronts out;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    if (!connections[kind].empty()) out[kind] = *connections[kind].begin();
  }
  return out;
}

// Runs f on the group, and brings by_size_ up to date.
template <typename F>
void ConnectionOrder::change(const std::string& name, F&& f) {
  const auto at = groups_.try_emplace(name).first;
  Group& group = at->second;
  const std::size_t size_before = group.size;
  const Fronts before = fronts_of(group.connections);
  f(group);
  const Fronts now = fronts_of(group.connections);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    if (before[kind] == now[kind] && size_before == group.size) continue;
    if (before[kind]) by_size_[size_before][kind].erase(*before[kind]);
    if (now[kind]) by_size_[group.size][kind].insert(*now[kind]);
  }
  if (size_before != group.size && size_before != 0) {
    const auto of_size = by_size_.find(size_before);
    if (std::ranges::all_of(of_size->second, [](const auto& keys) { return keys.empty(); })) by_size_.erase(of_size);
  }
  if (group.size == 0) groups_.erase(at);
}

void ConnectionOrder::add(std::uint32_t serial, const std::string& group, const Seen& seen) {
  change(group, [&](Group& to) {
    ++to.size;
    to.connections[index_of(seen.kind)].insert({seen.used_at, serial});
  });
  ++size_;
  if (seen.kind == Kind::kNew) new_.insert({seen.used_at, serial});
}

void ConnectionOrder::see(std::uint32_t serial, const std::string& group, const Seen& before, const Seen& now) {
  if (before == now) return;
  change(group, [&](Group& of) {
    auto node = of.connections[index_of(before.kind)].extract({before.used_at, serial});
    node.value().used_at = now.used_at;
    of.connections[index_of(now.kind)].insert(std::move(node));
  });
  if (before.kind == Kind::kNew) new_.erase({before.used_at, serial});
  if (now.kind == Kind::kNew) new_.insert({now.used_at, serial});
}

void ConnectionOrder::remove(std::uint32_t serial, const std::string& group, const Seen& seen) {
  change(group, [&](Group& from) {
    --from.size;
    from.connections[index_of(seen.kind)].erase({seen.used_at, serial});
  });
  --size_;
  if (seen.kind == Kind::kNew) new_.erase({seen.used_at, serial});
}

std::optional<std::uint32_t> ConnectionOrder::gives_way(const std::string& newcomer, bool only_own,
                                                        TimePoint now) const {
  const Judge judge(now, first_call_, new_.size() > size_ / kPartOfNew, num_judged_);
  const auto at = groups_.find(newcomer);
  const Group* own = at == groups_.end() ? nullptr : &at->second;
  if (only_own) {
    if (own == nullptr) return std::nullopt;
    if (const auto out = judge.unused(own->connections, true)) return out;
    return judge.any(own->connections);
  }
  const std::size_t own_size = own == nullptr ? 0 : own->size;
  if (judge.is_unused(new_)) {
    for (const auto& [size, connections] : std::views::reverse(by_size_)) {
      if (const auto out = judge.unused(connections, size > own_size + 1)) return out;
      if (size != own_size) continue;
      if (const auto out = judge.unused(own->connections, true)) return out;
    }
  }
  for (auto of_size = by_size_.rbegin(); of_size != by_size_.rend(); ++of_size) {
    const auto& [size, connections] = *of_size;
    if (size < own_size) break;
    // A group that gives up a connection under way keeps as many as the newcomer's group then has.
    if (size - 1 > own_size) return judge.any(connections);
    if (const auto out = judge.at_rest(connections)) return out;
    if (size == own_size) return judge.any(own->connections);
  }
  return std::nullopt;
}

}  // namespace weft::rpcrdma
