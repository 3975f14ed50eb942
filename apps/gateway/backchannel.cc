#include "apps/gateway/backchannel.h"

#include <fmt/format.h>

#include <utility>

#include "apps/gateway/record_parts.h"
#include "rpcrdma/rpc_message.h"

namespace weft::gateway {

using onc_tcp::Record;
using rpcrdma::AcceptStat;
using rpcrdma::CallStatus;

namespace {

// This many Calls beyond the credits wait here. Then the gateway stops reading the server.
constexpr std::size_t kMaxWaiting = kCallbackCredits;
// A client may take no Calls at all (RFC 8167). The Replies to its own Calls come on the same TCP connection, which the
// gateway therefore goes on to read: until the client has answered a Call, this many wait for it, and the gateway
// refuses further ones.
constexpr std::size_t kMaxUnproven = kCallbackCredits + kMaxWaiting;

}  // namespace

struct CallsToRdma::Call : PassedCall {
  rpcrdma::CallId id;
};

struct CallsToRdma::State {
  rpcrdma::Server& server;
  rpcrdma::ConnectionId client;
  Owner owner;
  std::weak_ptr<onc_tcp::Stream> stream;
  std::list<Call> calls;
  std::size_t num_answers = 0;  // not sent yet
  bool has_answered = false;    // the client has answered a Call
  bool is_paused = false;
  bool ended = false;

  void hold_back() {
    // Once the server is held back, it stays so until half of them are done.
    const std::size_t most = kCallbackCredits + (is_paused ? 0 : kMaxWaiting);
    const bool hold = (has_answered ? calls.size() : 0) + num_answers >= most;
    if (!ended && hold != std::exchange(is_paused, hold)) owner.pause(hold);
  }
};

// An answer counts like its Call until it was sent. So the gateway soon stops reading a server that calls and does not
// read.
void CallsToRdma::answer(const std::shared_ptr<State>& state, onc_tcp::Stream& stream,
                         std::unique_ptr<OwnedRecord> record) {
  if (!record) return;
  ++state->num_answers;
  record->attached = std::shared_ptr<const void>(nullptr, [state](const void*) {
    --state->num_answers;
    state->hold_back();
  });
  stream.send(std::move(record));
}

CallsToRdma::CallsToRdma(rpcrdma::Server& server, rpcrdma::ConnectionId client, Owner owner)
    : state_(new State{server, client, std::move(owner), {}, {}}) {}

CallsToRdma::~CallsToRdma() {
  end();
}

void CallsToRdma::end() {
  if (std::exchange(state_->ended, true)) return;
  for (Call& call : state_->calls) {
    state_->server.cancel(state_->client, call.id);
    call.record = {};
  }
}

void CallsToRdma::pass(onc_tcp::Stream& stream, Record record) {
  State& state = *state_;
  state.stream = stream.weak_from_this();
  rpcrdma::xdr::XdrReader in(record.octets());
  rpcrdma::CallHeaderView header;
  const rpcrdma::CallParse parsed = rpcrdma::parse_call(in, header);
  if (parsed != rpcrdma::CallParse::kOk) {
    answer(state_, stream, refusal(parsed, header.xid));
    return state.hold_back();
  }
  if (!state.has_answered && state.calls.size() >= kMaxUnproven) {
    state.owner.warn(fmt::format("call of the server, XID {:#x}: the client has answered none of {} so far", header.xid,
                                 state.calls.size()));
    answer(state_, stream, header_record(accepted(header.xid, AcceptStat::kSystemErr)));
    return state.hold_back();
  }
  Call& call = state.calls.emplace_back();
  call.take(header, in.rest());
  call.record = std::move(record);
  const auto at = std::prev(state.calls.end());
  const auto called = state.server.call(
      state.client, call.spec, [kept = state_, at](const rpcrdma::Reply& reply) { on_reply(kept, at, reply); });
  if (called.ok()) {
    call.id = called.value();
  } else {
    state.owner.warn("a call of the server cannot be passed on: " + called.error().message);
    // A repeated Call gets its answer together with the first one.
    if (called.error().errno_value != EEXIST) {
      answer(state_, stream, header_record(accepted(call.xid(), AcceptStat::kSystemErr)));
    }
    state.calls.erase(at);
  }
  state.hold_back();
}

void CallsToRdma::on_reply(const std::shared_ptr<State>& state, std::list<Call>::iterator at,
                           const rpcrdma::Reply& reply) {
  const std::uint32_t xid = at->xid();
  state->calls.erase(at);
  const auto stream = state->stream.lock();
  if (state->ended || !stream) return;
  if (!reply.message.empty()) {
    state->has_answered = true;
    answer(state, *stream,
           owned_record([&](auto& octets) { octets.assign(reply.message.begin(), reply.message.end()); }));
  } else if (reply.did_not_run || (reply.status != CallStatus::kTimeout && reply.status != CallStatus::kDisconnected)) {
    // A Call that may have run is answered by the client or not at all. The end of a client has its line elsewhere.
    if (reply.status != CallStatus::kDisconnected) {
      state->owner.warn(fmt::format("call of the server, XID {:#x}: {}", xid, reply.text));
    }
    answer(state, *stream, header_record(accepted(xid, AcceptStat::kSystemErr)));
  }
  state->hold_back();
}

// Sends the Call at once: the credits bound the number of Calls, since a Call needs a granted Receive.
void CallsToTcp::on_call(rpcrdma::ServedCall served) {
  ++num_calls_;
  calls_.emplace(served.xid, served.id);
  stream_->send(owned_record([&](auto& octets) {
    octets.assign(served.header.begin(), served.header.end());
    octets.insert(octets.end(), served.args.begin(), served.args.end());
  }));
}

bool CallsToTcp::pass_reply(const Record& record) {
  rpcrdma::xdr::XdrReader in(record.octets());
  rpcrdma::ReplyHeader rpc;
  if (!rpcrdma::parse_reply(in, rpc)) return false;
  const auto at = calls_.find(rpc.xid);
  if (at == calls_.end()) return false;
  const auto octets = record.octets(), results = in.rest(), header = octets.first(octets.size() - results.size());
  rpcrdma::ServedReply reply;
  reply.header.assign(header.begin(), header.end());
  reply.results.assign(results.begin(), results.end());
  const rpcrdma::ServedCallId id = at->second;
  calls_.erase(at);
  client_->reply(id, std::move(reply));
  return true;
}

}  // namespace weft::gateway
