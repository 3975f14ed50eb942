#include "rpcrdma/testing/reverse.h"

#include "rpcrdma/profiles.h"

namespace weft::rpcrdma::testing {

namespace {

// The program and version of V23.
const Binding& nfs4_binding() {
  static constexpr Binding kBinding{100003, 4};
  return kBinding;
}

Endpoint::Config shape_of(const ReverseOptions& options, std::uint32_t serial) {
  Endpoint::Config shape;
  shape.serial = serial;
  shape.num_receives = shape.num_sends = options.credits + 2;
  shape.receive_len = options.thresholds.receive;
  shape.send_len = options.thresholds.send + Responder::kSendExtra;
  return shape;
}

}  // namespace

const Binding& callback_binding() {
  static constexpr Binding kBinding{kCallback, 1};
  return kBinding;
}

ClientEnd::ClientEnd(FakeMemory& memory, const ReverseOptions& options)
    : FakeEnd(memory), programs{{&callback_binding(), &service}, {&test_binding(), &service}} {
  Endpoint::Config shape = shape_of(options, 1);
  ReverseResponder::widen(shape, options.reverse_credits);
  make_endpoint(shape, Link::End::kClient, {&profile_of(options.protocol)});
  Requester::Config calls;
  calls.credits = options.credits;
  requester = std::make_unique<Requester>(pd, *link, calls, 0x11110000);
  reverse = std::make_unique<ReverseResponder>(
      pd, *link, ReverseResponder::Config{programs, options.reverse_credits, options.chunks, "the server"});
  EXPECT_TRUE(endpoint->attach(qp).ok());
  reverse->start(options.thresholds, 4);
  requester->start(options.thresholds.send, options.thresholds.receive);
  service.answer = [this](ServedCall& call) { reverse->reply(call.id, {}); };
}

ServerEnd::ServerEnd(FakeMemory& memory, const ReverseOptions& options)
    : FakeEnd(memory),
      programs{{&test_binding(), &service}, {&nfs4_binding(), &service}},
      pool(pd, 8 << 20, 64 << 20),
      budget({.all = 64 << 20}) {
  Endpoint::Config shape = shape_of(options, 7);
  ReverseRequester::widen(shape, options.reverse_credits);
  make_endpoint(shape, Link::End::kServer, {&profile_of(options.protocol)});
  Responder::Config calls;
  const std::uint32_t least = options.min_credits != 0 ? options.min_credits : options.credits;
  calls.credits = {.min = least, .initial = least, .max = options.credits};
  responder = std::make_unique<Responder>(pd, *link, pool, budget, programs, calls);
  responder->start(options.thresholds.send, options.ord);
  reverse = std::make_unique<ReverseRequester>(
      pd, *link, ReverseRequester::Config{options.reverse_credits, options.chunks, std::chrono::milliseconds(1000)});
  EXPECT_TRUE(endpoint->attach(qp).ok());
  reverse->start(options.thresholds);
  service.answer = [this](ServedCall& call) { responder->reply(call.id, {}); };
}

}  // namespace weft::rpcrdma::testing
