#include "rpcrdma/duplicate_request_cache.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "rpcrdma/gather.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::rpcrdma {

namespace {

constexpr std::size_t kMaxWaiting = 4;
constexpr std::size_t kMaxFatal = 256;
constexpr std::size_t kEntryOctets = 256;  // approximate size besides the Reply
constexpr std::size_t kMaxPrinted = 4096;  // octets of the arguments

// A group's tag in the Ledgers: its place in memory, where it stays.
template <typename Group>
std::uint64_t tag_of(Group& group) {
  return reinterpret_cast<std::uintptr_t>(&group);
}
template <typename Group>
Group& group_with(std::uint64_t tag) {
  return *reinterpret_cast<Group*>(tag);  // NOLINT(performance-no-int-to-ptr)
}

// With other flavors the credential changes each time (RFC 2203 section 5.3.1: a sequence number).
bool is_repeated(const AuthView& cred) {
  return cred.flavor <= static_cast<std::uint32_t>(AuthFlavor::kShort);
}

}  // namespace

RequestKey DuplicateRequestCache::key_of(const std::string& client, std::uint32_t xid, const CallHeaderView& rpc,
                                         ConstBytes args, std::span<const KeptItem> items) const {
  SipHash hash(secret_);
  std::size_t length = 0;
  const auto add = [&](ConstBytes octets) {
    hash.add(octets);
    length += octets.size();
  };
  std::size_t done = 0;
  for (const KeptItem& item : items) {
    add(args.subspan(done, item.position - done));
    add(item.data);
    add(ConstBytes(kZeros).first(xdr::padding(item.data.size())));
    done = item.position;
  }
  add(args.subspan(done));
  hash.add(rpc.cred.flavor);
  if (is_repeated(rpc.cred)) hash.add(rpc.cred.body);
  return {client, xid, rpc.program, rpc.version, rpc.procedure, length, hash.value()};
}

std::uint64_t DuplicateRequestCache::print_of(const ChunkLists& lists, const CallHeaderView* rpc,
                                              ConstBytes args) const {
  SipHash hash(secret_);
  const auto add = [&hash](std::span<const Chunk> chunks) {
    hash.add(static_cast<std::uint32_t>(chunks.size()));
    for (const Chunk& chunk : chunks) hash.add(static_cast<std::uint32_t>(chunk.length));
  };
  const auto add_one = [&add](const Chunk* chunk) { add({chunk, chunk == nullptr ? 0u : 1u}); };
  add_one(lists.call_chunk());
  add(lists.read_chunks());
  add(lists.write_chunks());
  add_one(lists.reply_chunk());
  if (rpc == nullptr) return hash.value();
  for (const std::uint32_t word : {rpc->program, rpc->version, rpc->procedure, rpc->cred.flavor}) hash.add(word);
  if (is_repeated(rpc->cred)) {
    hash.add(rpc->cred.body);
    hash.add(args.first(std::min(args.size(), kMaxPrinted)));
  }
  return hash.value();
}

KeptReply KeptReply::of(const ServedReply& reply) {
  KeptReply kept;
  kept.accept = reply.accept;
  kept.results = reply.results;
  kept.verf = reply.verf;
  kept.header = reply.header;
  for (const Slice& slice : reply.more_results) {
    kept.results.insert(kept.results.end(), slice.octets.begin(), slice.octets.end());
  }
  for (const ResultItem& item : reply.items) {
    kept.items.push_back({item.position, item.operation, {item.data.octets.begin(), item.data.octets.end()}});
  }
  return kept;
}

std::optional<ServedReply> KeptReply::revive(BufferPool& pool) const {
  ServedReply reply;
  reply.accept = accept;
  reply.results = results;
  reply.verf = verf;
  reply.header = header;
  for (const Item& item : items) {
    Slice slice;
    if (!item.data.empty()) {
      Buffer buffer = pool.take(item.data.size());
      if (!buffer) return {};
      std::copy(item.data.begin(), item.data.end(), buffer.octets().begin());
      slice = {buffer.octets(), buffer.lkey()};
      reply.buffers.push_back(std::move(buffer));
    }
    reply.items.push_back({item.position, item.operation, slice});
  }
  return reply;
}

std::size_t KeptReply::octets() const {
  std::size_t sum = kEntryOctets + results.size() + header.size() + verf.body.size();
  for (const Item& item : items) sum += item.data.size();
  return sum;
}

DuplicateRequestCache::DuplicateRequestCache(const DuplicateRequestLimits& config, const SipHash::Key& secret)
    : config_(config),
      secret_(secret),
      places_({.all = config.max_entries, .leaves_as_much = true, .one_may_fill = false}),
      octets_({}),
      prints_({.all = kMaxFatal}) {}

DuplicateRequestCache::Groups::iterator DuplicateRequestCache::group_of(const std::string& name) {
  const auto [at, is_new] = groups_.try_emplace(name);
  if (is_new) {
    const std::uint64_t tag = tag_of(at->second);
    at->second.places = places_.enter(name, tag);
    at->second.octets = octets_.enter(name, tag);
    at->second.prints = prints_.enter(name, tag);
  }
  return at;
}

void DuplicateRequestCache::forget_if_empty(Groups::iterator group) {
  if (group->second.places.held() == 0 && group->second.prints.held() == 0) groups_.erase(group);
}

void DuplicateRequestCache::drop(Entries::iterator entry) {
  const auto group = entry->group;
  (entry->done ? group->second.done : group->second.running).erase(entry->in_group);
  if (!entry->done) running_.erase(entry->runner.value);
  by_key_.erase(entry->key);
  entries_.erase(entry);
  forget_if_empty(group);
}

