#include "apps/serve/export/client.h"

#include <utility>

namespace weft::serve {
namespace {

thread_local const DiskClient* current = nullptr;

}  // namespace

ActingFor::ActingFor(const DiskClient& client) : before_(current) {
  current = &client;
}

ActingFor::~ActingFor() {
  current = before_;
}

const DiskClient& ActingFor::now() {
  static const DiskClient kServer;
  return current == nullptr ? kServer : *current;
}

void ClientEnds::put(const DiskClient& client) {
  std::lock_guard lock(mutex_);
  ended_.push_back(client);
  has_any_.store(true);
}

std::vector<DiskClient> ClientEnds::take() {
  if (!has_any_.load()) return {};
  std::lock_guard lock(mutex_);
  has_any_.store(false);
  return std::exchange(ended_, {});
}

}  // namespace weft::serve
