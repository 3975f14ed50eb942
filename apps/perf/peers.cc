#include "apps/perf/peers.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "apps/common/address.h"
#include "apps/common/command.h"
#include "base/address.h"
#include "base/peer_group.h"

namespace weft::apps::perf {
namespace {

// The interval between checks for idle clients.
constexpr std::chrono::milliseconds kLookEvery{250};

}  // namespace

absl::StatusOr<std::unique_ptr<Peers>> Peers::listen(verbs::Device& device, const sockaddr_storage& addr,
                                                     Progress& progress, const PeersConfig& config) {
  std::unique_ptr<Peers> peers(new Peers(device, progress, config));
  if (absl::Status status = peers->open(addr); !status.ok()) return status;
  return peers;
}

absl::Status Peers::open(const sockaddr_storage& addr) {
  auto channel = device_.create_event_channel();
  if (!channel.ok()) return to_status(channel.error(), "cannot create an event channel");
  channel_ = std::move(channel.value());
  auto id = channel_->create_id();
  if (!id.ok()) return to_status(id.error(), "cannot create a connection identifier");
  listener_ = std::move(id.value());
  // The backlog has room for newcomers beside clients whose memory is not ready yet.
  const int backlog = 2 * static_cast<int>(config_.places.all);
  const std::string what = "cannot listen on " + address_str(addr);
  if (auto status = listener_->bind_addr(addr); !status.ok()) return to_status(status.error(), what);
  if (auto status = listener_->listen(backlog); !status.ok()) return to_status(status.error(), what);
  return absl::OkStatus();
}

bool Peers::on_turn(TimePoint now) {
  log_.on_time(now);
  take_completions();
  take_events(now);
  give_back();
  fill();
  return !given_up_.empty() || std::ranges::any_of(peers_, [](const auto& entry) {
    return !entry.second.peer->is_accepted() || entry.second.peer->has_more();
  });
}

Peers::Clients::iterator Peers::end(Clients::iterator client) {
  Region region = client->second.peer->take_region();
  const auto next = peers_.erase(client);
  if (!region.octets().empty()) given_up_.push_back(std::move(region));
  return next;
}

template <typename IsOver>
void Peers::end_if(IsOver is_over) {
  for (auto at = peers_.begin(); at != peers_.end();) at = is_over(*at->second.peer) ? end(at) : std::next(at);
}

void Peers::take_completions() {
  end_if([&](RdmaPeer& peer) {
    const bool over = peer.is_accepted() && !peer.on_progress();
    if (over) log_.line(verbs::LogLevel::kInfo, peer.name(), "is done");
    return over;
  });
}

void Peers::take_events(TimePoint now) {
  while (std::optional<verbs::CmEvent> event = channel_->get_event()) {
    switch (event->type) {
      case verbs::CmEventType::kConnectRequest: on_request(std::move(*event), now); break;
      case verbs::CmEventType::kEstablished: break;
      default:
        if (const auto it = peers_.find(event->id); it != peers_.end()) {
          if (!event->text.empty()) log_.line(verbs::LogLevel::kInfo, it->second.peer->name(), "{}", event->text);
          end(it);
        }
        break;
    }
  }
}

// A client that has stopped midway keeps its place and its memory from others.
void Peers::end_silent(TimePoint now) {
  if (now < look_at_) return;
  look_at_ = now + std::min(kLookEvery, config_.patience);
  end_if([&](RdmaPeer& peer) {
    const bool silent = peer.silent_for(now) >= config_.patience;
    if (silent) {
      log_.line(verbs::LogLevel::kWarn, peer.name(), "is given up, it has done nothing for too long");
    }
    return silent;
  });
}

std::string Peers::make_room(const Occupant& newcomer, TimePoint now) {
  std::vector<verbs::CmId*> ids;
  std::vector<Occupant> occupants;
  for (const auto& [id, client] : peers_) {
    ids.push_back(id);
    occupants.push_back({client.group, client.memory, client.peer->silent_for(now)});
  }
  Admission admission = admit(newcomer, occupants, config_.places);
  for (const std::size_t i : admission.leaving) {
    log_.line(verbs::LogLevel::kInfo, peers_.at(ids[i]).peer->name(), "gives its place to another client");
    end(peers_.find(ids[i]));
  }
  return std::move(admission.refusal);
}

void Peers::refuse(verbs::CmId& id, std::string why) {
  const std::string name = address_str(id.peer_addr());
  log_.line(verbs::LogLevel::kWarn, name, "turned away: {}", why);
  Ready ready;
  ready.error = std::move(why);
  const auto whole = emit_ready(ready);
  std::vector<std::uint8_t> octets(whole.begin(), whole.end());
  cut_ready(octets, device_.caps().max_private_data);
  if (!id.reject(octets).ok()) log_.line(verbs::LogLevel::kDebug, name, "was gone already");
}

void Peers::on_request(verbs::CmEvent event, TimePoint now) {
  std::unique_ptr<verbs::CmId> id = std::move(event.new_id);
  std::optional<Hello> hello = parse_hello(without_padding(event.param.private_data, kHelloLen));
  if (!hello) return refuse(*id, "the private data is no Hello of this version");
  if (hello->op == Op::kSend && hello->size == 0) return refuse(*id, "send needs messages of at least one byte");
  const Occupant newcomer{.group = peer_group(id->peer_addr()), .memory = RdmaPeer::memory_of(*hello)};
  if (std::string why = make_room(newcomer, now); !why.empty()) return refuse(*id, std::move(why));
  absl::StatusOr<Region> region = Region::reserve(newcomer.memory);
  if (!region.ok()) return refuse(*id, std::string(region.status().message()));

  const PeerPlace place = place_of(id->peer_addr());
  if (peers_.empty()) look_at_ = now;
  if (peers_.empty() || place == PeerPlace::kThisMachine) progress_.expect(place);
  verbs::CmId* key = id.get();
  peers_.emplace(key, Client{std::make_unique<RdmaPeer>(std::move(id), *hello, *std::move(region)), newcomer.group,
                             newcomer.memory});
}

void Peers::fill() {
  const auto num = std::ranges::count_if(peers_, [](const auto& entry) { return !entry.second.peer->is_accepted(); });
  if (num == 0) return;
  // Each client gets the same share, so that none waits for the whole of another's memory.
  const std::size_t share = config_.memory_per_turn / static_cast<std::size_t>(num);
  end_if([&](RdmaPeer& peer) { return !peer.is_accepted() && !fill(peer, share); });
}

// False if it cannot be accepted.
bool Peers::fill(RdmaPeer& peer, std::size_t share) {
  if (!peer.fill(share)) return true;
  if (absl::Status status = peer.accept(device_, ready_); !status.ok()) {
    log_.line(verbs::LogLevel::kWarn, peer.name(), "{}", std::string(status.message()));
    return false;
  }
  log_.line(verbs::LogLevel::kInfo, peer.name(), "connected for {}", op_name(peer.op()));
  return true;
}

void Peers::give_back() {
  for (std::size_t left = config_.memory_per_turn; left != 0 && !given_up_.empty();) {
    left -= std::min(left, given_up_.front().release(left));
    if (given_up_.front().octets().empty()) given_up_.pop_front();
  }
}

std::size_t Peers::memory() const {
  std::size_t sum = 0;
  for (const auto& [id, client] : peers_) sum += client.peer->num_filled();
  for (const Region& region : given_up_) sum += region.octets().size();
  return sum;
}

std::size_t Peers::num_accepted() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(peers_, [](const auto& entry) { return entry.second.peer->is_accepted(); }));
}

}  // namespace weft::apps::perf
