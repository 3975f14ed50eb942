#include "rpcrdma/requester.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

namespace weft::rpcrdma {

namespace {

// A Reply's RPC header with an empty verifier; PROG_MISMATCH and RPC_MISMATCH are longer but carry no results.
constexpr std::size_t kLongestErrorReply = 32;
constexpr std::size_t kMaxSegmentLen = 0xffffffff;
constexpr std::size_t kMaxSpare = 64;

// Reply chunk memory that a spare Call may keep, in octets.
constexpr std::size_t kKeepReplyMemory = 64 * 1024;

}  // namespace

const char* call_status_str(CallStatus status) {
  switch (status) {
    case CallStatus::kSuccess: return "SUCCESS";
    case CallStatus::kProgUnavail: return "PROG_UNAVAIL";
    case CallStatus::kProgMismatch: return "PROG_MISMATCH";
    case CallStatus::kProcUnavail: return "PROC_UNAVAIL";
    case CallStatus::kGarbageArgs: return "GARBAGE_ARGS";
    case CallStatus::kSystemErr: return "SYSTEM_ERR";
    case CallStatus::kDenied: return "MSG_DENIED";
    case CallStatus::kErrVers: return "ERR_VERS";
    case CallStatus::kErrChunk: return "ERR_CHUNK";
    case CallStatus::kBadReply: return "bad reply";
    case CallStatus::kTimeout: return "timeout";
    case CallStatus::kDisconnected: return "disconnected";
    case CallStatus::kLocalError: return "local error";
  }
  return "unknown";
}

struct Requester::Call {
  CallSpec spec;
  ReplyCallback done;
  std::uint32_t xid = 0;
  std::optional<verbs::TimePoint> deadline;

  // While under way:
  bool long_call = false;
  bool offer_write = false;
  std::size_t reply_chunk_len = 0;  // octets offered; 0 for none
  v1::Header header;
  std::vector<std::uint8_t> head;               // Long Call: RPC header and arguments before the item
  std::vector<std::uint8_t> tail;               // Long Call: the item's roundup and the arguments behind it
  std::vector<std::uint8_t> reply_memory;       // the Reply chunk
  std::vector<std::unique_ptr<verbs::Mr>> mrs;  // after the memory that they cover, so gone before it

  // Once ended, until the callback ran:
  CallStatus status = CallStatus::kSuccess;
  std::string text;

  std::size_t item_len() const { return spec.item ? spec.item->data.size() : 0; }
  std::size_t cred_len() const { return spec.cred != nullptr ? spec.cred->body.size() : 0; }
  // The RPC message with everything in it.
  std::size_t message_len() const { return call_header_len(cred_len()) + spec.args.size() + xdr::round_up(item_len()); }

