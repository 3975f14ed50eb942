#include <fmt/format.h>

#include <utility>

#include "rdmap/stream_impl.h"

namespace weft::rdmap {

namespace {

std::vector<std::uint8_t> copy_of(ConstBytes octets) {
  return {octets.begin(), octets.end()};
}

std::size_t max_reply_private_data(const mpa::StartupFrame& request) {
  return request.enhanced() ? mpa::max_private_data(mpa::kEnhancedRevision) : mpa::kMaxPrivateDataLen;
}

}  // namespace

mpa::StartupOptions Stream::Impl::startup_options(std::uint16_t ird, std::uint16_t ord) const {
  mpa::StartupOptions options;
  options.revision = config_.mpa_revision;
  options.crc = config_.crc;
  options.ird = ird;
  options.ord = ord;
  return options;
}

void Stream::Impl::start_initiator(ConstBytes private_data, RecvSource& recvs, TimePoint now) {
  if (state_ != State::kIdle) return;
  recvs_ = &recvs;
  if (private_data.size() > mpa::max_private_data(config_.mpa_revision)) {
    blame(CloseReason::kStartup,
          fmt::format("{} octets of private data do not fit an MPA Request", private_data.size()));
    return close(LlpAction::kClose);
  }
  request_frame_ = mpa::make_request(startup_options(config_.ird, config_.ord), private_data);
  mpa::emit_startup_frame(request_frame_, startup_out_);
  state_ = State::kReplyWait;
  rx_need_ = mpa::kStartupHeaderLen;
  deadline_ = now + config_.reply_timeout;
}

void Stream::Impl::start_responder(TimePoint now) {
  if (state_ != State::kIdle) return;
  state_ = State::kRequestWait;
  rx_need_ = mpa::kStartupHeaderLen;
  deadline_ = now + config_.request_timeout;
}

void Stream::Impl::on_startup_rx(mpa::Staging& staging, TimePoint now) {
  if (state_ == State::kAcceptWait || state_ == State::kReplySend || state_ == State::kRejectSend) {
    // An initiator has nothing to say before our Reply (notes A-03).
    staging.consume(staging.pending().size());
    if (state_ == State::kRejectSend) return;
    blame(CloseReason::kStartup, "octets behind the MPA Request before it was answered");
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
    staging.consume(staging.pending().size());
    blame(CloseReason::kStartup, fmt::format("invalid MPA {} Frame: {}", initiator ? "Reply" : "Request", bad->reason));
    return close(LlpAction::kClose);
  }
  auto& frame = std::get<mpa::ParsedFrame>(parsed);
  staging.consume(frame.len);
  rx_need_ = 1;
  rx_partial_ = false;
  if (initiator && startup_out_begin_ < startup_out_.size()) {
    blame(CloseReason::kStartup, "an MPA Reply before the Request was out");
    return close(LlpAction::kClose);
  }
  if (initiator) return on_reply(frame.frame, now);
  const bool surplus = !staging.pending().empty();
  if (surplus) staging.consume(staging.pending().size());
  on_request(std::move(frame.frame), surplus, now);
}

void Stream::Impl::on_request(mpa::StartupFrame frame, bool surplus, TimePoint now) {
  if (surplus) {
    blame(CloseReason::kStartup, "octets behind the MPA Request before it was answered");  // notes A-03
    return close(LlpAction::kClose);
  }
  request_frame_ = std::move(frame);
  deadline_.reset();
  const auto judged = mpa::evaluate_request(request_frame_, startup_options(config_.ird, config_.ord));
  if (const auto* bad = std::get_if<mpa::BadFrame>(&judged)) {
    blame(CloseReason::kStartup, fmt::format("unacceptable MPA Request Frame: {}", bad->reason));
    return close(LlpAction::kClose);
  }
  if (const auto* refused = std::get_if<mpa::Refused>(&judged)) {
    blame(CloseReason::kStartup, fmt::format("refused an MPA Request: {}", refused->reason));
    mpa::emit_startup_frame(refused->reply, startup_out_);
    return enter(State::kRejectSend, now);
  }
  const auto& acceptable = std::get<mpa::Acceptable>(judged);
  state_ = State::kAcceptWait;
  events_.push_back(ConnectionRequest{copy_of(mpa::ulp_private_data(request_frame_)), request_frame_.rev,
                                      acceptable.peer_ird, acceptable.peer_ord});
}

void Stream::Impl::accept(ConstBytes private_data, RecvSource& recvs, std::uint16_t ird, std::uint16_t ord,
                          std::uint32_t pd, TimePoint now) {
  if (state_ != State::kAcceptWait) return;
  if (private_data.size() > max_reply_private_data(request_frame_)) {
    blame(CloseReason::kStartup, fmt::format("{} octets of private data do not fit an MPA Reply", private_data.size()));
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

void Stream::Impl::reject(ConstBytes private_data, TimePoint now) {
  if (state_ != State::kAcceptWait) return;
  const std::size_t len = std::min(private_data.size(), max_reply_private_data(request_frame_));
  const auto reply =
      mpa::make_reject(request_frame_, startup_options(config_.ird, config_.ord), private_data.first(len));
  mpa::emit_startup_frame(reply, startup_out_);
  blame(CloseReason::kLocal, "we rejected the connection");
  enter(State::kRejectSend, now);
}

void Stream::Impl::on_startup_tx(std::size_t n, TimePoint now) {
  startup_out_begin_ += std::min(n, startup_out_.size() - startup_out_begin_);
  if (startup_out_begin_ < startup_out_.size()) return;
  startup_out_ = {};
  startup_out_begin_ = 0;
  if (state_ == State::kReplySend) {
    deadline_.reset();
    enter_rdma(*agreement_, true);
    events_.push_back(Established{{},
                                  agreement_->ird,
                                  agreement_->ord,
                                  agreement_->revision,
                                  agreement_->crc,
                                  agreement_->peer_ird,
                                  agreement_->peer_ord});
  } else if (state_ == State::kRejectSend) {
    enter(State::kFinWait, now);
  }
}

void Stream::Impl::on_reply(const mpa::StartupFrame& frame, TimePoint now) {
  deadline_.reset();
  const auto judged = mpa::evaluate_reply(frame, request_frame_, startup_options(config_.ird, config_.ord));
  if (const auto* bad = std::get_if<mpa::BadFrame>(&judged)) {
    blame(CloseReason::kStartup, fmt::format("unacceptable MPA Reply Frame: {}", bad->reason));
    return close(LlpAction::kClose);
  }
  if (const auto* rejected = std::get_if<mpa::RejectedReply>(&judged)) {
    events_.push_back(Rejected{copy_of(mpa::ulp_private_data(frame)), rejected->peer_ird, rejected->peer_ord});
    blame(CloseReason::kStartup, "the peer rejected the connection");
    return close(LlpAction::kClose);
  }
  if (const auto* unagreeable = std::get_if<mpa::Unagreeable>(&judged)) {
    mpa::Agreement agreement;
    agreement.crc = unagreeable->crc;
    enter_rdma(agreement, false);
    TerminateMessage message;
    message.what = to_terminate(unagreeable->error);  // MPA2-9.1-13, MPA2-9.2-10
    blame(CloseReason::kStartup, fmt::format("cannot live with the MPA Reply: {}", unagreeable->reason), message.what);
    return fail(message, now);
  }
  const auto& agreement = std::get<mpa::Agreement>(judged);
  enter_rdma(agreement, false);
  events_.push_back(Established{copy_of(mpa::ulp_private_data(frame)), agreement.ird, agreement.ord, agreement.revision,
                                agreement.crc, agreement.peer_ird, agreement.peer_ord});
}

void Stream::Impl::enter_rdma(const mpa::Agreement& agreement, bool hold) {
  requests_.set_ord(agreement.ord);
  receiver_.open(config_.scope, *recvs_, agreement.ird);
  transmitter_.open(agreement, config_.scope, config_.fpdu_limit, hold);
  reader_.emplace(agreement.crc, agreement.markers_rx);
  place_directly_ = config_.placement == Placement::kDirect || !agreement.crc;
  held_ = hold;
  state_ = State::kRdma;
  rx_need_ = 1;
  rx_partial_ = false;
}

}  // namespace weft::rdmap
