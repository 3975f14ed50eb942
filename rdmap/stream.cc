#include "rdmap/stream.h"

#include <fmt/format.h>

#include <cassert>
#include <cstring>
#include <utility>

#include "mpa/wire/release_memory.h"
#include "rdmap/diagnosis.h"
#include "rdmap/observer.h"
#include "rdmap/probes.h"

namespace weft::rdmap {

namespace {

// The text for an established connection that TCP alone ended.
std::string lost(std::string_view what) {
  Diagnosis d = diagnose({.what = to_terminate(mpa::Error::kConnectionLost)}, Course::kReceived);
  d.what = what;
  return one_line(d);
}

std::string seconds(Duration duration) {
  return fmt::format("{:g} s", std::chrono::duration<double>(duration).count());
}

// The number of a Terminate: its first 16 bits on the wire (RFC 5040 section 4.8); -1: none.
int number_of(const std::optional<Terminate>& what) {
  return what ? static_cast<int>(what->layer) << 12 | what->etype << 8 | what->code : -1;
}

// Whether the peer refused access to its memory.
bool is_protection(const TerminateMessage& message) {
  const Terminate what = message.siw.value_or(message.what);
  return what.layer == Layer::kRdma && what.etype == 1;
}

// The Write that a Terminate blames: the returned header belongs to the segment in error (RDMAP-4.8-16).
std::optional<Closed::RefusedWrite> refused_write(const TerminateMessage& message) {
  const auto segment = ddp::parse_segment_wire(message.ddp());
  if (!segment) return std::nullopt;
  const auto* header = std::get_if<ddp::TaggedHeader>(&segment->header);
  if (header == nullptr || parse_control(header->rsvd_ulp).opcode != static_cast<std::uint8_t>(Opcode::kWrite)) {
    return std::nullopt;
  }
  return Closed::RefusedWrite{header->stag, header->to};
}

}  // namespace

// ---------------------------------------------------------------- the state machine

bool Stream::receiving() const {
  return !discard_ && (state_ == State::kRdma || state_ == State::kDraining || state_ == State::kFinWait) && reader_;
}

void Stream::blame(CloseReason reason, std::string text, std::optional<Terminate> terminate) {
  if (!reason_) {
    reason_ = reason;
    text_ = std::move(text);
  }
  if (!terminate_) terminate_ = terminate;
}

void Stream::flush(const std::optional<Terminate>& why) {
  direct_.reset();
  receiver_.flush(why);
  requests_.flush(why);
  reads_.clear();
}

void Stream::enter(State state, TimePoint now) {
  state_ = state;
  nudge_.stop();
  deadline_ = now + config_.close_timeout;
}

void Stream::close(LlpAction action, bool try_revision_1) {
  if (state_ == State::kClosed) return;
  flush(terminate_);
  state_ = State::kClosed;
  nudge_.stop();
  deadline_.reset();
  close_action_ = action;
  part_.reset();
  part_due_.reset();
  release_memory(startup_out_);
  startup_out_begin_ = 0;
  release_memory(parked_);
  events_.push_back(Closed{reason_.value_or(CloseReason::kLocal), terminate_, text_, refused_write_, try_revision_1});
}

void Stream::fail(const TerminateMessage& message, TimePoint now) {
  discard_ = true;
  if (message.what == to_terminate(ddp::Error::kNoBuffer)) ++counters_.no_buffer_rx;
  const bool can_send = state_ == State::kRdma || state_ == State::kDraining;
  std::string text = one_line(diagnose(message, can_send ? Course::kSent : Course::kTooLate));
  if (can_send) {
    WEFT_PROBE(terminate_sent, &counters_, config_.peer_address, number_of(message.what), text.c_str());
  }
  blame(CloseReason::kTerminateSent, std::move(text), message.what);  // DDP-8.3-06
  tell_failure();
  flush(message.what);
  if (!can_send) return;
  transmitter_.release();  // MPA-A-05: an FPDU, even a bad one, proves that the initiator is ready for ours
  transmitter_.terminate(message);
  enter(State::kTerminating, now);
}

// Ends the stream after a fault of our own, before the initiator's first FPDU. Rule 4 of RFC 5044 section 7.1.2 holds
// for a Terminate too.
void Stream::fail_unheard(const TerminateMessage& message) {
  discard_ = true;
  blame(CloseReason::kTerminateSent, one_line(diagnose(message, Course::kTooEarly)), message.what);
  tell_failure();
  close(LlpAction::kReset);
}

void Stream::advance(TimePoint now) {
  if (state_ == State::kDraining && requests_.empty() && reads_.empty() && !transmitter_.mid_fpdu()) {
    transmitter_.stop();
    enter(State::kFinWait, now);
  }
  // The Terminate has left. If the peer's Terminate came first, we send none: only the rest of a cut FPDU had to leave.
  if (state_ == State::kTerminating && !transmitter_.wants_tx()) enter(State::kFinWait, now);
  if (state_ == State::kFinWait && eof_) close(LlpAction::kClose);
  if (state_ == State::kClosing && !transmitter_.mid_fpdu()) close(LlpAction::kClose);
}

void Stream::disconnect(TimePoint now) {
  switch (state_) {
    case State::kRdma:
      blame(CloseReason::kLocal, "we disconnected");
      enter(State::kDraining, now);
      return advance(now);
    case State::kReplyWait:
    case State::kRequestWait:
    case State::kAcceptWait:
    case State::kReplySend:
      blame(CloseReason::kLocal, "we disconnected before the connection was established");
      return close(LlpAction::kClose);
    default: return;
  }
}

void Stream::abort(TimePoint) {
  blame(CloseReason::kLocal, "we aborted the connection");
  close(LlpAction::kReset);
}

// ---------------------------------------------------------------- input

void Stream::on_rx(mpa::Staging& staging, std::size_t n, TimePoint now) {
  if (config_.observer != nullptr) config_.observer->on_rx(rx_views_, n, now);
  if (part_ && !part_->is_hopeless) part_->at = now;
  if (direct_) {
    on_direct_rx(staging, n, now);
  } else {
    staging.commit(n);
  }
  if (starting()) on_startup_rx(staging, now);
  if (receiving()) process_fpdus(staging, now);
  // Only the progress of a Read extends the wait of a disconnect.
  if (receiver_.take_read_progress() && state_ == State::kDraining) deadline_ = now + config_.close_timeout;
  if (!receiving() && !starting()) {
    staging.consume(staging.pending().size());
    rx_need_ = 1;
    rx_partial_ = false;
  }
  advance(now);
}

void Stream::process_fpdus(mpa::Staging& staging, TimePoint now) {
  while (receiving()) {
    if (direct_) {
      if (finish_direct(staging, now)) continue;
      if (direct_ && !part_) note_part({}, false, now);
      return;
    }
    const auto next = reader_->next(staging);
    if (const auto* ulpdu = std::get_if<mpa::Ulpdu>(&next)) {
      on_valid_fpdu();
      if (placing_ == Placing::kDirectNext) placing_ = Placing::kDirect;
      const auto verdict = receiver_.on_ulpdu(*ulpdu);
      if (verdict != Receiver::Verdict::kTaken) return on_verdict(verdict, now);
      on_delivered();
    } else if (const auto* more = std::get_if<mpa::NeedMore>(&next)) {
      if (placing_ != Placing::kStaged && begin_direct(staging)) continue;
      rx_need_ = more->len;
      rx_partial_ = !staging.pending().empty();
      rx_partial_ ? note_part(staging.pending(), is_hopeless(staging.pending()), now) : part_.reset();
      return;
    } else {
      TerminateMessage message;
      message.what = to_terminate(std::get<mpa::Error>(next));
      return fail(message, now);
    }
  }
}

// The version of each header is in its lowest two bits (DDP) and in its highest two (RDMAP). Markers would move them.
bool Stream::is_hopeless(ConstBytes part) const {
  constexpr std::size_t kDdpControl = 2, kRdmapControl = 3;
  return version_in_place_ && part.size() > kRdmapControl &&
         ((part[kDdpControl] & 3u) != *version_in_place_ || part[kRdmapControl] >> 6u != *version_in_place_);
}

void Stream::note_part(ConstBytes part, bool is_hopeless, TimePoint now) {
  // Octets that drip in extend nothing that is hopeless.
  const bool has_begun = is_hopeless && part_ && part_->is_hopeless;
  part_ = Part{has_begun ? part_->at : now, part.size(), is_hopeless};
  const TimePoint due = now + patience_with(*part_);
  if (!part_due_ || due < *part_due_) part_due_ = due;
}

Duration Stream::patience_with(const Part& part) const {
  return part.is_hopeless ? std::min(StreamConfig::kHopelessPart, config_.part_timeout) : config_.part_timeout;
}

// MPA-7.1.2-24
bool Stream::end_late_part(TimePoint now) {
  if (!part_due_ || now < *part_due_) return false;
  part_due_.reset();
  if (!part_ || !receiving()) return false;
  const TimePoint due = part_->at + patience_with(*part_);
  if (now < due) {
    part_due_ = due;
    return false;
  }
  const std::string what = fmt::format(
      "the peer sent {} of an FPDU, and {} {}", part_->len == 0 ? "a part" : fmt::format("{} bytes", part_->len),
      part_->is_hopeless ? "not all of it within" : "nothing more for", seconds(patience_with(*part_)));
  if (!part_->is_hopeless) {
    blame(CloseReason::kLlp, lost(what), to_terminate(mpa::Error::kConnectionLost));
    close(LlpAction::kReset);
    return true;
  }
  TerminateMessage message;
  message.what = to_terminate(mpa::Error::kMarker);
  blame(CloseReason::kTerminateSent,
        one_line({.what = what + "; they do not begin with a header of DDP and RDMAP",
                  .cause = "the peer does not speak iWARP, or lost its place in the stream",
                  .advice = "whether the address and the port are those of an iWARP peer"}),
        message.what);
  fail(message, now);
  return true;
}

void Stream::on_valid_fpdu() {
  ++counters_.fpdus_rx;
  parked_before_ = false;
  nudge_.stop();
  transmitter_.release();  // MPA-7.1.2: rule 4
}

// A Send, Write or Read serves as RTR indication (RFC 6581 section 9.2). Immediate Data would take the receive that is
// kept for the indication, and would be lost. So RFC 7306 begins behind the indication.
void Stream::on_delivered() {
  WEFT_PROBE(fpdu_in, &counters_, static_cast<int>(receiver_.opcode()), receiver_.placed_len());
  if (!rtr_.due() || !receiver_.heard_message()) return;
  rtr_.on_message();
  if (state_ == State::kRdma) deadline_.reset();
  receiver_.set_rfc7306(config_.rfc7306);
}

void Stream::on_verdict(Receiver::Verdict verdict, TimePoint now) {
  switch (verdict) {
    case Receiver::Verdict::kTaken: return;
    case Receiver::Verdict::kRefused: return fail(receiver_.message(), now);
    case Receiver::Verdict::kTerminate: return on_peer_terminate(now);
    case Receiver::Verdict::kBadTerminate:
      discard_ = true;
      blame(CloseReason::kTerminateReceived,
            one_line({.what = "received an invalid Terminate: shorter than its four control bytes, or in pieces",
                      .cause = "the peer ended the connection over an error, and cannot say which",
                      .advice = "the peer's log and version"}));
      tell_failure();
      flush(std::nullopt);
      transmitter_.stop();
      return enter(transmitter_.mid_fpdu() ? State::kTerminating : State::kFinWait, now);
  }
}

// Returns the MSN on queue 1 of the Read or Atomic that the peer's Terminate blames: the request of the returned
// header, else the oldest request for a protection error. If siw finds a fault while it answers the oldest request, it
// reconstructs the header from its own state, with a wrong MSN (PEER-H-20).
std::optional<ddp::Msn> Stream::refused_request(const TerminateMessage& message) {
  const bool protection = is_protection(message);
  const auto segment = ddp::parse_segment_wire(message.ddp());
  if (segment) {
    const auto* header = std::get_if<ddp::UntaggedHeader>(&segment->header);
    if (header == nullptr || header->qn != kReadRequestQn) return std::nullopt;
    if (!message.siw || !protection) return header->msn;
  }
  const SendEntry* oldest = requests_.oldest_read() != nullptr ? requests_.oldest_read() : requests_.oldest_atomic();
  if (!protection || oldest == nullptr) return std::nullopt;
  return oldest->msn;
}

void Stream::on_peer_terminate(TimePoint now) {
  const TerminateMessage& message = receiver_.message();
  discard_ = true;
  refused_write_ = refused_write(message);
  std::string text = one_line(diagnose(message, Course::kReceived));
  WEFT_PROBE(terminate_received, &counters_, config_.peer_address, number_of(message.what), text.c_str());
  blame(CloseReason::kTerminateReceived, std::move(text), message.what);
  tell_failure();

  const bool protection = is_protection(message);
  receiver_.flush(message.what);
  requests_.flush(message.what, refused_request(message),
                  protection ? WorkStatus::kRemoteAccess : WorkStatus::kRemoteOperation);
  reads_.clear();

  transmitter_.stop();  // RDMAP-5.4-10
  enter(transmitter_.mid_fpdu() ? State::kTerminating : State::kFinWait, now);
}

void Stream::on_rx_eof(TimePoint now) {
  if (eof_ || state_ == State::kClosed || state_ == State::kIdle) return;
  eof_ = true;
  if (starting()) {
    const bool cut = rx_partial_;
    blame(CloseReason::kStartup,
          startup_text(
              cut ? mpa::StartupFault::kCutShort : mpa::StartupFault::kClosed,
              fmt::format("the peer closed the connection {} MPA startup", cut ? "inside a frame of" : "during")),
          to_terminate(cut ? mpa::Error::kStartupFrame : mpa::Error::kConnectionLost));
    return close(LlpAction::kClose, no_octet_of_reply());
  }
  if (state_ == State::kRdma || state_ == State::kDraining) {
    const bool inside = rx_partial_ || receiver_.message_open();
    // DDP-A-23: a FIN anywhere else is the loss of the LLP, which no Terminate can report any more.
    if (inside) {
      blame(CloseReason::kLlp, lost("the peer closed the connection inside an FPDU or message"),
            to_terminate(mpa::Error::kConnectionLost));
      return close(LlpAction::kClose);
    }
    blame(CloseReason::kGraceful, "the peer closed the connection");
    flush(std::nullopt);
    transmitter_.stop();
    enter(State::kClosing, now);
  }
  advance(now);
}

void Stream::on_llp_error(int errno_value, TimePoint) {
  if (state_ == State::kClosed) return;
  const std::string what = fmt::format("connection lost: {}", std::strerror(errno_value));
  blame(starting() ? CloseReason::kStartup : CloseReason::kLlp,
        starting() ? startup_text(mpa::StartupFault::kLost, what + " during MPA startup") : lost(what),
        to_terminate(mpa::Error::kConnectionLost));
  close(LlpAction::kClose, no_octet_of_reply());
}

void Stream::on_timeout(TimePoint now) {
  if (nudge_.take(now) && state_ == State::kRdma && !wants_tx()) {
    transmitter_.nudge();
    events_.push_back(Nudged{});
  }
  if (end_late_part(now)) return;
  if (!deadline_ || now < *deadline_) return;
  switch (state_) {
    case State::kRequestWait:
      blame_frame(mpa::StartupFault::kSilent, "no whole MPA Request within " + seconds(config_.request_timeout));
      break;
    case State::kReplyWait:
      blame_frame(mpa::StartupFault::kSilent, "no whole MPA Reply within " + seconds(config_.reply_timeout));
      break;
    case State::kReplySend:
      blame(CloseReason::kStartup, one_line({.what = "the MPA Reply could not be sent in time",
                                             .cause = "the peer does not read what it asked for",
                                             .advice = "whether the peer's program still runs"}));
      break;
    case State::kRdma:
      blame(CloseReason::kStartup,
            startup_text(mpa::StartupFault::kNoRtr, "no RTR indication within " + seconds(config_.request_timeout)));
      return close(LlpAction::kReset);
    default: break;
  }
  const bool cut = wants_tx() && !starting();
  close(cut ? LlpAction::kReset : LlpAction::kClose);
}

// ---------------------------------------------------------------- output

bool Stream::wants_tx() const {
  if (state_ == State::kClosed) return false;
  return startup_out_begin_ < startup_out_.size() || transmitter_.wants_tx();
}

std::span<const ConstBytes> Stream::tx_buffers(std::size_t emss, std::size_t max_octets, TimePoint now) {
  if (!wants_tx()) return {};
  if (startup_out_begin_ < startup_out_.size()) {
    tx_view_ = ConstBytes(startup_out_).subspan(startup_out_begin_);
    return {&tx_view_, 1};
  }
  if (const auto fault = transmitter_.frame(emss, max_octets)) {
    if (fault->failed_request) {
      requests_[*fault->failed_request].done = true;
      requests_[*fault->failed_request].status = fault->status;
    }
    if (transmitter_.held()) {
      fail_unheard(fault->message);
      return {};
    }
    fail(fault->message, now);
    transmitter_.frame(emss, max_octets);
  }
  if (transmitter_.buffers().empty()) advance(now);  // there were only local requests
  return transmitter_.buffers();
}

void Stream::on_tx(std::size_t n, TimePoint now) {
  if (config_.observer != nullptr) tell_sent(n, now);
  if (startup_out_begin_ < startup_out_.size()) return on_startup_tx(n, now);
  transmitter_.on_tx(n);
  if (n > 0) nudge_.on_sent(now);
  if (n > 0 && state_ == State::kDraining) deadline_ = now + config_.close_timeout;
  advance(now);
}

void Stream::tell_sent(std::size_t n, TimePoint now) {
  const bool is_startup = startup_out_begin_ < startup_out_.size();
  config_.observer->on_tx(is_startup ? std::span(&tx_view_, 1) : transmitter_.buffers(), n, now);
}

// ---------------------------------------------------------------- what a driver asks

Stream::Stream(const StreamConfig& config, ddp::MemoryTable& memory, TxRoom* tx_room)
    : config_(config),
      memory_(memory),
      nudge_(config.nudge),
      requests_(config.max_send_wr, events_),
      transmitter_(memory, requests_, reads_, counters_, tx_room),
      receiver_(memory, requests_, reads_, events_, counters_) {}

PostResult Stream::post_send(const SendWr& wr) {
  if (state_ != State::kRdma && (!starting() || state_ == State::kRejectSend)) return PostResult::kNotConnected;
  if (is_rfc7306(wr.op) && !config_.rfc7306) return PostResult::kInvalid;
  const PostResult result = requests_.post(wr);
  if (result != PostResult::kOk) return result;
  if (config_.observer != nullptr) config_.observer->on_post(wr);
  WEFT_PROBE(work_posted, &counters_, wr.wr_id, static_cast<int>(wr.op), requests_[requests_.end_seq() - 1].len,
             requests_.size());
  return result;
}

void Stream::trim() {
  transmitter_.trim();
  requests_.trim();
  reads_.trim();
  events_.trim();
  release_memory(rx_views_);
}

void Stream::on_llp_action_done(LlpAction done) {
  if (done == LlpAction::kShutdownWrite) fin_done_ = true;
  if (done == close_action_) close_action_ = LlpAction::kNone;
}

Stream::Parked Stream::park(mpa::Staging& staging) {
  const ConstBytes pending = staging.pending();
  if (pending.empty()) return {};
  const Parked parked{pending.size(), std::exchange(parked_before_, true)};
  parked_.insert(parked_.end(), pending.begin(), pending.end());
  staging.consume(pending.size());
  return parked;
}

std::optional<Closed> Stream::failure() const {
  if (!failed()) return std::nullopt;
  return Closed{reason_.value_or(CloseReason::kLocal), terminate_, text_, refused_write_, false};
}

LlpAction Stream::llp_action() const {
  if (state_ == State::kClosed) return close_action_;
  if (state_ == State::kFinWait && !fin_done_) return LlpAction::kShutdownWrite;
  return LlpAction::kNone;
}

std::optional<TimePoint> Stream::next_timeout() const {
  return earliest(earliest(nudge_.at(), deadline_), part_ ? part_due_ : std::nullopt);
}

std::optional<Event> Stream::poll_event() {
  auto event = next_event();
  if (!event) return event;
  if (config_.observer != nullptr) config_.observer->on_event(*event);
  probe(*event);
  return event;
}

void Stream::tell_failure() {
  if (config_.observer != nullptr) config_.observer->on_failure(*failure());
}

void Stream::probe(const Event& event) const {
  if (const auto* done = std::get_if<Completion>(&event)) {
    WEFT_PROBE(work_completed, &counters_, done->wr_id, static_cast<int>(done->op), static_cast<int>(done->status),
               done->byte_len, requests_.size());
  } else if (const auto* begun = std::get_if<Established>(&event)) {
    WEFT_PROBE(connection_established, &counters_, config_.peer_address, static_cast<int>(initiator_),
               static_cast<int>(begun->revision), static_cast<int>(begun->ird), static_cast<int>(begun->ord));
  } else if (const auto* closed = std::get_if<Closed>(&event)) {
    WEFT_PROBE(connection_ended, &counters_, config_.peer_address, static_cast<int>(closed->reason),
               number_of(closed->terminate), closed->text.c_str());
  }
}

std::optional<Event> Stream::next_event() {
  if (auto established = rtr_.take_established()) return *std::move(established);
  if (events_.empty()) return std::nullopt;
  std::optional<Event> event(std::move(events_.front()));
  events_.pop_front();
  return event;
}

}  // namespace weft::rdmap
