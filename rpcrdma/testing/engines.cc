#include "rpcrdma/testing/engines.h"

#include <gtest/gtest.h>

#include "rpcrdma/profiles.h"

namespace weft::rpcrdma::testing {

namespace {

constexpr std::size_t kHandleLen = 32;
constexpr std::size_t kCountLen = 4;

Walked walk_arguments(std::uint32_t procedure, ConstBytes args, std::span<const std::size_t> reduced,
                      std::vector<EligibleItem>& items) {
  if (procedure != kWrite && procedure != kSwap) return reduced.empty() ? Walked::kWhole : Walked::kGarbage;
  xdr::XdrReader in(args);
  ConstBytes handle;
  std::uint64_t offset = 0;
  std::uint32_t count = 0;
  std::uint32_t stable = 0;
  std::uint32_t len = 0;
  if (!in.opaque(handle, 64) || !in.u64(offset) || !in.u32(count) || !in.u32(stable) || !in.u32(len)) {
    return Walked::kGarbage;
  }
  const std::size_t at = in.position();
  const bool is_reduced = reduced.size() == 1 && reduced[0] == at;
  if (!is_reduced && !reduced.empty()) return Walked::kGarbage;
  items.push_back({at, at, len, is_reduced});
  return Walked::kWhole;
}

bool has_result_items(std::uint32_t procedure) {
  return procedure == kRead || procedure == kSwap;
}

// The results of the test program's READ: the length of the item, the item, any octets. Octets that are too few for
// that length have no item.
Walked walk_results(std::uint32_t procedure, ConstBytes results, std::span<const std::uint32_t> reduced,
                    std::vector<std::optional<EligibleItem>>& items) {
  const std::uint32_t brought = reduced.empty() ? 0 : reduced[0];
  if (!has_result_items(procedure) || results.size() < kCountLen)
    return brought == 0 ? Walked::kWhole : Walked::kGarbage;
  xdr::XdrReader in(results);
  ConstBytes data;
  if (brought != 0) {
    items.push_back(EligibleItem{kCountLen, kCountLen, brought, true});
  } else {
    items.push_back(EligibleItem{kCountLen, kCountLen, in.opaque(data) ? static_cast<std::uint32_t>(data.size()) : 0});
  }
  return Walked::kWhole;
}

}  // namespace

const Binding& test_binding() {
  static constexpr Binding kBinding{.program = kTestProgram,
                                    .version = kTestVersion,
                                    .walk_arguments = walk_arguments,
                                    .walk_results = walk_results,
                                    .has_result_items = has_result_items};
  return kBinding;
}

const Binding& plain_binding() {
  static constexpr Binding kBinding{100005, 3};
  return kBinding;
}

Octets write_args(std::size_t len) {
  Octets args;
  xdr::XdrWriter out(args);
  out.opaque(pattern(kHandleLen));
  out.u64(0);
  out.u32(static_cast<std::uint32_t>(len));
  out.u32(2);
  out.u32(static_cast<std::uint32_t>(len));
  return args;
}

std::size_t write_position() {
  return write_args(0).size();
}

Octets pattern(std::size_t len, std::uint8_t seed) {
  Octets octets(len);
  std::uint32_t state = seed;
  for (std::uint8_t& octet : octets) {
    state = state * 1664525 + 1013904223;
    octet = static_cast<std::uint8_t>(state >> 24);
  }
  return octets;
}

void TestService::on_call(ServedCall call) {
  args.push_back(copy_of(call.args));
  if (answer) {
    answer(call);
  }
  calls.push_back(std::move(call));
}

std::size_t FakeEnd::pump(std::size_t max) {
  std::size_t num = 0;
  std::size_t in_turn = 0;
  verbs::Wc wc;
  do {
    for (in_turn = 0; num < max && cq.poll(std::span(&wc, 1)) == 1; ++num, ++in_turn) link->on_completion(wc);
    link->finish_turn();
  } while (in_turn != 0);
  return num;
}

void FakeEnd::make_endpoint(const Endpoint::Config& shape, Link::End which, const Profiles& profiles) {
  endpoint = std::move(*Endpoint::create(pd, shape));
  link.emplace(*endpoint, profiles, which, nullptr);
}

ResponderEnd::ResponderEnd(FakeMemory& memory, const Options& options)
    : FakeEnd(memory),
      programs{{&test_binding(), &service}, {&plain_binding(), &service}, {&synthetic_binding(), &service}},
      pool(pd, 8 << 20, 64 << 20),
      budget({.all = options.budget, .connection = options.max_held, .finishing = options.finishing}) {
  for (const Binding* binding : options.bindings) programs.push_back({binding, &service});
  for (ServedProgram& program : programs) program.keeps_replies = options.duplicate_requests != nullptr;
  Endpoint::Config shape;
  shape.serial = 7;
  shape.num_receives = shape.num_sends = options.credits + 2;
  shape.receive_len = options.inline_threshold;
  shape.send_len = options.inline_threshold + Responder::kSendExtra;
  shape.sends = options.sends;
  shape.max_send_wr = options.max_send_wr;
  shape.max_send_sge = qp.max_sge = options.max_sge;
  make_endpoint(shape, Link::End::kServer, profiles_of(options.protocols));
  Responder::Config config;
  const std::uint32_t least = options.min_credits != 0 ? options.min_credits : options.credits;
  config.credits = {.min = least, .initial = least, .max = options.credits};
  config.max_segments = options.max_segments;
  config.max_read_chunks = options.max_read_chunks;
  config.max_write_chunks = options.max_write_chunks;
  config.max_items = options.max_items;
  config.max_item = options.max_item;
  config.max_sge = options.max_sge;
  config.invalidates = options.invalidates;
  config.can_invalidate = options.can_invalidate;
  config.duplicate_requests = options.duplicate_requests;
  config.peer = "192.0.2.1:700";
  config.log = options.log;
  responder = std::make_unique<Responder>(pd, *link, pool, budget, programs, config);
  responder->start(options.reply_threshold, options.ord);
  EXPECT_TRUE(endpoint->attach(qp).ok());
}

ResponderEnd::~ResponderEnd() {
  qp.forget();
  service.calls.clear();
  responder.reset();
}

RequesterEnd::RequesterEnd(FakeMemory& memory, const Options& options) : FakeEnd(memory) {
  Endpoint::Config shape;
  shape.serial = 1;
  shape.num_receives = options.credits + 2;
  shape.num_sends = options.credits;
  shape.receive_len = shape.send_len = options.inline_threshold;
  shape.max_send_wr = options.credits + 4;
  shape.max_send_sge = qp.max_sge = 1;  // as of a Client
  if (options.windows) Requester::widen_for_windows(shape, options.max_send_wr);
  make_endpoint(shape, Link::End::kClient, {&profile_of(options.protocol)});
  const Requester::Config config{.credits = options.credits,
                                 .call_timeout = options.call_timeout,
                                 .reserve_credit = options.reserve_credit,
                                 .chunks = options.chunks,
                                 .short_only = options.short_only,
                                 .windows = options.windows,
                                 .retransmits = options.retransmits,
                                 .retransmit_after = options.retransmit_after,
                                 .peer = "192.0.2.2:2049",
                                 .log = options.log};
  requester = std::make_unique<Requester>(pd, *link, config, options.first_xid);
  EXPECT_TRUE(endpoint->attach(qp).ok());
  if (options.start) requester->start(options.call_threshold, options.reply_threshold);
}

RequesterEnd::~RequesterEnd() {
  qp.forget();
  requester.reset();
}

CallSpec call_of(const Binding& binding, std::uint32_t procedure, ConstBytes args) {
  CallSpec spec;
  spec.program = binding.program;
  spec.version = binding.version;
  spec.procedure = procedure;
  spec.binding = &binding;
  spec.args = args;
  return spec;
}

Octets rpc_reply(std::uint32_t xid, const Octets& results, AcceptStat stat) {
  Octets octets;
  xdr::XdrWriter out(octets);
  emit_reply(out, {.xid = xid, .verf = {}, .accept = stat});
  out.raw(results);
  return octets;
}

Octets message(const v1::Header& header, const Octets& payload) {
  Octets octets;
  xdr::XdrWriter out(octets);
  v1::emit_header(out, header);
  out.raw(payload);
  return octets;
}

v1::Header parse(const Octets& message) {
  xdr::XdrReader in(message);
  v1::Header header;
  EXPECT_EQ(v1::parse_header(in, header), v1::HeaderError::kNone);
  return header;
}

Octets plain_reply(const Octets& call, std::uint32_t credits, const Octets& results) {
  v1::Header header = parse(call);
  header.proc = v1::Proc::kMsg;
  header.credit = credits;
  header.lists.read_list.clear();
  for (SegmentArray& chunk : header.lists.write_list) {
    for (Segment& segment : chunk) segment.length = 0;
  }
  if (header.lists.reply_chunk) {
    for (Segment& segment : *header.lists.reply_chunk) segment.length = 0;
  }
  return message(header, rpc_reply(header.xid, results));
}

std::vector<std::uint32_t> handles_of(const v1::Header& header) {
  std::vector<std::uint32_t> handles;
  for (const ReadSegment& segment : header.lists.read_list) handles.push_back(segment.target.handle);
  for (const SegmentArray& chunk : header.lists.write_list) {
    for (const Segment& segment : chunk) handles.push_back(segment.handle);
  }
  if (header.lists.reply_chunk) {
    for (const Segment& segment : *header.lists.reply_chunk) handles.push_back(segment.handle);
  }
  return handles;
}

Octets payload_of(const Octets& message) {
  xdr::XdrReader in(message);
  v1::Header header;
  EXPECT_EQ(v1::parse_header(in, header), v1::HeaderError::kNone);
  return {in.rest().begin(), in.rest().end()};
}

}  // namespace weft::rpcrdma::testing
