#include "apps/serve/export/client.h"

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

}  // namespace weft::serve
