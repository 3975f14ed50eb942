#pragma once

#include <optional>
#include <utility>

#include "mpa/peer_profile.h"
#include "rdmap/send_queue.h"
#include "rdmap/stream_events.h"
#include "rdmap/work.h"

namespace weft::rdmap {

// Rtr is the peer-to-peer model of RFC 6581 on one stream. The initiator's first message says that it is ready to
// receive (RTR). The ULPs of both ends see nothing of this message. The responder's ULP sees only that Established
// comes behind it.
//
// The message is the stream's own request at the initiator. At the responder, Rtr stands in front of the ULP's
// receives: an indication that is a Send takes a receive of the stream's own.
class Rtr final : public RecvSource {
 public:
  // ---- initiator
  // Puts the indication that was agreed on, if any, ahead of all requests: nothing can leave before it (MPA2-5-02).
  static void indicate(mpa::Rtr agreed, SendQueue& requests) {
    if (agreed != mpa::Rtr::kNone) requests.put_own_first(indication(agreed));
  }

  // ---- responder
  // awaited: the indications that may arrive; without any there is no wait. recvs outlives the stream.
  void open(RecvSource& recvs, const mpa::RtrSet& awaited) {
    recvs_ = &recvs;
    due_ = awaited.any();
    awaits_send_ = awaited.send;
  }
  // Whether the wait goes on: no message of the initiator has been delivered yet.
  bool due() const { return due_; }
  // The first message was delivered whole. It ends the wait even if it is of another kind or has octets.
  void on_message() { due_ = false; }

  // Keeps Established until there is no wait, or it is over.
  void withhold(Established established) { established_ = std::move(established); }
  std::optional<Established> take_established() {
    if (!established_ || due_) return std::nullopt;
    return std::exchange(established_, std::nullopt);
  }

  std::optional<PostedRecv> take() override {
    if (!due_ || !awaits_send_) return recvs_->take();
    return PostedRecv{.wr_id = 0, .sg_list = {}, .own = true};
  }

 private:
  // A message of no octets. It names memory that does not exist.
  static SendWr indication(mpa::Rtr rtr) {
    SendWr wr;
    wr.op = rtr == mpa::Rtr::kWrite ? SendOp::kRdmaWrite : rtr == mpa::Rtr::kRead ? SendOp::kRdmaRead : SendOp::kSend;
    wr.remote_stag = kNobodysStag;
    return wr;
  }

  RecvSource* recvs_ = nullptr;
  bool due_ = false;
  bool awaits_send_ = false;
  std::optional<Established> established_;
};

}  // namespace weft::rdmap
