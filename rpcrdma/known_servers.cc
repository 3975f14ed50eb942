#include "rpcrdma/known_servers.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "base/address.h"

namespace weft::rpcrdma {

namespace {

struct Known {
  Protocol spoken = Protocol::k1;
  TimePoint until;
};

// A client with other versions, or with another order of them, may find a better one at the same server.
std::string key_of(const sockaddr_storage& server, std::span<const Protocol> own) {
  std::string key = address_str(server);
  for (const Protocol protocol : own) key.append(" ").append(protocol_str(protocol));
  return key;
}

}  // namespace

struct KnownServers::Impl {
  Config config;
  mutable std::mutex mutex;
  std::map<std::string, Known> servers;
};

KnownServers::KnownServers(const Config& config) : impl_(std::make_unique<Impl>()) {
  impl_->config = config;
}
KnownServers::~KnownServers() = default;

// Clients of static duration may use it last, so it is never destroyed.
KnownServers& KnownServers::of_process() {
  static auto& servers = *new KnownServers;
  return servers;
}

std::optional<Protocol> KnownServers::find(const sockaddr_storage& server, std::span<const Protocol> own,
                                           TimePoint now) const {
  const std::scoped_lock lock(impl_->mutex);
  const auto at = impl_->servers.find(key_of(server, own));
  if (at == impl_->servers.end() || now >= at->second.until) return {};
  return at->second.spoken;
}

void KnownServers::learn(const sockaddr_storage& server, std::span<const Protocol> own, Protocol spoken, TimePoint now,
                         Learnt how) {
  const std::scoped_lock lock(impl_->mutex);
  auto& servers = impl_->servers;
  const std::string key = key_of(server, own);
  const auto known = servers.find(key);
  if (known != servers.end() && known->second.spoken == spoken && now < known->second.until) return;
  if (servers.size() >= impl_->config.max_servers && known == servers.end()) {
    servers.erase(std::ranges::min_element(servers, {}, [](const auto& one) { return one.second.until; }));
  }
  const Config& config = impl_->config;
  servers[key] = {spoken, now + (how == Learnt::kBySilence ? config.short_lifetime : config.lifetime)};
}

void KnownServers::forget(const sockaddr_storage& server, std::span<const Protocol> own) {
  const std::scoped_lock lock(impl_->mutex);
  impl_->servers.erase(key_of(server, own));
}

std::size_t KnownServers::size() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->servers.size();
}

}  // namespace weft::rpcrdma
