#include <algorithm>
#include <limits>
#include <utility>

#include "requirements/violates.h"
#include "rpcrdma/responder.h"
#include "rpcrdma/responder_state.h"
#include "rpcrdma/rpcsec_gss.h"

// The part of the Responder that takes Calls in: header, RPC header, program, Read chunks against the arguments.
namespace weft::rpcrdma {

namespace {

bool is_served(std::uint32_t flavor, const ServedProgram& program) {
  if (flavor == static_cast<std::uint32_t>(AuthFlavor::kRpcsecGss)) return program.takes_gss;
  return flavor <= static_cast<std::uint32_t>(AuthFlavor::kShort);
}

}  // namespace

void Responder::on_receive(Arrival&& arrival) {
  ReceivedCall received;
  const std::uint64_t max_message = std::uint64_t{config_.max_call} + config_.max_item;
  const ChunkLimits limits{.max_segments = config_.max_segments,
                           .max_read_chunks = config_.max_read_chunks,
                           .max_write_chunks = config_.max_write_chunks,
                           .max_message = max_message,
                           .max_item = config_.max_item,
                           .max_read_list = max_message + config_.max_item};
  const CallVerdict verdict =
      link_.profile().receive_call(endpoint_.received(arrival.slot, arrival.len), limits, received);
  if (verdict == CallVerdict::kDiscard) return discard(arrival.slot, received.why);
  const CallSlot slot = take_call(arrival.slot);
  Call& call = call_at(slot);
  if (arrival.joined) {
    call.lease.shared = std::move(arrival.joined->lease);
    call.joined = std::make_shared<const std::vector<std::uint8_t>>(std::move(arrival.joined->octets));
    received.payload = *call.joined;
  }
  call.xid = received.xid;
  call.version = received.version;
  call.state = Call::State::kWaiting;
  // R1-7.2.1-05: a message that is not known to be a Call requests no credits.
  settle_credits(verdict == CallVerdict::kAccept ? received.credit : 0);
  if (verdict == CallVerdict::kError) {  // U1-6.4.2-07
    const bool is_other = received.error.code == TransportError::Code::kVersion && has_called_;
    if (is_other && link_.profile().refuses_other_version) received.error.code = TransportError::Code::kOtherVersion;
    received.error.low = link_.versions().low;
    received.error.high = link_.versions().high;
    return answer_error(slot, received.error, received.why);
  }
  call.inv_handle = received.inv_handle;
  call.external = received.external;
  call.lists = std::move(received.lists);
  const bool must_read = call.lists.call_chunk() != nullptr || !call.lists.read_chunks().empty();
  // The peer allows no RDMA Read.
  if (violates("R1-4.3.1-13", must_read && config_.ord == 0)) {
    return answer_error(slot, TransportError::Code::kReadChunks,
                        "it has Read chunks, and its sender serves no RDMA Read");
  }
  if (!call.external && !parse_payload(slot, received.payload)) return;
  call.print = print_of(call);
  if (violates("R1-5.5.3-03", was_fatal(call))) {
    return answer_error(slot, TransportError::Code::kSystem,
                        "the peer refused an RDMA Read or Write of this Call before");
  }

  call.need = need_of(call);
  if (!share_.could_have(call.need, call.lease.octets())) {
    call.lease.end();
    call.joined.reset();  // an error needs nothing of it
    return answer_error(slot, TransportError::Code::kSystem, "it needs more memory than one address may have");
  }
  waiting_.push_back(slot);
  admit();
}

// A Call without chunks needs none: no handle of it can be refused.
std::uint64_t Responder::print_of(const Call& call) const {
  if (config_.duplicate_requests == nullptr || call.lists.empty()) return 0;
  return config_.duplicate_requests->print_of(call.lists, call.external ? nullptr : &call.rpc, call.args);
}

// A Call whose chunks the peer refused would end this connection as well.
bool Responder::was_fatal(const Call& call) const {
  return config_.duplicate_requests != nullptr && !call.lists.empty() &&
         config_.duplicate_requests->was_fatal(config_.client, {call.xid, call.print});
}

void Responder::refuse_parts(std::optional<ReceiveSlot> receive, std::uint32_t xid, TransportError::Code code,
                             const char* why) {
  const CallSlot slot = take_call(receive);
  call_at(slot).xid = xid;
  call_at(slot).version = link_.profile().version;
  settle_credits(0);
  answer_error(slot, code, why);
}

void Responder::discard(ReceiveSlot receive, const char* why) {
  ++counters_.discarded;
  if (config_.log != nullptr) {
    config_.log->line(verbs::LogLevel::kWarn, config_.peer, "a message was discarded: {}", why);
  }
  link_.on_needless();
  endpoint_.post_receive(receive);
}

// The Receives for a grant are available before any Reply carries it (R1-4.3.1-09).
void Responder::settle_credits(std::uint32_t requested) {
  // For the peer, a Call is still under way while the Send of its answer is.
  CreditPolicy& grants = link_.credits().grants;
  grants.on_call(requested, calls_under_way_ + sends_under_way_);
  const std::uint32_t share = link_.receives_for(grants.promised() + config_.reverse_credits);
  if (share != endpoint_.share() && !endpoint_.set_share(share)) {
    grants.hold_at(endpoint_.share() - config_.reverse_credits);
  }
}

bool Responder::is_short() const {
  const ReceivePool* receives = endpoint_.config().receives;
  return !waiting_.empty() || (receives != nullptr && receives->is_low(endpoint_.config().address));
}

bool Responder::parse_payload(CallSlot slot, ConstBytes payload) {
  Call& call = call_at(slot);
  xdr::XdrReader in(payload);
  switch (parse_call(in, call.rpc)) {
    case CallParse::kOk: break;
    case CallParse::kNotACall:
      // The type of an inline message was checked before, so an inline message comes here only if it has no type.
      answer_error(slot, TransportError::Code::kBadHeader, "its Payload stream is no Call");
      return false;
    case CallParse::kRpcMismatch: {
      ReplyHeader rpc{.xid = call.xid, .denied = true, .verf = {}};
      rpc.low = rpc.high = kRpcVersion;
      refuse(slot, std::move(rpc));
      return false;
    }
    case CallParse::kGarbage:
      answer_stat(slot, AcceptStat::kGarbageArgs, "its RPC header does not decode");
      return false;
  }
  if (violates("R1-5.5.2-04", call.rpc.xid != call.xid)) {
    answer_error(slot, TransportError::Code::kBadHeader, "header XID differs from RPC XID");
    return false;
  }
  if (!match_program(slot)) return false;
  if (!is_served(call.rpc.cred.flavor, *call.program)) {
    ReplyHeader rpc{.xid = call.xid, .denied = true, .verf = {}};
    rpc.reject = RejectStat::kAuthError;
    rpc.auth = AuthStat::kBadCred;
    refuse(slot, std::move(rpc));
    return false;
  }
  call.may_reduce = may_reduce(call.rpc.cred);
  call.header = payload.first(in.position());
  call.args = in.rest();
  return match_read_chunks(slot);
}

bool Responder::match_program(CallSlot slot) {
  Call& call = call_at(slot);
  ReplyHeader rpc{.xid = call.xid, .verf = {}, .accept = AcceptStat::kProgUnavail};
  rpc.low = std::numeric_limits<std::uint32_t>::max();
  const ServedProgram* any = nullptr;
  for (const ServedProgram& program : programs_) {
    if (program.is_any) any = &program;
    if (program.is_any || program.binding->program != call.rpc.program) continue;
    if (program.binding->version == call.rpc.version) {
      call.program = &program;
      return true;
    }
    rpc.accept = AcceptStat::kProgMismatch;
    rpc.low = std::min(rpc.low, program.binding->version);
    rpc.high = std::max(rpc.high, program.binding->version);
  }
  call.program = any;
  if (any != nullptr) return true;
  refuse(slot, std::move(rpc));
  return false;
}

// Checks normal Read chunks against the Payload stream and the binding, before any of them is pulled (RFC 8166 sections
// 4.5.2 and 6.1).
bool Responder::match_read_chunks(CallSlot slot) {
  Call& call = call_at(slot);
  if (call.lists.read_chunks().empty()) return true;
  if (match_arguments(call)) return true;
  answer_stat(slot, AcceptStat::kGarbageArgs,
              "its Read chunks do not agree with its arguments");  // R1-5.5.2-05, R1-8.1.1-01
  return false;
}

namespace {

// R1-4.4.5.1-02, R1-4.4.5.1-03: with or without roundup.
bool has_length_of(const Chunk& chunk, std::uint32_t item_len) {
  return chunk.length == item_len || chunk.length == xdr::round_up(std::size_t{item_len});
}

}  // namespace

// Positions count octets of the unreduced Payload stream (R1-4.4.5-02, R1-4.4.5-03), so only a walk finds the place of
// an argument behind other arguments. Overlapping chunks have a Position inside an item, and the walk finds no item at
// that Position.
bool Responder::match_arguments(Call& call) {
  const auto walk = call.program->binding->walk_arguments;
  if (violates("R1-8.1.1-01", walk == nullptr)) return false;
  if (violates("R1-10.2.2.3-01", !call.may_reduce)) return false;  // R1-10.2.2-01
  const auto chunks = call.lists.read_chunks();
  positions_.clear();
  for (const Chunk& chunk : chunks) {
    if (chunk.position < call.header.size()) return false;  // R1-8.1.1-01; the checks below would refuse it too
    positions_.push_back(chunk.position - call.header.size());
  }
  found_arguments_.clear();
  const Walked walked = walk(call.rpc.procedure, call.args, positions_, found_arguments_);
  if (violates("R1-8.1.1-01", walked == Walked::kGarbage)) return false;
  if (violates("U1-6.4.2-08", found_arguments_.size() > config_.max_items)) return false;
  std::size_t next = 0;
  for (const EligibleItem& item : found_arguments_) {
    if (!item.reduced) continue;
    if (next == chunks.size() || item.position != positions_[next] || item.offset > call.args.size()) return false;
    const Chunk& chunk = chunks[next++];
    if (violates("R1-4.4.4.1-03", !has_length_of(chunk, item.len))) return false;
    if (item.len != 0) call.items.push_back({&chunk, item.offset, item.len, {}});
  }
  return !violates("R1-8.1.1-01", next != chunks.size());
}

void Responder::admit() {
  start_waiting();
}

}  // namespace weft::rpcrdma
