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

void DuplicateRequestCache::drop(Entries::iterator entry) {
  Group& group = entry->group->second;
  if (entry->done) {
    const std::size_t octets = entry->reply.octets();
    octets_ -= octets;
    group.octets -= octets;
    group.done.erase(entry->in_group);
  } else {
    running_.erase(entry->runner.value);
  }
  if (--group.num == 0) groups_.erase(entry->group);
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

DuplicateRequestCache::Groups::iterator DuplicateRequestCache::largest(std::size_t Group::*size) {
  auto most = groups_.end();
  for (auto at = groups_.begin(); at != groups_.end(); ++at) {
    if (at->second.done.empty()) continue;
    if (most == groups_.end() || at->second.*size > most->second.*size) most = at;
  }
  return most;
}

// Makes room for one entry of this group. False: the Calls of all entries in the way still run.
bool DuplicateRequestCache::make_room(const std::string& group) {
  const std::size_t most_of_group = std::max<std::size_t>(config_.max_entries / 4 * 3, 1);
  auto from = groups_.find(group);
  if (from == groups_.end() || from->second.num < most_of_group) {
    if (entries_.size() < config_.max_entries) return true;
    from = largest(&Group::num);
  }
  if (from == groups_.end() || from->second.done.empty()) return false;
  drop(from->second.done.front());
  return true;
}

void DuplicateRequestCache::on_time(TimePoint now) {
  now_ = now;
  const auto is_old = [this](TimePoint since) { return now_ - since >= config_.max_age; };
  // A Call that has been running for so long is given up too: its service may have forgotten it.
  while (!entries_.empty() && is_old(entries_.front().since)) drop(entries_.begin());
  while (octets_ > config_.max_octets) drop(largest(&Group::octets)->second.done.front());
  while (!fatal_.empty() && is_old(fatal_.front().since)) fatal_.pop_front();
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
  entry->group = groups_.try_emplace(group).first;
  ++entry->group->second.num;
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
  entry->in_group = group.done.insert(group.done.end(), entry);
  const std::size_t octets = entry->reply.octets();
  octets_ += octets;
  group.octets += octets;
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
  fatal_.push_back({client, group, call, now_});
  if (fatal_.size() > kMaxFatal) drop_fatal();
}

// Of equally large groups the one with the oldest Call gives it up.
void DuplicateRequestCache::drop_fatal() {
  std::map<std::string_view, std::size_t> num_of;
  std::size_t most = 0;
  for (const Fatal& fatal : fatal_) most = std::max(most, ++num_of[fatal.group]);
  fatal_.erase(std::ranges::find_if(fatal_, [&](const Fatal& fatal) { return num_of[fatal.group] == most; }));
}

bool DuplicateRequestCache::was_fatal(const std::string& client, const CallPrint& call) const {
  return std::ranges::any_of(fatal_, [&](const Fatal& fatal) { return fatal.call == call && fatal.client == client; });
}

}  // namespace weft::rpcrdma
