#include "rpcrdma/server_statistics.h"

#include <iterator>

namespace weft::rpcrdma {

namespace {

constexpr std::uint64_t ResponderCounters::*kCounters[] = {
    &ResponderCounters::calls_served,       &ResponderCounters::discarded,    &ResponderCounters::err_vers,
    &ResponderCounters::err_chunk,          &ResponderCounters::garbage_args, &ResponderCounters::reply_chunks,
    &ResponderCounters::continued_replies,  &ResponderCounters::write_chunks, &ResponderCounters::invalidations,
    &ResponderCounters::duplicate_requests,
};
static_assert(sizeof(ResponderCounters) == std::size(kCounters) * sizeof(std::uint64_t),
              "a field is missing from kCounters");

}  // namespace

ResponderCounters& ResponderCounters::operator+=(const ResponderCounters& one) {
  for (const auto counter : kCounters) this->*counter += one.*counter;
  return *this;
}

}  // namespace weft::rpcrdma
