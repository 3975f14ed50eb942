#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "apps/nfs/transfer.h"
#include "base/time.h"

namespace weft::nfs {

// Download is one file on its way here. It is a ring of slots, each with a READ and the buffer that the READ fills.
// Slots are issued in the order of offsets and go to the sink in that order, whatever the order of the Replies.
//
//   kFree -> kReading -> kReady -> kSinking -> kFree        (a short READ: kReading -> kAgain -> kReading)
class Download {
 public:
  Download(Session& session, IoThread& io, const TransferBuffers& buffers, TransferLimits limits,
           const nfs3::NfsFh3& fh, std::uint64_t known_size, Transfer::Sink sink);

  // step does the work that needs no wait; false: the download has ended. Otherwise the caller calls it again after a
  // turn of the session, when the I/O thread has a finished job, and at wake().
  bool step();
  // fail ends the download. step() returns false once nothing of the download is in use any more.
  void fail(absl::Status status) {
    if (error_.ok()) error_ = std::move(status);
  }
  std::optional<TimePoint> wake() const { return must_wait() ? std::optional(patience_->next()) : std::nullopt; }
  const absl::Status& error() const { return error_; }
  // Octets that the sink got.
  std::uint64_t octets() const { return octets_; }

 private:
  enum class State : std::uint8_t { kFree, kReading, kAgain, kReady, kSinking };

  struct Slot {
    State state = State::kFree;
    PreparedCall call;
    std::span<std::uint8_t> buffer;
    std::uint64_t offset = 0;
    std::uint32_t want = 0;
    std::uint32_t got = 0;
    bool asked_again = false;  // after an end of the file that its own attributes deny
  };

  static constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();

  Slot& slot(std::uint64_t sequence) { return slots_[sequence % slots_.size()]; }
  void issue_more();
  // Octets of the READ at next_offset_.
  std::uint32_t read_len() const;
  void issue(Slot& slot);
  void on_reply(Slot& slot, const rpcrdma::Reply& reply);
  absl::Status take_results(Slot& slot, const rpcrdma::Reply& reply);
  void sink_ready();
  void reap_sunk();
  bool finished() const;
  bool must_wait() const { return patience_ && !patience_->is_time(); }

  Session& session_;
  IoThread& io_;
  TransferLimits limits_;
  nfs3::NfsFh3 fh_;
  std::uint64_t known_size_;
  Transfer::Sink sink_;
  std::vector<Slot> slots_;
  std::uint64_t next_issue_ = 0;  // sequence numbers of slots
  std::uint64_t next_sink_ = 0;
  std::uint64_t next_offset_ = 0;
  std::uint32_t num_reading_ = 0;
  std::uint32_t num_sinking_ = 0;
  std::uint64_t end_ = kNoEnd;        // the file's end, once a READ has reported it
  std::uint64_t octets_ = 0;          // octets that the sink got
  std::optional<Patience> patience_;  // while the server is not ready
  absl::Status error_;
};

}  // namespace weft::nfs
