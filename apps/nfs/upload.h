#pragma once

#include <optional>
#include <vector>

#include "apps/nfs/transfer.h"
#include "base/time.h"

namespace weft::nfs {

// Upload is one file on its way to the server. It is a ring of slots, each with a buffer and the WRITE that sends it.
// Slots are filled in the order of offsets; their WRITEs may end in any order.
//
//   kFree -> kFilling -> kReady -> kWriting -> kFree        (a short WRITE: kWriting -> kReady)
class Upload {
 public:
  Upload(Session& session, IoThread& io, const TransferBuffers& buffers, TransferLimits limits, const nfs3::NfsFh3& fh,
         nfs3::StableHow stable, Transfer::Source source);

  // step does the work that needs no wait; false: the upload has ended. Otherwise the caller calls it again after a
  // turn of the session, when the I/O thread has a finished job, and at wake().
  bool step();
  // fail ends the upload. step() returns false once nothing of the upload is in use any more.
  void fail(absl::Status status) {
    if (error_.ok()) error_ = std::move(status);
  }
  std::optional<TimePoint> wake() const { return must_wait() ? std::optional(patience_->next()) : std::nullopt; }
  const absl::Status& error() const { return error_; }
  const Uploaded& uploaded() const { return uploaded_; }

 private:
  enum class State : std::uint8_t { kFree, kFilling, kReady, kWriting };

  struct Slot {
    State state = State::kFree;
    PreparedCall call;
    std::span<std::uint8_t> buffer;
    std::uint64_t offset = 0;
    std::uint32_t len = 0;
    std::uint32_t written = 0;
  };

  void fill_more();
  void reap_filled();
  void issue_ready();
  void issue(Slot& slot);
  void on_reply(Slot& slot, const rpcrdma::Reply& reply);
  absl::Status take_results(Slot& slot, const rpcrdma::Reply& reply);
  bool finished() const { return source_ended_ && num_filling_ == 0 && num_busy_ == 0; }
  bool must_wait() const { return patience_ && !patience_->is_time(); }

  Session& session_;
  IoThread& io_;
  TransferLimits limits_;
  nfs3::NfsFh3 fh_;
  nfs3::StableHow stable_;
  Transfer::Source source_;
  std::vector<Slot> slots_;
  std::size_t next_fill_ = 0;
  std::size_t num_filling_ = 0;
  std::size_t num_busy_ = 0;  // slots that are kReady or kWriting
  std::uint32_t num_writing_ = 0;
  std::uint64_t filled_ = 0;  // octets that the source gave
  bool source_ended_ = false;
  Uploaded uploaded_;
  std::optional<Patience> patience_;  // while the server is not ready
  absl::Status error_;
};

}  // namespace weft::nfs
