#include "apps/nfs/download.h"

#include <algorithm>
#include <cstring>

namespace weft::nfs {

using nfs3::ItemForm;
using nfs3::Proc;

Download::Download(Session& session, IoThread& io, const TransferBuffers& buffers, TransferLimits limits,
                   const nfs3::NfsFh3& fh, std::uint64_t size_hint, Transfer::Sink sink)
    : session_(session), io_(io), limits_(limits), fh_(fh), size_hint_(size_hint), sink_(std::move(sink)) {
  slots_.resize(buffers.num());
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].buffer = buffers.at(i).first(limits.io_size);
}

absl::StatusOr<std::uint64_t> Download::run(const ProgressFunction& progress) {
  while (error_.ok() && !finished()) {
    reap_sunk();
    sink_ready();
    issue_more();
    if (!error_.ok() || finished()) break;
    if (absl::Status status = session_.turn(io_.fd(), wake()); !status.ok()) fail(std::move(status));
    if (progress) progress(octets_);
  }
  if (!error_.ok()) {
    session_.drain();
    io_.discard();
    return error_;
  }
  return octets_;
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
    // Past the size that was known READs go one at a time: all but the first would mostly find the end.
    if (next_offset_ >= size_hint_ && next_issue_ != next_sink_) return;
    Slot& next = slot(next_issue_);
    ++next_issue_;
    next.offset = next_offset_;
    next.want = read_len();
    next.got = 0;
    next.eof = false;
    next_offset_ += next.want;
    issue(next);
  }
}

std::uint32_t Download::read_len() const {
  // What is asked for is what the Reply must have room for: a small file that is asked for whole comes inline.
  constexpr std::uint32_t kMostlyEmpty = 1024;
  std::uint64_t len = limits_.io_size;
  if (next_offset_ < size_hint_) {
    len = std::min(len, size_hint_ - next_offset_);
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
  const bool reduced = reply.item_len.value_or(0) > 0;
  nfs3::XdrReader reader(reply.results);
  nfs3::ReadRes res;
  if (!parse(reader, res, reduced ? ItemForm::kReduced : ItemForm::kInline)) return Session::undecodable(Proc::kRead);
  if (res.status == nfs3::Nfsstat3::kJukebox) {
    if (!patience_) patience_.emplace();
    if (must_wait() || patience_->again()) {
      slot.state = State::kAgain;
      return absl::OkStatus();
    }
  }
  if (absl::Status status = check(res.status, "READ"); !status.ok()) return status;
  patience_.reset();
  const std::uint32_t asked = slot.want - slot.got;
  if (res.count > asked || res.data.len != res.count || (reduced && *reply.item_len != res.count)) {
    return Session::undecodable(Proc::kRead);
  }
  if (!reduced && res.count > 0) std::memcpy(slot.buffer.data() + slot.got, res.data.data.data(), res.count);
  slot.got += res.count;
  if (res.eof) {
    slot.eof = true;
    end_ = std::min(end_, slot.offset + slot.got);
  } else if (res.count == 0) {
    return absl::UnavailableError("the server returned no data before the end of the file");
  } else if (slot.got < slot.want) {
    slot.state = State::kAgain;
  }
  return absl::OkStatus();
}

void Download::sink_ready() {
  while (error_.ok() && next_sink_ != next_issue_ && slot(next_sink_).state == State::kReady) {
    Slot& ready = slot(next_sink_);
    const auto index = static_cast<std::uint32_t>(next_sink_ % slots_.size());
    ++next_sink_;
    // An end was seen before this place, or this is the end: both must agree with what came.
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
