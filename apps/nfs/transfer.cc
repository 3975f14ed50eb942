#include "apps/nfs/transfer.h"

#include <sys/mman.h>

#include <algorithm>

#include "apps/nfs/download.h"
#include "apps/nfs/upload.h"

namespace weft::nfs {

TransferBuffers::TransferBuffers(std::size_t num, std::size_t len) : num_(num), len_(len) {
  void* memory = mmap(nullptr, num * len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  madvise(memory, num * len, MADV_HUGEPAGE);
  base_ = static_cast<std::uint8_t*>(memory);
}

TransferBuffers::~TransferBuffers() {
  munmap(base_, num_ * len_);
}

Transfer::Transfer(Session& session, TransferLimits limits) : session_(session), limits_(limits) {}

absl::Status Transfer::prepare() {
  if (prepared_) return absl::OkStatus();
  auto fsinfo = session_.fsinfo();
  if (!fsinfo.ok()) return fsinfo.status();
  read_size_ = std::min(limits_.io_size, fsinfo->rtmax);
  write_size_ = std::min(limits_.io_size, fsinfo->wtmax);
  constexpr std::uint32_t kLeastSpare = 2;
  const std::uint32_t num = limits_.in_flight + std::max(kLeastSpare, limits_.in_flight / 2);
  buffers_ = std::make_unique<TransferBuffers>(num, std::max(read_size_, write_size_));
  if (!buffers_->ok())
    return absl::ResourceExhaustedError("no memory for the transfer; choose a smaller -j or --io-size");
  prepared_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> Transfer::download(const nfs3::NfsFh3& fh, std::uint64_t size_hint, Sink sink,
                                                 const ProgressFunction& progress) {
  if (absl::Status status = prepare(); !status.ok()) return status;
  return Download(session_, io_, *buffers_, {limits_.in_flight, read_size_}, fh, size_hint, std::move(sink))
      .run(progress);
}

absl::StatusOr<Transfer::Uploaded> Transfer::upload(const nfs3::NfsFh3& fh, nfs3::StableHow stable, Source source,
                                                    const ProgressFunction& progress) {
  if (absl::Status status = prepare(); !status.ok()) return status;
  return Upload(session_, io_, *buffers_, {limits_.in_flight, write_size_}, fh, stable, std::move(source))
      .run(progress);
}

}  // namespace weft::nfs
