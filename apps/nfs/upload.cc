#include "apps/nfs/upload.h"

#include <algorithm>
#include <cstring>

namespace weft::nfs {

using nfs3::Proc;
using nfs3::StableHow;

Upload::Upload(Session& session, IoThread& io, const TransferBuffers& buffers, TransferLimits limits,
               const nfs3::NfsFh3& fh, StableHow stable, Transfer::Source source)
    : session_(session), io_(io), limits_(limits), fh_(fh), stable_(stable), source_(std::move(source)) {
  slots_.resize(buffers.num());
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].buffer = buffers.at(i).first(limits.io_size);
}

bool Upload::step() {
  if (error_.ok()) reap_filled();
  if (error_.ok()) issue_ready();
  if (error_.ok()) fill_more();
  if (error_.ok()) return !finished();
  if (num_filling_ > 0) io_.discard();
  num_filling_ = 0;
  // The WRITEs under way still use the buffers.
  return num_writing_ > 0;
}

void Upload::fill_more() {
  while (error_.ok() && !source_ended_ && slots_[next_fill_].state == State::kFree) {
    Slot& slot = slots_[next_fill_];
    slot.state = State::kFilling;
    ++num_filling_;
    io_.post(static_cast<std::uint32_t>(next_fill_), [this, buffer = slot.buffer] { return source_(buffer); });
    next_fill_ = (next_fill_ + 1) % slots_.size();
  }
}

void Upload::reap_filled() {
  while (const auto done = io_.poll()) {
    Slot& slot = slots_[done->tag];
    --num_filling_;
    slot.state = State::kFree;
    if (done->result < 0) {
      return fail(absl::DataLossError(std::strerror(static_cast<int>(-done->result))));
    }
    slot.len = static_cast<std::uint32_t>(done->result);
    if (slot.len < slot.buffer.size()) source_ended_ = true;
    if (slot.len == 0) continue;
    slot.offset = filled_;
    slot.written = 0;
    filled_ += slot.len;
    slot.state = State::kReady;
    ++num_busy_;
  }
}

void Upload::issue_ready() {
  if (must_wait()) return;
  for (Slot& slot : slots_) {
    if (!error_.ok() || num_writing_ == limits_.in_flight) return;
    if (slot.state == State::kReady) issue(slot);
  }
}

void Upload::issue(Slot& slot) {
  const std::uint32_t len = slot.len - slot.written;
  const std::span<const std::uint8_t> data = slot.buffer.subspan(slot.written, len);
  slot.call.proc = Proc::kWrite;
  slot.call.args.clear();
  nfs3::XdrWriter writer(slot.call.args);
  emit(writer, nfs3::WriteArgs{fh_, slot.offset + slot.written, len, stable_, {len, {}}}, nfs3::ItemForm::kReduced);
  slot.call.item = rpcrdma::ArgumentItem{slot.call.args.size(), data};
  slot.state = State::kWriting;
  ++num_writing_;
  absl::Status status =
      session_.start(slot.call, [this, &slot](const rpcrdma::Reply& reply) { on_reply(slot, reply); });
  if (status.ok()) return;
  --num_writing_;
  fail(std::move(status));
}

void Upload::on_reply(Slot& slot, const rpcrdma::Reply& reply) {
  --num_writing_;
  slot.state = State::kReady;
  if (absl::Status status = take_results(slot, reply); !status.ok()) return fail(std::move(status));
  if (slot.written < slot.len) return;
  slot.state = State::kFree;
  --num_busy_;
}

absl::Status Upload::take_results(Slot& slot, const rpcrdma::Reply& reply) {
  if (absl::Status status = Session::call_error(Proc::kWrite, reply); !status.ok()) return status;
  nfs3::WriteRes res;
  bool is_busy = false;
  if (absl::Status status = take_write(reply.results, slot.len - slot.written, stable_, res, is_busy); !status.ok()) {
    return status;
  }
  if (is_busy) {
    if (!patience_) patience_.emplace(session_);
    return must_wait() || patience_->again() ? absl::OkStatus() : check(nfs3::Nfsstat3::kJukebox, "WRITE");
  }
  patience_.reset();
  slot.written += res.count;
  uploaded_.octets += res.count;
  if (res.committed != StableHow::kUnstable) return absl::OkStatus();
  if (uploaded_.unstable && uploaded_.verf != res.verf) uploaded_.verf_changed = true;
  uploaded_.unstable = true;
  uploaded_.verf = res.verf;
  return absl::OkStatus();
}

}  // namespace weft::nfs