const DuplicateRequestCache::Entries::iterator* DuplicateRequestCache::Group::gives_up() const {
  if (!done.empty()) return &done.front();
  return running.empty() || !running.front()->waiting.empty() ? nullptr : &running.front();
}

bool DuplicateRequestCache::make_room(const std::string& name) {
  using enum Ledger::Tenure;
  for (;;) {
    const auto own = groups_.find(name);
    const bool is_here = own != groups_.end();
    const auto verdict = is_here ? own->second.places.asks(1) : places_.asks(name, 1);
    if (verdict == Ledger::Verdict::kFits) return true;
    if (is_here && !own->second.done.empty()) {
      drop(own->second.done.front());
      continue;
    }
    // A group that has nothing yet gets a place also from one that has no more.
    const auto judge = [&](std::uint64_t tag) -> Ledger::Standing {
      const Group& group = group_with<Group>(tag);
      const auto* entry = group.gives_up();
      if (entry == nullptr || group.places.address() == name) return {.tenure = kFixed};
      return {.tenure = is_here ? kBusy : kResting, .since = (*entry)->since};
    };
    const auto from = places_.gives_way(name, 1, judge);
    if (!from) return false;
    drop(*group_with<Group>(*from).gives_up());
  }
}

void DuplicateRequestCache::on_time(TimePoint now) {
  now_ = now;
  const auto is_old = [this](TimePoint since) { return now_ - since >= config_.max_age; };
  // A Call that has been running for so long is given up too: its service may have forgotten it.
  while (!entries_.empty() && is_old(entries_.front().since)) drop(entries_.begin());
  const auto has_replies = [](std::uint64_t) { return Ledger::Standing{.tenure = Ledger::Tenure::kUnused}; };
  while (octets_.held() > config_.max_octets) {
    drop(group_with<Group>(*octets_.gives_way({}, 0, has_replies)).done.front());
  }
  while (!fatal_.empty() && is_old(fatal_.front().since)) drop_oldest_print(fatal_.front().group);
}

DuplicateRequestCache::Verdict DuplicateRequestCache::on_call(const RequestKey& key, const std::string& group,
                                                              ServedCallId id) {
  if (const auto at = by_key_.find(key); at != by_key_.end()) {
    Entry& entry = *at->second;
    if (entry.done) return Verdict::kAnswer;
    const auto same_connection = [id](ServedCallId other) { return other.value >> 32 == id.value >> 32; };
    if (same_connection(entry.runner) || std::ranges::any_of(entry.waiting, same_connection) ||
        entry.waiting.size() == kMaxWaiting) {
      return Verdict::kDrop;
    }
    entry.waiting.push_back(id);
    return Verdict::kWait;
  }
  if (!make_room(group)) return Verdict::kRun;  // the Call runs without being remembered
  const auto entry = entries_.emplace(entries_.end());
  entry->key = key;
  entry->group = group_of(group);
  Group& of = entry->group->second;
  entry->place = of.places.take(1);
  entry->in_group = of.running.insert(of.running.end(), entry);
  entry->runner = id;
  entry->since = now_;
  by_key_.emplace(key, entry);
  running_.emplace(id.value, entry);
  return Verdict::kRun;
}

const KeptReply* DuplicateRequestCache::find(const RequestKey& key) const {
  const auto at = by_key_.find(key);
  return at != by_key_.end() && at->second->done ? &at->second->reply : nullptr;
}

DuplicateRequestCache::Ended DuplicateRequestCache::on_reply(ServedCallId id, const ServedReply& reply) {
  if (running_.empty()) return {};
  const auto at = running_.find(id.value);
  if (at == running_.end()) return {};
  const auto entry = at->second;
  running_.erase(at);
  entry->done = true;
  entry->reply = KeptReply::of(reply);
  entry->since = now_;
  Group& group = entry->group->second;
  group.done.splice(group.done.end(), group.running, entry->in_group);
  entry->octets = group.octets.take(entry->reply.octets());
  entries_.splice(entries_.end(), entries_, entry);
  return {&entry->reply, std::exchange(entry->waiting, {})};
}

std::vector<ServedCallId> DuplicateRequestCache::on_abandoned(ServedCallId id) {
  const auto at = running_.find(id.value);
  if (at == running_.end()) return {};
  const auto entry = at->second;
  std::vector<ServedCallId> waiting = std::move(entry->waiting);
  drop(entry);
  return waiting;
}

void DuplicateRequestCache::on_fatal(const std::string& client, const std::string& group, const CallPrint& call) {
  if (was_fatal(client, call)) return;
  const auto has_most = [](std::uint64_t tag) {
    return Ledger::Standing{.tenure = Ledger::Tenure::kUnused, .since = group_with<Group>(tag).fatal.front()->since};
  };
  while (prints_.asks(group, 1) != Ledger::Verdict::kFits) {
    const Group& from = group_with<Group>(*prints_.gives_way(group, 1, has_most));
    drop_oldest_print(from.fatal.front()->group);
  }
  const auto of = group_of(group);
  fatal_.push_back({client, of, call, now_, of->second.prints.take(1)});
  of->second.fatal.push_back(std::prev(fatal_.end()));
}

void DuplicateRequestCache::drop_oldest_print(Groups::iterator group) {
  fatal_.erase(group->second.fatal.front());
  group->second.fatal.pop_front();
  forget_if_empty(group);
}

bool DuplicateRequestCache::was_fatal(const std::string& client, const CallPrint& call) const {
  return std::ranges::any_of(fatal_, [&](const Fatal& fatal) { return fatal.call == call && fatal.client == client; });
}

}  // namespace weft::rpcrdma
