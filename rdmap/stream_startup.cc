#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "mpa/wire/release_memory.h"
#include "rdmap/diagnosis.h"
#include "rdmap/stream.h"
#include "requirements/violates.h"

namespace weft::rdmap {

namespace {

std::vector<std::uint8_t> copy_of(ConstBytes octets) {
  return {octets.begin(), octets.end()};
}

std::size_t max_reply_private_data(const mpa::StartupFrame& request, const mpa::PeerProfile& peer) {
  return mpa::max_private_data(request.enhanced() ? mpa::kEnhancedRevision : std::uint8_t{1}, peer.max_pd_length);
}

// Describes the octets of a peer that does not speak MPA.
std::string foreign_words(ConstBytes octets) {
  const std::string_view protocol = mpa::foreign_protocol(octets);
  return fmt::format("; it said {}{}{}", mpa::printable(octets), protocol.empty() ? "" : ", which is ", protocol);
}

std::string rejection(const mpa::StartupFrame& reply) {
  constexpr std::size_t kMostPrivateData = 192;
  const ConstBytes private_data = mpa::ulp_private_data(reply);
  if (private_data.empty()) return "the peer rejected the connection (MPA Reply with R=1)";
  return fmt::format("the peer rejected the connection (MPA Reply with R=1), with private data {}",
                     mpa::printable(private_data, kMostPrivateData));
}

// IRD or ORD as this peer may be told. EnhancedWords::kManual is not a number and stays as it is.
std::uint16_t told(std::uint16_t reads, const mpa::PeerProfile& peer) {
  return reads == mpa::EnhancedWords::kManual ? reads : std::min(reads, peer.max_reads);
}

}  // namespace

mpa::StartupOptions Stream::startup_options(std::uint16_t ird, std::uint16_t ord) const {
  mpa::StartupOptions options;
  options.revision = config_.mpa_revision;
  options.permissive = config_.permissive;
  options.crc = config_.crc;
  options.markers = config_.markers && config_.peer.stands_markers;
  options.ird = told(ird, config_.peer);
  options.ord = told(ord, config_.peer);
  options.rtr_offered = config_.rtr_offered;
  options.rtr_unasked = config_.peer.rtr_unasked;
  return options;
}

// MPA-8-08: reported to the ULP by its code, never to the peer.
void Stream::blame_frame(mpa::StartupFault fault, std::string_view what) {
  blame(CloseReason::kStartup, startup_text(fault, what), to_terminate(mpa::Error::kStartupFrame));
}

// If a part of our own Request is known to disturb some peer, it comes first: it is more precise than the table.
std::string Stream::startup_text(mpa::StartupFault fault, std::string_view what,
                                 const mpa::RejectedReply* rejected) const {
  const mpa::StartupHint& hint = mpa::startup_hint(fault);
  Diagnosis d;
  d.what = what;
  d.requirements = hint.requirement;
  const auto add = [&d](std::string_view cause, std::string_view advice) {
    d.cause += fmt::format("{}{}", d.cause.empty() ? "" : "; or ", cause);
    d.advice += fmt::format("{}{}", d.advice.empty() ? "" : "; ", advice);
  };
  if (initiator_ && (fault == mpa::StartupFault::kRejected || fault == mpa::StartupFault::kClosed)) {
    add_suspicions(rejected, add);
  }
  if (initiator_) {
    add(hint.initiator_cause, hint.initiator_advice);
  } else {
    add(hint.responder_cause, hint.responder_advice);
  }
  return one_line(d);
}

void Stream::add_suspicions(const mpa::RejectedReply* rejected,
                            const std::function<void(std::string_view, std::string_view)>& add) const {
  constexpr std::size_t kLeastMaxPrivateData = 256;
  const std::size_t pd_length = request_frame_.private_data.size();
  if (pd_length > kLeastMaxPrivateData) {
    add(fmt::format("our PD_Length is {}, and Linux siw and Chelsio take no more than {}", pd_length,
                    kLeastMaxPrivateData),
        "SoftConfig::peer siw, with which private data stays below that");
  }
  if (rejected == nullptr) return;
  if (request_frame_.m) add("we asked for Markers, and Linux siw rejects that", "without SoftConfig::markers");
  const auto words = mpa::parse_enhanced_words(request_frame_);
  if (!words) {
    add("we asked with MPA revision 1, which tells no IRD, and Linux's NFS/RDMA server rejects a client without one",
        "SoftConfig::mpa_revision 2");
  } else if (words->ird == 0) {
    add("we offered IRD 0, and Linux's NFS/RDMA server rejects that", "SoftConfig::ird 1 or more");
  } else if (rejected->peer_ord && *rejected->peer_ord > words->ird) {
    add(fmt::format("the peer wants {} RDMA Reads at once and we offered IRD {}", *rejected->peer_ord, words->ird),
        fmt::format("SoftConfig::ird {}", *rejected->peer_ord));
  }
}

void Stream::start_initiator(ConstBytes private_data, RecvSource& recvs, TimePoint now) {
  if (state_ != State::kIdle) return;
  recvs_ = &recvs;
  initiator_ = true;
  const auto options = startup_options(config_.ird, config_.ord);
  if (private_data.size() > mpa::max_private_data(mpa::request_revision(options), config_.peer.max_pd_length)) {
    blame(CloseReason::kStartup,
          startup_text(mpa::StartupFault::kOwnPrivateData,
                       fmt::format("{} bytes of private data do not fit an MPA Request", private_data.size())));
    return close(LlpAction::kClose);
  }
  request_frame_ = mpa::make_request(options, private_data);
  mpa::emit_startup_frame(request_frame_, startup_out_);
  state_ = State::kReplyWait;
  rx_need_ = mpa::kStartupHeaderLen;
  deadline_ = now + config_.reply_timeout;
}

void Stream::start_responder(TimePoint now) {
  if (state_ != State::kIdle) return;
  nudge_.stop();
  state_ = State::kRequestWait;
  rx_need_ = mpa::kStartupHeaderLen;
  deadline_ = now + config_.request_timeout;
}

void Stream::on_startup_rx(mpa::Staging& staging, TimePoint now) {
  if (state_ == State::kAcceptWait || state_ == State::kReplySend || state_ == State::kRejectSend) {
    // An initiator may send nothing before our Reply (MPA-A-03).
    staging.consume(staging.pending().size());
    if (state_ == State::kRejectSend) return;
    blame_frame(mpa::StartupFault::kSurplus, "bytes behind the MPA Request before it was answered");
    return close(LlpAction::kClose);
  }
  const bool initiator = state_ == State::kReplyWait;
  auto parsed =
      mpa::parse_startup_frame(staging.pending(), initiator ? mpa::FrameKind::kReply : mpa::FrameKind::kRequest);
  if (const auto* more = std::get_if<mpa::NeedMore>(&parsed)) {
    rx_need_ = more->len;
    rx_partial_ = !staging.pending().empty();
    return;
  }
  if (const auto* bad = std::get_if<mpa::BadFrame>(&parsed)) {
    const std::string said = bad->fault == mpa::StartupFault::kForeign ? foreign_words(staging.pending()) : "";
    staging.consume(staging.pending().size());
    blame_frame(bad->fault,
                fmt::format("invalid MPA {} Frame: {}{}", initiator ? "Reply" : "Request", bad->reason, said));
    return close(LlpAction::kClose);
  }
  auto& frame = std::get<mpa::ParsedFrame>(parsed);
  staging.consume(frame.len);
  rx_need_ = 1;
  rx_partial_ = false;
  if (initiator && startup_out_begin_ < startup_out_.size()) {
    blame_frame(mpa::StartupFault::kSurplus, "an MPA Reply before the Request was out");
    return close(LlpAction::kClose);
  }
  if (initiator) {
    if (frame.frame.r && config_.keep_llp_after_reject) surplus_ = copy_of(staging.pending());
    return on_reply(frame.frame, now);
  }
  const bool surplus = !staging.pending().empty();
  if (surplus) staging.consume(staging.pending().size());
  on_request(std::move(frame.frame), surplus, now);
}

void Stream::on_request(mpa::StartupFrame frame, bool surplus, TimePoint now) {
  if (violates("MPA-7.1.1-21", surplus)) {
    blame_frame(mpa::StartupFault::kSurplus, "bytes behind the MPA Request before it was answered");  // MPA-A-03
    return close(LlpAction::kClose);
  }
  request_frame_ = std::move(frame);
  deadline_.reset();
  const auto judged = mpa::evaluate_request(request_frame_, startup_options(config_.ird, config_.ord));
  if (const auto* bad = std::get_if<mpa::BadFrame>(&judged)) {
    blame_frame(bad->fault,
                fmt::format("unacceptable MPA Request Frame: {} (Rev {})", bad->reason, request_frame_.rev));
    return close(LlpAction::kClose);
  }
  if (const auto* refused = std::get_if<mpa::Refused>(&judged)) {
    blame(CloseReason::kStartup,
          startup_text(mpa::StartupFault::kRevision, fmt::format("refused an MPA Request: {}", refused->reason)));
    mpa::emit_startup_frame(refused->reply, startup_out_);
    return enter(State::kRejectSend, now);
  }
  const auto& acceptable = std::get<mpa::Acceptable>(judged);
  state_ = State::kAcceptWait;
  events_.push_back(ConnectionRequest{copy_of(mpa::ulp_private_data(request_frame_)), request_frame_.rev,
                                      acceptable.peer_ird, acceptable.peer_ord});
}

void Stream::accept(ConstBytes private_data, RecvSource& recvs, std::uint16_t ird, std::uint16_t ord, std::uint32_t pd,
                    TimePoint now) {
  if (state_ != State::kAcceptWait) return;
  if (private_data.size() > max_reply_private_data(request_frame_, config_.peer)) {
    blame(CloseReason::kStartup,
          startup_text(mpa::StartupFault::kOwnPrivateData,
                       fmt::format("{} bytes of private data do not fit an MPA Reply", private_data.size())));
    return close(LlpAction::kClose);
  }
  recvs_ = &recvs;
  config_.scope.pd = pd;
  const auto accepted = mpa::make_accept(request_frame_, startup_options(ird, ord), private_data);
  mpa::emit_startup_frame(accepted.reply, startup_out_);
  agreement_ = accepted.agreement;
  state_ = State::kReplySend;
  deadline_ = now + config_.request_timeout;
}

void Stream::reject(ConstBytes private_data, TimePoint now) {
  if (state_ != State::kAcceptWait) return;
  const std::size_t len = std::min(private_data.size(), max_reply_private_data(request_frame_, config_.peer));
  const auto reply =
      mpa::make_reject(request_frame_, startup_options(config_.ird, config_.ord), private_data.first(len));
  mpa::emit_startup_frame(reply, startup_out_);
  blame(CloseReason::kLocal, "we rejected the connection");
  enter(State::kRejectSend, now);
}

void Stream::on_startup_tx(std::size_t n, TimePoint now) {
  startup_out_begin_ += std::min(n, startup_out_.size() - startup_out_begin_);
  if (startup_out_begin_ < startup_out_.size()) return;
  release_memory(startup_out_);
  startup_out_begin_ = 0;
  if (state_ == State::kReplySend) {
    enter_rdma(*agreement_, true);
    rtr_.withhold(established(*agreement_, {}));
    deadline_.reset();
    if (rtr_.due()) deadline_ = now + config_.request_timeout;
  } else if (state_ == State::kRejectSend && config_.keep_llp_after_reject) {
    close(LlpAction::kNone);  // MPA-7.1.2-06
  } else if (state_ == State::kRejectSend) {
    enter(State::kFinWait, now);
  }
}

void Stream::on_reply(const mpa::StartupFrame& frame, TimePoint now) {
  deadline_.reset();
  const auto judged = mpa::evaluate_reply(frame, request_frame_, startup_options(config_.ird, config_.ord));
  if (const auto* bad = std::get_if<mpa::BadFrame>(&judged)) {
    // The peer answers, but with a lower revision than ours. Below revision 1 there is no revision left to ask with.
    const bool try_revision_1 = request_frame_.rev >= mpa::kEnhancedRevision && frame.rev < request_frame_.rev;
    blame_frame(bad->fault, fmt::format("unacceptable MPA Reply Frame: {} (Rev {} to our Rev {})", bad->reason,
                                        frame.rev, request_frame_.rev));
    return close(LlpAction::kClose, try_revision_1);
  }
  if (const auto* rejected = std::get_if<mpa::RejectedReply>(&judged)) {
    std::string text = startup_text(mpa::StartupFault::kRejected, rejection(frame), rejected);
    events_.push_back(Rejected{copy_of(mpa::ulp_private_data(frame)), std::exchange(surplus_, {}), rejected->peer_ird,
                               rejected->peer_ord, text});
    blame(CloseReason::kStartup, std::move(text));
    return close(config_.keep_llp_after_reject ? LlpAction::kNone : LlpAction::kClose);  // MPA-7.1.2-12, MPA-A-01
  }
  if (const auto* unagreeable = std::get_if<mpa::Unagreeable>(&judged)) {
    enter_rdma(unagreeable->agreement, false);
    TerminateMessage message;
    message.what = to_terminate(unagreeable->error);  // MPA2-9.1-13, MPA2-9.2-10
    Diagnosis d = diagnose(message, Course::kSent);
    d.what = fmt::format("cannot live with the MPA Reply: {}; {}", unagreeable->reason, d.what);
    blame(CloseReason::kStartup, one_line(d), message.what);
    return fail(message, now);
  }
  const auto& agreement = std::get<mpa::Agreement>(judged);
  enter_rdma(agreement, false);
  Rtr::indicate(agreement.rtr, requests_);
  events_.push_back(established(agreement, mpa::ulp_private_data(frame)));
}

Established Stream::established(const mpa::Agreement& agreement, ConstBytes private_data) const {
  Established e;
  e.private_data = copy_of(private_data);
  e.ird = agreement.ird;
  e.ord = agreement.ord;
  e.revision = agreement.revision;
  e.crc = agreement.crc;
  e.markers_tx = agreement.markers_tx;
  e.markers_rx = agreement.markers_rx;
  e.peer_ird = agreement.peer_ird;
  e.peer_ord = agreement.peer_ord;
  return e;
}

void Stream::fail_setup(TimePoint now) {
  TerminateMessage message;
  message.what = to_terminate(mpa::Error::kLocalCatastrophic);
  Diagnosis d = diagnose(message, Course::kSent);
  d.what = "a local fault during MPA startup";
  if (state_ != State::kRdma || transmitter_.held()) {  // the responder may not send yet
    blame(CloseReason::kStartup, one_line(d));
    return close(state_ == State::kRdma ? LlpAction::kReset : LlpAction::kClose);
  }
  blame(CloseReason::kStartup, one_line(d), message.what);  // MPA2-9.3-02
  fail(message, now);
}

void Stream::enter_rdma(const mpa::Agreement& agreement, bool hold) {
  requests_.set_ord(agreement.ord);
  rtr_.open(*recvs_, agreement.rtr_awaited);
  if (!agreement.markers_rx) version_in_place_ = agreement.version;
  receiver_.open(config_.scope, rtr_, agreement.ird, agreement.version, config_.rfc7306 && !rtr_.due());
  transmitter_.open(agreement, config_.scope, config_.fpdu_limit, hold);
  reader_.emplace(agreement.crc, agreement.markers_rx, config_.peer.max_ulpdu_len);
  const bool direct = config_.placement == Placement::kDirect || !agreement.crc;
  placing_ = direct ? Placing::kDirect : Placing::kStaged;
  state_ = State::kRdma;
  rx_need_ = 1;
  rx_partial_ = false;
}

}  // namespace weft::rdmap
