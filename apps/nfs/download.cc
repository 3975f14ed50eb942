#include "apps/nfs/download.h"

#include <algorithm>
#include <cstring>

namespace weft::nfs {

using nfs3::Proc;

Download::Download(Session& session, IoThread& io, const TransferBuffers& buffers, TransferLimits limits,
                   const nfs3::NfsFh3& fh, std::uint64_t known_size, Transfer::Sink sink)
    : session_(session), io_(io), limits_(limits), fh_(fh), known_size_(known_size), sink_(std::move(sink)) {
  slots_.resize(buffers.num());
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].buffer = buffers.at(i).first(limits.io_size);
}

bool Download::step() {
  if (error_.ok()) reap_sunk();
  if (error_.ok()) sink_ready();
  if (error_.ok()) issue_more();
  if (error_.ok()) return !finished();
  if (num_sinking_ > 0) io_.discard();
  num_sinking_ = 0;
  // The READs under way still use the buffers.
  return num_reading_ > 0;
}

bool Download::finished() const {
  return end_ != kNoEnd && num_reading_ == 0 && next_sink_ == next_issue_ && num_sinking_ == 0;
}

void Download::issue_more() {
  if (must_wait()) return;
  for (Slot& again : slots_) {
    if (error_.ok() && again.state == State::kAgain) issue(again);
  }
  while (error_.ok() && num_reading_ < limits_.in_flight && end_ == kNoEnd && slot(next_issue_).state == State::kFree) {
    // Past the known size READs go one at a time: all but the first would mostly find the end.
    if (next_offset_ >= known_size_ && next_issue_ != next_sink_) return;
    Slot& next = slot(next_issue_);
    ++next_issue_;
    next.offset = next_offset_;
    next.want = read_len();
    next.got = 0;
    next.asked_again = false;
    next_offset_ += next.want;
    issue(next);
  }
}

std::uint32_t Download::read_len() const {
  // The Reply must have room for all the octets that are asked for, so a small file that is asked for whole comes
  // inline.
  constexpr std::uint32_t kMostlyEmpty = 1024;
  std::uint64_t len = limits_.io_size;
  if (next_offset_ < known_size_) {
    len = std::min(len, known_size_ - next_offset_);
  } else if (next_offset_ == 0) {
    len = std::min<std::uint64_t>(len, kMostlyEmpty);
  }
  return static_cast<std::uint32_t>(len);
}

void Download::issue(Slot& slot) {
  slot.call.proc = Proc::kRead;
  slot.call.args.clear();
  nfs3::XdrWriter writer(slot.call.args);
  emit(writer, nfs3::ReadArgs{fh_, slot.offset + slot.got, slot.want - slot.got});
  slot.call.result_item = slot.buffer.subspan(slot.got, slot.want - slot.got);
  slot.state = State::kReading;
  ++num_reading_;
  absl::Status status =
      session_.start(slot.call, [this, &slot](const rpcrdma::Reply& reply) { on_reply(slot, reply); });
  if (status.ok()) return;
  --num_reading_;
  fail(std::move(status));
}

void Download::on_reply(Slot& slot, const rpcrdma::Reply& reply) {
  --num_reading_;
  slot.state = State::kReady;
  if (absl::Status status = take_results(slot, reply); !status.ok()) fail(std::move(status));
}

absl::Status Download::take_results(Slot& slot, const rpcrdma::Reply& reply) {
  if (absl::Status status = Session::call_error(Proc::kRead, reply); !status.ok()) return status;
  ReadReply read;
  bool is_busy = false;
  const std::size_t room = slot.want - slot.got;
  if (absl::Status status = take_read(reply.results, reply.item_len.value_or(0), room, read, is_busy); !status.ok()) {
    return status;
  }
  if (is_busy) {
    if (!patience_) patience_.emplace(session_);
    if (!must_wait() && !patience_->again()) return check(nfs3::Nfsstat3::kJukebox, "READ");
    slot.state = State::kAgain;
    return absl::OkStatus();
  }
  patience_.reset();
  slot.got += read.count;
  const std::uint64_t end = slot.offset + slot.got;
  if (read.eof && !denies_end(read, end, known_size_)) {
    end_ = std::min(end_, end);
    return absl::OkStatus();
  }
  if (read.eof && read.count == 0) {
    if (slot.asked_again) return denied_end(read, end);
    slot.asked_again = true;
  }
  if (slot.got < slot.want) slot.state = State::kAgain;
  return absl::OkStatus();
}

void Download::sink_ready() {
  while (error_.ok() && next_sink_ != next_issue_ && slot(next_sink_).state == State::kReady) {
    Slot& ready = slot(next_sink_);
    const auto index = static_cast<std::uint32_t>(next_sink_ % slots_.size());
    ++next_sink_;
    // Either a READ saw an end before this place, or this READ saw the end. Both must agree with the octets that came.
    if (end_ != kNoEnd && ready.offset + ready.got > end_) {
      return fail(absl::AbortedError("the file changed while it was read; try again"));
    }
    octets_ += ready.got;
    if (ready.got == 0) {
      ready.state = State::kFree;
      continue;
    }
    ready.state = State::kSinking;
    ++num_sinking_;
    const std::span<const std::uint8_t> octets = ready.buffer.first(ready.got);
    io_.post(index, [this, octets] { return sink_(octets); });
  }
}

void Download::reap_sunk() {
  while (const auto done = io_.poll()) {
    --num_sinking_;
    slots_[done->tag].state = State::kFree;
    if (done->result < 0) fail(absl::DataLossError(std::strerror(static_cast<int>(-done->result))));
  }
}

}  // namespace weft::nfs