  void reset() {
    spec = CallSpec{};
    done = nullptr;
    deadline.reset();
    long_call = offer_write = false;
    reply_chunk_len = 0;
    header = v1::Header{};
    mrs.clear();
    head.clear();
    tail.clear();
    if (reply_memory.capacity() > kKeepReplyMemory) reply_memory = {};
    text.clear();
  }
};

Requester::Requester(verbs::Pd& pd, Channel& channel, const Config& config, std::uint32_t first_xid)
    : pd_(pd), channel_(channel), config_(config), next_xid_(first_xid) {}

Requester::~Requester() = default;

verbs::Status Requester::call(const CallSpec& spec, ReplyCallback done) {
  if (closed_) return verbs::Error{ENOTCONN, "the connection is closed"};
  const std::size_t item_len = spec.item ? spec.item->data.size() : 0;
  if (spec.item && (spec.item->position % 4 != 0 || spec.item->position > spec.args.size())) {
    return verbs::Error{EINVAL, "the item's position is not a place in the arguments"};
  }
  if (spec.args.size() % 4 != 0) return verbs::Error{EINVAL, "arguments are not a multiple of 4 octets"};
  if (spec.cred != nullptr && spec.cred->body.size() > kMaxAuthBody) {
    return verbs::Error{EINVAL, "the credential is longer than 400 octets"};
  }
  if (item_len > kMaxSegmentLen / 2 || spec.args.size() > kMaxSegmentLen / 4 ||
      spec.result_item.size() > kMaxSegmentLen / 2 || spec.max_results > kMaxSegmentLen / 4) {
    return verbs::Error{EINVAL, "arguments or results do not fit a segment"};
  }
  std::unique_ptr<Call> call;
  if (spare_.empty()) {
    call = std::make_unique<Call>();
  } else {
    call = std::move(spare_.back());
    spare_.pop_back();
  }
  call->spec = spec;
  call->done = std::move(done);
  unstamped_ = true;
  waiting_.push_back(std::move(call));
  if (!dispatching_) pump();
  return {};
}

void Requester::start(std::size_t call_threshold, std::size_t reply_threshold) {
  started_ = true;
  call_threshold_ = call_threshold;
  reply_threshold_ = reply_threshold;
  pump();
}

std::uint32_t Requester::window() const {
  return std::min(config_.credits, granted_);
}  // R1-4.3.1-06

// Sends what the peer's grant allows (R1-4.3.1-04, R1-4.3.1-08).
void Requester::pump() {
  while (started_ && !closed_ && !waiting_.empty() && !channel_.failure() &&
         sent_.size() + abandoned_.size() < window()) {
    const auto at = waiting_.begin();
    sent_.splice(sent_.end(), waiting_, at);
    switch (transmit(**at)) {
      case Transmitted::kSent: break;
      case Transmitted::kNoRoom: waiting_.splice(waiting_.begin(), sent_, at); return;
      case Transmitted::kFailed: finish(at, CallStatus::kLocalError, std::move((*at)->text)); break;
    }
  }
}

Requester::Transmitted Requester::transmit(Call& call) {
  if (channel_.send_queue_room() == 0) return Transmitted::kNoRoom;
  const auto send = channel_.take_send();
  if (!send) return Transmitted::kNoRoom;
  do {
    ++next_xid_;
  } while (find(next_xid_) != sent_.end() || std::ranges::find(abandoned_, next_xid_) != abandoned_.end());
  call.xid = next_xid_;
  call.header = v1::Header{};
  call.header.xid = call.xid;
  call.header.credit = config_.credits;

  choose_reply_form(call);
  std::size_t header_len = v1::kMinHeader;
  if (call.offer_write) header_len += 8 + v1::kSegmentLen;
  if (call.reply_chunk_len != 0) header_len += 4 + v1::kSegmentLen;
  if (!register_reply(call) || !register_call(call, header_len)) {
    channel_.give_send(*send);
    return Transmitted::kFailed;
  }
  const std::size_t len = emit(call, channel_.send_buffer(*send));
  if (!channel_.post_send(*send, len)) {
    call.text = *channel_.failure();
    return Transmitted::kFailed;
  }
  ++counters_.calls_sent;
  return Transmitted::kSent;
}

// RFC 8166 section 4.3.2 and 4.3.3, from the bound of the Reply.
void Requester::choose_reply_form(Call& call) {
  const CallSpec& spec = call.spec;
  const std::size_t plain = std::max(kPlainReplyHeader + spec.max_results, kLongestErrorReply);
  const std::size_t with_item = plain + xdr::round_up(spec.result_item.size());
  std::size_t transport = v1::kMinHeader;
  call.offer_write = !spec.result_item.empty() && transport + with_item > reply_threshold_;
  if (call.offer_write) transport += 8 + v1::kSegmentLen;
  const std::size_t payload = call.offer_write ? plain : with_item;
  // R1-5.3.3-01: strictly larger than the threshold, transport header included.
  call.reply_chunk_len = transport + payload > reply_threshold_ ? xdr::round_up(payload) : 0;
}

bool Requester::register_memory(Call& call, const void* octets, std::size_t len, verbs::Access access,
                                Segment& segment) {
  // What is only read by the peer is never written through this pointer.
  auto mr = pd_.reg_mr(const_cast<void*>(octets), len, access);
  if (!mr.ok()) {
    call.text = "cannot register memory: " + mr.error().message;
    return false;
  }
  segment = Segment{(*mr)->rkey(), static_cast<std::uint32_t>(len), reinterpret_cast<std::uintptr_t>(octets)};
  call.mrs.push_back(std::move(*mr));
  return true;
}

bool Requester::register_reply(Call& call) {
  const auto writable = verbs::Access::kLocalWrite | verbs::Access::kRemoteWrite;
  Segment segment;
  if (call.offer_write) {
    const MutBytes room = call.spec.result_item;
    if (!register_memory(call, room.data(), room.size(), writable, segment)) return false;
    call.header.lists.write_list.push_back({segment});
    ++counters_.write_chunks;
  }
  if (call.reply_chunk_len != 0) {
    call.reply_memory.resize(call.reply_chunk_len);
    if (!register_memory(call, call.reply_memory.data(), call.reply_chunk_len, writable, segment)) return false;
    call.header.lists.reply_chunk = SegmentArray{segment};
    ++counters_.reply_chunks;
  }
  return true;
}

bool Requester::add_read_segment(Call& call, std::uint32_t position, ConstBytes octets) {
  if (octets.empty()) return true;
  ReadSegment segment;
  segment.position = position;
  if (!register_memory(call, octets.data(), octets.size(), verbs::Access::kRemoteRead, segment.target)) return false;
  call.header.lists.read_list.push_back(segment);
  return true;
}

namespace {

CallHeader rpc_header(const CallSpec& spec, std::uint32_t xid) {
  CallHeader rpc{xid, spec.program, spec.version, spec.procedure, {}, {}};
  if (spec.cred != nullptr) rpc.cred = *spec.cred;
  return rpc;
}

}  // namespace

// Chooses the form of the Call: all inline, the item as a Read chunk (R1-4.4.5.1-01: without roundup), or all of it as
// a Position Zero Read chunk whose segments gather it from where it stands.
bool Requester::register_call(Call& call, std::size_t header_len) {
  const CallSpec& spec = call.spec;
  const std::size_t rpc_len = call_header_len(call.cred_len());
  if (header_len + call.message_len() <= call_threshold_) return true;
  if (call.item_len() != 0 && header_len + v1::kReadSegmentLen + rpc_len + spec.args.size() <= call_threshold_) {
    ++counters_.read_chunks;
    const auto position = static_cast<std::uint32_t>(rpc_len + spec.item->position);
    return add_read_segment(call, position, spec.item->data);
  }
  call.long_call = true;
  ++counters_.long_calls;
  call.header.proc = v1::Proc::kNomsg;
  const std::size_t before = spec.item ? spec.item->position : spec.args.size();
  xdr::XdrWriter head(call.head);
  emit_call(head, rpc_header(spec, call.xid));
  head.raw(spec.args.first(before));
  call.tail.assign(xdr::padding(call.item_len()), 0);
  xdr::XdrWriter(call.tail).raw(spec.args.subspan(before));
  if (!add_read_segment(call, 0, call.head)) return false;
  if (spec.item && !add_read_segment(call, 0, spec.item->data)) return false;
  return add_read_segment(call, 0, call.tail);
}

std::size_t Requester::emit(Call& call, MutBytes out) {
  scratch_.clear();
  xdr::XdrWriter writer(scratch_);
  v1::emit_header(writer, call.header);
  if (!call.long_call) {
    const CallSpec& spec = call.spec;
    emit_call(writer, rpc_header(spec, call.xid));
    const bool reduced = !call.header.lists.read_list.empty();
    if (!spec.item || reduced) {
      writer.raw(spec.args);
    } else {
      writer.raw(spec.args.first(spec.item->position));
      writer.opaque_fixed(spec.item->data);
      writer.raw(spec.args.subspan(spec.item->position));
    }
  }
  assert(scratch_.size() <= out.size() && scratch_.size() <= call_threshold_);  // R1-5.2.4-05
  std::memcpy(out.data(), scratch_.data(), scratch_.size());
  return scratch_.size();
}

Requester::Calls::iterator Requester::find(std::uint32_t xid) {
  return std::ranges::find_if(sent_, [xid](const auto& call) { return call->xid == xid; });
}

void Requester::on_receive(std::uint32_t slot, std::size_t len) {
  const ConstBytes message = channel_.received(slot, len);
  dispatching_ = true;
  const auto xid = v1::reply_xid(message);
  const auto at = xid ? find(*xid) : sent_.end();
  if (at != sent_.end()) {
    Call& call = **at;
    const v1::Offered offered{call.header.lists.write_list,
                              call.header.lists.reply_chunk ? &*call.header.lists.reply_chunk : nullptr};
    const v1::ReplyVerdict verdict = v1::receive_reply(message, offered, received_);
    if (verdict != v1::ReplyVerdict::kDiscard) granted_ = std::max<std::uint32_t>(received_.credit, 1);
    switch (verdict) {
      case v1::ReplyVerdict::kDiscard: ++counters_.replies_discarded; break;
      case v1::ReplyVerdict::kErrVers:
        finish(at, CallStatus::kErrVers,
               "ERR_VERS: the peer speaks RPC-over-RDMA versions " + std::to_string(received_.header.vers_low) +
                   " to " + std::to_string(received_.header.vers_high));
        break;
      case v1::ReplyVerdict::kErrChunk:
        finish(at, CallStatus::kErrChunk, "ERR_CHUNK: the peer could not use this Call's header or chunks");
        break;
      case v1::ReplyVerdict::kReply:
      case v1::ReplyVerdict::kLongReply: {
        Calls done;
        done.splice(done.end(), sent_, at);
        // R1-10.1.3-01: fenced from the peer before anything looks at it.
        call.mrs.clear();
        const ConstBytes payload = verdict == v1::ReplyVerdict::kReply
                                       ? received_.payload
                                       : ConstBytes(call.reply_memory).first(received_.reply_chunk_len);
        on_rpc_reply(call, payload, received_);
        release(done, done.begin());
        break;
      }
    }
  } else {
    ++counters_.replies_discarded;
    // A Call that was given up gives its credit back when its Reply comes after all.
    if (xid) std::erase(abandoned_, *xid);
  }
  dispatching_ = false;
  channel_.post_receive(slot);
  pump();
}

namespace {

CallStatus status_of(const ReplyHeader& rpc) {
  if (rpc.denied) return CallStatus::kDenied;
  switch (rpc.accept) {
    case AcceptStat::kSuccess: return CallStatus::kSuccess;
    case AcceptStat::kProgUnavail: return CallStatus::kProgUnavail;
    case AcceptStat::kProgMismatch: return CallStatus::kProgMismatch;
    case AcceptStat::kProcUnavail: return CallStatus::kProcUnavail;
    case AcceptStat::kGarbageArgs: return CallStatus::kGarbageArgs;
    case AcceptStat::kSystemErr: return CallStatus::kSystemErr;
  }
  return CallStatus::kBadReply;
}

}  // namespace

void Requester::on_rpc_reply(Call& call, ConstBytes payload, const v1::ReceivedReply& received) {
  xdr::XdrReader in(payload);
  ReplyHeader rpc;
  Reply reply;
  if (!parse_reply(in, rpc) || rpc.xid != call.xid) {
    reply.status = CallStatus::kBadReply;
    reply.text = "the Reply's RPC header does not decode";
  } else {
    reply.status = status_of(rpc);
    if (reply.status != CallStatus::kSuccess) {
      reply.text = describe(rpc);
    } else {
      reply.results = in.rest();
      // R1-8.1.1-04: with a Write chunk offered nothing of the item may be inline, so even "nothing written" is said.
      if (call.offer_write) reply.item_len = total_length(received.header.lists.write_list.front());
    }
  }
  end(call, reply);
}

void Requester::on_send_done(std::uint32_t slot) {
  channel_.give_send(slot);
  if (!dispatching_) pump();
}

// Ends a Call without results; its callback runs from the next on_time.
void Requester::finish(Calls::iterator at, CallStatus status, std::string text) {
  Call& call = **at;
  call.mrs.clear();
  call.status = status;
  call.text = std::move(text);
  ended_.splice(ended_.end(), sent_, at);
}

void Requester::end(Call& call, const Reply& reply) {
  ReplyCallback done = std::move(call.done);
  if (done) done(reply);
}

void Requester::release(Calls& from, Calls::iterator at) {
  (*at)->reset();
  if (spare_.size() < kMaxSpare) {
    spare_.splice(spare_.end(), from, at);
  } else {
    from.erase(at);
  }
}

std::size_t Requester::run_ended() {
  std::size_t num_ended = 0;
  const bool outer = std::exchange(dispatching_, true);
  while (!ended_.empty()) {
    Calls one;
    one.splice(one.end(), ended_, ended_.begin());
    Reply reply;
    reply.status = one.front()->status;
    reply.text = one.front()->text;
    end(*one.front(), reply);
    release(one, one.begin());
    ++num_ended;
  }
  dispatching_ = outer;
  return num_ended;
}

void Requester::on_closed(const std::string& why) {
  closed_ = true;
  sent_.splice(sent_.end(), waiting_);
  while (!sent_.empty()) finish(sent_.begin(), CallStatus::kDisconnected, why);
  abandoned_.clear();
}

std::size_t Requester::on_time(verbs::TimePoint now) {
  now_ = now;
  if (unstamped_) {
    unstamped_ = false;
    for (Calls* calls : {&sent_, &waiting_}) {
      for (auto& call : *calls) {
        if (!call->deadline) call->deadline = now + config_.call_timeout;
      }
    }
  }
  const std::string text = "no Reply within " + std::to_string(config_.call_timeout.count()) + " ms";
  // Both lists are in the order of call(), and every Call has the same time.
  while (!sent_.empty() && sent_.front()->deadline <= now) {
    // The peer may still answer, and until then it counts the Call against its grant. Its memory is fenced: a late
    // Write ends the connection instead of changing what the caller has by then (R1-5.4.1-03).
    abandoned_.push_back(sent_.front()->xid);
    finish(sent_.begin(), CallStatus::kTimeout, text);
  }
  while (!waiting_.empty() && waiting_.front()->deadline <= now) {
    sent_.splice(sent_.begin(), waiting_, waiting_.begin());
    finish(sent_.begin(), CallStatus::kTimeout, text);
  }
  if (!abandoned_.empty() && abandoned_.size() >= window()) {
    channel_.fail("the peer answers none of the Calls that it granted");
  }
  const std::size_t num_ended = run_ended();
  pump();
  return num_ended;
}

std::optional<verbs::TimePoint> Requester::next_timeout() const {
  if (!ended_.empty() || unstamped_) return now_;
  std::optional<verbs::TimePoint> next;
  for (const Calls* calls : {&sent_, &waiting_}) {
    if (calls->empty()) continue;
    const auto& deadline = calls->front()->deadline;
    if (deadline && (!next || *deadline < *next)) next = deadline;
  }
  return next;
}

}  // namespace weft::rpcrdma
