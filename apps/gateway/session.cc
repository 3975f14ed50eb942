#include "apps/gateway/session.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "apps/gateway/record_parts.h"
#include "nfsulb/bindings.h"
#include "nfsulb/programs.h"
#include "rpcrdma/rpcsec_gss.h"
#include "rpcrdma/xdr/xdr.h"
#include "spdlog/spdlog.h"

namespace weft::gateway {

using onc_tcp::Record;
using rpcrdma::AcceptStat;
using rpcrdma::CallOutcome;
using rpcrdma::CallStatus;
using rpcrdma::EndReason;
using rpcrdma::ReplyHeader;

namespace {

// The most octets of a link's text. The protocols have no bound, but systems have one. Linux's server puts the text of
// an NFSv4 link at a wrong place of a Write chunk. So texts, and items that are not longer, are not requested by a
// Write chunk.
constexpr std::size_t kMaxText = 4096;
// Once the Calls under way reach this multiple of the peer's credits, the gateway stops reading the client.
constexpr std::size_t kCallsAhead = 2;
// The bytes that a Call takes besides its record and its Reply.
constexpr std::size_t kCallOverhead = 1024;
// The bytes of the gateway's own answer.
constexpr std::size_t kOwnAnswer = 512;
// A client that was never answered keeps its place for so long while it waits for its first answer. Otherwise newcomers
// would end each other before the server answers any of them.
constexpr std::chrono::seconds kFirstAnswer{1};
// A Reply without an item that may be longer than this is a listing of a directory. Replies beyond
// ToRdmaConfig::max_reply are none: they find no room among listings.
constexpr std::size_t kShortReply = 128 << 10;

// Makes PROG_UNAVAIL, or PROG_MISMATCH with the existing versions.
ReplyHeader no_such_program(std::uint32_t xid, std::uint32_t program) {
  ReplyHeader out = accepted(xid, AcceptStat::kProgUnavail);
  for (const nfsulb::BoundProgram& bound : nfsulb::bound_programs()) {
    if (bound.binding.program != program) continue;
    const bool first = out.accept == AcceptStat::kProgUnavail;
    out.accept = AcceptStat::kProgMismatch;
    out.low = first ? bound.binding.version : std::min(out.low, bound.binding.version);
    out.high = std::max(out.high, bound.binding.version);
  }
  return out;
}

CallOutcome outcome_of(CallStatus status) {
  switch (status) {
    case CallStatus::kSuccess: return CallOutcome::kSuccess;
    case CallStatus::kProgUnavail: return CallOutcome::kProgUnavail;
    case CallStatus::kProgMismatch: return CallOutcome::kProgMismatch;
    case CallStatus::kProcUnavail: return CallOutcome::kProcUnavail;
    case CallStatus::kGarbageArgs: return CallOutcome::kGarbageArgs;
    case CallStatus::kDenied: return CallOutcome::kAuthError;
    default: return CallOutcome::kSystemErr;
  }
}

}  // namespace

struct Session::Call : PassedCall {
  std::uint64_t mark = 0;          // the observer's
  bool runs_once = false;          // it must not run twice
  std::vector<std::uint8_t> args;  // without the item, if octets follow it
  rpcrdma::Buffer result;          // for the first operation that can have an item
  onc_tcp::Room::Claim room;       // for `result` and the rest of the Reply
};

// ReplyRecord is a Reply. Its inline part is copied, since the connection needs its Receive again. The item is not
// copied.
struct Session::ReplyRecord : onc_tcp::OutRecord {
  std::vector<std::uint8_t> message;
  rpcrdma::Buffer item;
  onc_tcp::Room::Claim room;
};

Session::Session(SharedBySessions& shared, rpcrdma::ConnectionId id, std::string peer, Ledger::Client place,
                 TimePoint now)
    : shared_(shared),
      id_(id),
      config_(shared.config),
      peer_(std::move(peer)),
      place_(std::move(place)),
      lease_(place_.take(1)),
      room_for_calls_(shared.calls.enter(address())),
      room_for_replies_(shared.replies.enter(address())),
      room_for_listings_(shared.listings.enter(address())),
      now_(now),
      used_at_(now) {
  if (shared_.observer != nullptr) shared_.observer->on_connection(id_, address());
}

Session::~Session() {
  over_ = true;
  if (stream_) stream_->close("");
  client_.reset();
  watch();
}

void Session::start(boost::asio::ip::tcp::socket socket) {
  stream_ = std::make_shared<onc_tcp::Stream>(std::move(socket), shared_.buffers, config_.stream, room_for_calls_);
  stream_->start(
      {.on_record = [this](Record record) { on_record(std::move(record)); },
       .on_end = [this](const std::string& why) { end(why, why.empty() ? EndReason::kClient : EndReason::kLost); },
       .on_short = [this] { wake(); },
       .on_due = [this] { await_turn(); }});
}

void Session::await_turn() {
  shared_.turns.push({id_.value, address()}, this, 1);
}

// False if the server cannot be reached.
bool Session::connect() {
  if (client_) return true;
  rpcrdma::ClientConfig rpc = config_.rpc;
  rpc.reverse_programs = callbacks_.programs();
  rpc.reverse_credits = kCallbackCredits;
  rpc.events = &shared_.events;
  auto client = rpcrdma::Client::connect(shared_.device, config_.server, rpc);
  if (!client.ok()) {
    end(client.error().message);
    return false;
  }
  client_ = std::move(*client);
  callbacks_.attach(*client_, *stream_);
  watch();
  return true;
}

void Session::watch() {
  const verbs::Cq* const cq = client_ ? client_->completion_queue() : nullptr;
  if (cq == watched_) return;
  // Another client's queue may be where this one's was.
  if (const auto at = shared_.by_cq.find(watched_); at != shared_.by_cq.end() && at->second == this) {
    shared_.by_cq.erase(at);
  }
  if (cq != nullptr) shared_.by_cq.insert_or_assign(cq, this);
  watched_ = cq;
}

bool Session::may_leave_server() const {
  const bool may_be_called_back = may_be_called_back_ || callbacks_.num_calls() > 0;
  return client_ && !is_busy() && calls_.empty() && !may_be_called_back && now_ - used_at_ >= config_.rest;
}

void Session::leave_server() {
  past_ += client_->counters();
  client_.reset();
  watch();
}

std::size_t Session::process(TimePoint now) {
  now_ = now;
  if (stream_->waits_for_room() && shared_.calls.num_changes() != call_changes_seen_) {
    call_changes_seen_ = shared_.calls.num_changes();
    stream_->look_for_room();
  }
  std::size_t moved = 0;
  if (client_) {
    moved = client_->progress(now);
    watch();
    if (client_->state() == rpcrdma::Client::State::kClosed) end(client_->error());
  }
  if (blocked_ && !over_ && !blocked_->room.waits() && num_reply_changes() != reply_changes_seen_) {
    on_call(*std::exchange(blocked_, std::nullopt));
  }
  return moved;
}

bool Session::is_busy() const {
  if (waits_for_room()) return true;
  return client_ && (client_->state() != rpcrdma::Client::State::kReady || client_->num_outstanding() > 0);
}

void Session::wake() {
  if (!std::exchange(listed_, true)) shared_.busy.push_back(this);
  if (!std::exchange(changes_, true)) shared_.changing.push_back(this);
}

rpcrdma::ConnectionOrder::Seen Session::seen_now(TimePoint now) const {
  using Kind = rpcrdma::ConnectionOrder::Kind;
  Kind kind = Kind::kNew;
  if (num_once_ > 0) {
    kind = Kind::kOnce;
  } else if (!calls_.empty() || waits_for_room()) {
    if (used_ || now - used_at_ < kFirstAnswer) kind = Kind::kBusy;
  } else if (used_) {
    kind = Kind::kIdle;
  }
  return {.kind = kind, .used_at = used_at_};
}

bool Session::waits_for_room() const {
  return stream_->waits_for_room() || blocked_;
}

std::optional<TimePoint> Session::next_timeout() const {
  return client_ ? client_->next_timeout() : std::nullopt;
}

void Session::check(TimePoint now) {
  now_ = now;
  stream_->check(now, given_time());
  if (over_) return;
  if (!waits_for_room()) {
    waits_since_.reset();
  } else if (!waits_since_) {
    waits_since_ = now;
  }
  // The device may be unable to register memory although the Room has space. Each check allows another attempt.
  reply_changes_seen_ = ~std::uint64_t{0};
}

// In a crowd, a client that has not yet proven to move bytes has less time, so that each client that waits has a turn
// within a round.
Duration Session::given_time() const {
  constexpr auto kTerms = onc_tcp::MemoryPace::kTerms;
  double share = 1;
  for (const auto* room : {room_for_calls_.get(), room_for_replies_.get(), room_for_listings_.get()}) {
    share = std::min(share, room->share_of_round());
  }
  return std::clamp(std::chrono::duration_cast<Duration>(kTerms.round * share), kTerms.least, kTerms.grace);
}

const onc_tcp::Room::Client& Session::client_of(const onc_tcp::Room& room) const {
  if (&room == &shared_.calls) return *room_for_calls_;
  return &room == &shared_.replies ? *room_for_replies_ : *room_for_listings_;
}

std::optional<TimePoint> Session::waits_since(const onc_tcp::Room& room) const {
  const bool waits = &room == &shared_.calls ? stream_->waits_for_room() : blocked_ && blocked_->room.is_of(room);
  return waits ? waits_since_ : std::nullopt;
}

std::size_t Session::held_slowly(const onc_tcp::Room& room) const {
  const onc_tcp::Room::Client& client = client_of(room);
  return stream_->is_slow() && !client.holds_little() ? client.held() : 0;
}

rpcrdma::ConnectionStatistics Session::statistics() const {
  rpcrdma::ConnectionStatistics out{.connection = id_, .client = address()};
  out.messages = past_;
  if (client_) out.messages += client_->counters();
  out.waiting = blocked_ ? 1 : 0;
  out.under_way = static_cast<std::uint32_t>(calls_.size()) + out.waiting;
  return out;
}

void Session::tell_answer(std::uint64_t mark, CallOutcome outcome, const rpcrdma::CallSpec* served) {
  if (shared_.observer == nullptr) return;
  rpcrdma::AnsweredCall call{.connection = id_, .mark = mark, .outcome = outcome, .is_served = served != nullptr};
  if (served != nullptr) {
    call.program = served->program;
    call.version = served->version;
    call.procedure = served->procedure;
  }
  shared_.observer->on_answer(call);
}

void Session::end(const std::string& why, EndReason reason) {
  if (std::exchange(over_, true)) return;
  shared_.ended.push_back(this);
  end_reason_ = reason;
  if (!why.empty() && shared_.log.take(now_)) spdlog::warn("gateway: {}: {}", peer_, why);
  stream_->close(why);
}

void Session::on_record(Record record) {
  wake();
  if (!used_ && calls_.empty() && !blocked_) used_at_ = now_;
  const std::uint64_t mark = shared_.observer == nullptr ? 0 : shared_.observer->on_arrival();
  on_call({std::move(record), mark});
}

void Session::on_call(Arrived arrived) {
  rpcrdma::xdr::XdrReader in(arrived.record.octets());
  rpcrdma::CallHeaderView header;
  const rpcrdma::CallParse parsed = rpcrdma::parse_call(in, header);
  if (parsed == rpcrdma::CallParse::kNotACall) {
    if (!callbacks_.pass_reply(arrived.record))
      end("the client sent a record that is neither a Call nor a Reply to one");
    return;
  }
  if (parsed != rpcrdma::CallParse::kOk) {
    const bool is_mismatch = parsed == rpcrdma::CallParse::kRpcMismatch;
    return refuse(std::move(arrived), is_mismatch ? CallOutcome::kRpcMismatch : CallOutcome::kGarbageArgs,
                  refusal(parsed, header.xid));
  }
  const rpcrdma::Binding* binding = nfsulb::find_binding(header.program, header.version);
  if (binding == nullptr) {
    const ReplyHeader reply = no_such_program(header.xid, header.program);
    const bool has_program = reply.accept == AcceptStat::kProgMismatch;
    return refuse(std::move(arrived), has_program ? CallOutcome::kProgMismatch : CallOutcome::kProgUnavail,
                  header_record(reply));
  }
  if (!connect()) return;
  // The backchannel of NFSv4.1 is a connection of the client's session (RFC 8881 section 2.10.3.1).
  may_be_called_back_ |= header.program == nfsulb::kNfsProgram && header.version == nfsulb::kNfsV4;
  const ConstBytes args = in.rest();
  Call& call = calls_.emplace_back();
  call.record = std::move(arrived.record);
  call.mark = arrived.mark;
  call.room = std::move(arrived.room);
  if (!pass_call(call, header, *binding, args)) {
    block({std::move(call.record), call.mark, std::move(call.room)});
    calls_.pop_back();
  }
  hold_back();
}

void Session::block(Arrived arrived) {
  blocked_.emplace(std::move(arrived));
  reply_changes_seen_ = num_reply_changes();
}

std::uint64_t Session::num_reply_changes() const {
  return shared_.replies.num_changes() + shared_.listings.num_changes();
}

bool Session::take_room(onc_tcp::Room::Claim& room, std::size_t len, std::size_t item) const {
  const bool is_listing = item == 0 && len > kShortReply && len <= kCallOverhead + config_.max_reply;
  if (!room.has_client()) room = onc_tcp::Room::Claim(is_listing ? room_for_listings_ : room_for_replies_);
  return room.resize(len);
}

bool Session::pass_call(Call& call, const rpcrdma::CallHeaderView& header, const rpcrdma::Binding& binding,
                        ConstBytes args) {
  call.take(header, args);
  rpcrdma::CallSpec& spec = call.spec;
  spec.binding = &binding;
  // A body that RPCSEC_GSS has wrapped is passed on whole.
  if (rpcrdma::may_reduce(call.cred)) {
    take_item_out(call, binding, args);
    if (!prepare_results(call, binding, args)) return false;
  } else {
    spec.max_results = config_.max_reply + config_.max_item;
    if (!take_room(call.room, kCallOverhead + spec.max_results, config_.max_item)) return false;
  }
  const auto at = std::prev(calls_.end());
  call.runs_once = !binding.is_idempotent(spec.procedure, args, {});
  const auto queued = client_->call(spec, [this, at](const rpcrdma::Reply& reply) { on_reply(at, reply); });
  if (!queued.ok()) {
    // A repeated Call gets its answer together with the first one.
    if (queued.error().errno_value != EEXIST) refuse_unsent(call, queued.error().message);
    calls_.pop_back();
    return true;
  }
  if (call.runs_once) ++num_once_;
  ++num_calls_;
  return true;
}

void Session::refuse_unsent(Call& call, const std::string& why) {
  if (shared_.log.take(now_)) {
    spdlog::warn("gateway: {}: a call of program {} cannot be sent: {}", peer_, call.spec.program, why);
  }
  fail(call);
}

void Session::hold_back() {
  if (over_) return;
  // Once the client is held back, it stays so until half of the Calls are done.
  const std::size_t most = (held_back_ ? 1 : kCallsAhead) * config_.rpc.credits;
  const bool hold = blocked_ || (client_ && client_->num_outstanding() >= most);
  if (hold == held_back_) return;
  held_back_ = hold;
  hold ? stream_->pause() : stream_->resume();
}

// Takes out one item only, which every server accepts (U1-6.4.2-02). Further items stay in place.
void Session::take_item_out(Call& call, const rpcrdma::Binding& binding, ConstBytes args) {
  const auto walked = binding.walk_arguments(call.spec.procedure, args, {}, arguments_);
  if (walked == rpcrdma::Walked::kGarbage || arguments_.empty()) return;
  const rpcrdma::EligibleItem& item = *std::ranges::max_element(arguments_, {}, &rpcrdma::EligibleItem::len);
  const ConstBytes behind = args.subspan(item.offset + rpcrdma::xdr::round_up(item.len));
  call.spec.items = rpcrdma::ArgumentItem{item.offset, args.subspan(item.offset, item.len)};
  call.spec.args = args.first(item.offset);
  if (behind.empty()) return;
  call.args.assign(call.spec.args.begin(), call.spec.args.end());
  call.args.insert(call.args.end(), behind.begin(), behind.end());
  call.spec.args = call.args;
}

// Asks for the first result that can have an item by Write chunk, and for the others inline (U1-6.4.2-03).
bool Session::prepare_results(Call& call, const rpcrdma::Binding& binding, ConstBytes args) {
  bound_ = {};
  const auto walked = binding.bound_reply(call.spec.procedure, args, {}, {.max_text = kMaxText}, bound_);
  // A COMPOUND with an operation that no table has gets room for the largest Reply. The ca_maxresponsesize of its
  // session would bound it, too (U1-6.2.2-02). The gateway does not read that bound, for two reasons. Clients negotiate
  // about the same size: a READ of 1 MiB with its headers. And a session outlives the connection, and perhaps the
  // gateway, that saw its CREATE_SESSION.
  if (walked != rpcrdma::Walked::kWhole) bound_.rest = config_.max_reply;
  std::size_t rest = std::min(bound_.rest, config_.max_reply), item = 0;
  for (std::size_t i = 0; i < bound_.items.size(); ++i) {
    const std::size_t len = std::min(bound_.items[i], config_.max_item);
    if (i > 0 || len <= kMaxText) {
      rest = std::min(rest + rpcrdma::xdr::round_up(len), config_.max_reply + config_.max_item);
      continue;
    }
    item = len;
  }
  if (!take_room(call.room, kCallOverhead + item + rest, item)) return false;
  if (item > 0) {
    call.result = shared_.buffers.take(item);
    if (!call.result) return false;
    call.spec.result_items = rpcrdma::ScatteredBytes(call.result.octets());
    call.spec.leaves_inline_results = true;  // the record has them where they stand
  }
  call.spec.max_results = rest;
  return true;
}

void Session::on_reply(Calls::iterator at, const rpcrdma::Reply& reply) {
  Calls done;
  done.splice(done.end(), calls_, at);
  Call& call = done.front();
  if (call.runs_once) --num_once_;
  if (over_) return;
  used_at_ = now_;
  if (!reply.message.empty()) {
    used_ = true;
    tell_answer(call.mark, outcome_of(reply.status), &call.spec);
    send_reply(call, reply);
  } else if (reply.status == CallStatus::kTimeout || reply.status == CallStatus::kDisconnected) {
    end(reply.text);  // the server may have run the Call: the client asks again
  } else {
    if (shared_.log.take(now_)) spdlog::warn("gateway: {}: XID {:#x}: {}", peer_, call.xid(), reply.text);
    fail(call);
  }
  hold_back();
}

void Session::send_reply(Call& call, const rpcrdma::Reply& reply) {
  auto record = std::make_unique<ReplyRecord>();
  record->message.assign(reply.message.begin(), reply.message.end());
  // After a retry the engine's Call had another XID.
  rpcrdma::xdr::XdrWriter(MutBytes(record->message).first(4)).u32(call.xid());
  const ConstBytes message = record->message;
  const std::size_t len = reply.item_len.value_or(0);
  if (len == 0) {
    record->parts.push_back(message);
  } else {
    // The engine has checked the results against the chunks: there is an item, and it is the first.
    const std::array lens = {static_cast<std::uint32_t>(len)};
    call.spec.binding->walk_results(call.spec.procedure, reply.results, lens, results_);
    const std::size_t place = message.size() - reply.results.size() + results_.at(0)->offset;
    record->parts.push_back(message.first(place));
    add_item(record->parts, call.result.octets().first(len));
    record->parts.push_back(message.subspan(place));
    record->item = std::move(call.result);
    ++num_placed_;
  }
  call.result = {};
  call.room.resize(std::min(call.room.size(), record->message.size() + record->item.octets().size()));
  record->room = std::move(call.room);
  stream_->send(std::move(record));
}

void Session::refuse(Arrived arrived, CallOutcome outcome, std::unique_ptr<OwnedRecord> answer) {
  if (take_room(arrived.room, kOwnAnswer, 0)) {
    tell_answer(arrived.mark, outcome, nullptr);
    send_own(std::move(answer), std::move(arrived.room));
  } else {
    block(std::move(arrived));
  }
  hold_back();
}

void Session::fail(Call& call) {
  tell_answer(call.mark, CallOutcome::kSystemErr, &call.spec);
  send_own(header_record(accepted(call.xid(), AcceptStat::kSystemErr)), std::move(call.room));
}

// Sends an answer of the gateway's own.
void Session::send_own(std::unique_ptr<OwnedRecord> record, onc_tcp::Room::Claim room) {
  if (!record) return;
  room.resize(kOwnAnswer);
  record->attached = std::make_shared<onc_tcp::Room::Claim>(std::move(room));
  stream_->send(std::move(record));
}

}  // namespace weft::gateway
