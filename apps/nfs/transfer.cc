#include "apps/nfs/transfer.h"

#include <sys/mman.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "apps/nfs/download.h"
#include "apps/nfs/upload.h"

namespace weft::nfs {

using nfs3::Proc;

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

absl::Status take_read(std::span<const std::uint8_t> results, std::size_t item_len, std::size_t room, ReadReply& reply,
                       bool& is_busy) {
  nfs3::XdrReader reader(results);
  nfs3::ReadRes res;
  if (!parse(reader, res, nfs3::ItemForm::kReduced)) return Session::undecodable(Proc::kRead);
  is_busy = res.status == nfs3::Nfsstat3::kJukebox;
  if (is_busy) return absl::OkStatus();
  if (absl::Status status = check(res.status, "READ"); !status.ok()) return status;
  if (res.count > room || res.data.len != res.count || item_len != res.count) {
    return Session::undecodable(Proc::kRead);
  }
  reply.count = res.count;
  reply.eof = res.eof;
  if (res.file_attributes) reply.size = res.file_attributes->size;
  if (res.count == 0 && !res.eof) {
    return absl::UnavailableError("the server returned no data before the end of the file");
  }
  return absl::OkStatus();
}

bool denies_end(const ReadReply& reply, std::uint64_t end, std::uint64_t known_size) {
  return reply.size && end < *reply.size && (reply.count == 0 || end < known_size);
}

absl::Status denied_end(const ReadReply& reply, std::uint64_t end) {
  return absl::UnavailableError(
      fmt::format("the server says that the file ends after {} bytes and that it has {}", end, reply.size.value_or(0)));
}

absl::Status take_write(std::span<const std::uint8_t> results, std::uint32_t len, nfs3::StableHow stable,
                        nfs3::WriteRes& res, bool& is_busy) {
  nfs3::XdrReader reader(results);
  if (!parse(reader, res)) return Session::undecodable(Proc::kWrite);
  is_busy = res.status == nfs3::Nfsstat3::kJukebox;
  if (is_busy) return absl::OkStatus();
  if (absl::Status status = check(res.status, "WRITE"); !status.ok()) return status;
  if (res.count == 0 || res.count > len || res.committed < stable) {
    return absl::UnavailableError("the server's answer to WRITE makes no sense");
  }
  return absl::OkStatus();
}

Task<absl::StatusOr<std::uint64_t>> Transfer::download(Flow& flow, nfs3::NfsFh3 fh, std::uint64_t known_size, Sink sink,
                                                       ProgressFunction progress) {
  Download download(session_, io_, *buffers_, {limits_.in_flight, read_size_}, fh, known_size, std::move(sink));
  flow.watch(io_.fd());
  while (download.step()) {
    if (flow.is_stopped()) download.fail(flow.stop_status());
    co_await flow.turned(download.wake());
    if (progress) progress(download.octets());
  }
  flow.unwatch(io_.fd());
  if (!download.error().ok()) co_return download.error();
  co_return download.octets();
}

Task<absl::StatusOr<Uploaded>> Transfer::upload(Flow& flow, nfs3::NfsFh3 fh, nfs3::StableHow stable, Source source,
                                                ProgressFunction progress) {
  Upload upload(session_, io_, *buffers_, {limits_.in_flight, write_size_}, fh, stable, std::move(source));
  flow.watch(io_.fd());
  while (upload.step()) {
    if (flow.is_stopped()) upload.fail(flow.stop_status());
    co_await flow.turned(upload.wake());
    if (progress) progress(upload.uploaded().octets);
  }
  flow.unwatch(io_.fd());
  if (!upload.error().ok()) co_return upload.error();
  co_return upload.uploaded();
}

Task<absl::StatusOr<bool>> read_small(Flow& flow, nfs3::NfsFh3 fh, std::uint64_t known_size, std::uint32_t most,
                                      std::vector<std::uint8_t>& out) {
  out.clear();
  std::optional<Patience> patience;
  bool asked_again = false;
  while (true) {
    const std::size_t at = out.size();
    // The Reply needs room for all octets that were asked for. A small file that is asked for whole comes inline.
    constexpr std::uint32_t kMostlyEmpty = 1024;
    const std::size_t want = at < known_size ? std::min<std::uint64_t>(known_size - at, most - at) : kMostlyEmpty;
    out.resize(at + want);
    const std::span<std::uint8_t> buffer = std::span(out).subspan(at);
    PreparedCall call{.proc = Proc::kRead, .result_item = buffer};
    nfs3::XdrWriter writer(call.args);
    emit(writer, nfs3::ReadArgs{fh, at, static_cast<std::uint32_t>(want)});
    std::vector<std::uint8_t> results;
    std::optional<std::size_t> item_len;
    absl::Status status = co_await flow.call_raw(call, results, &item_len);
    ReadReply reply;
    bool is_busy = false;
    if (status.ok()) status = take_read(results, item_len.value_or(0), buffer.size(), reply, is_busy);
    if (!status.ok()) co_return status;
    out.resize(at + reply.count);
    if (is_busy) {
      if (!patience) patience.emplace(flow.session());
      if (!patience->again()) co_return check(nfs3::Nfsstat3::kJukebox, "READ");
      co_await flow.until(patience->next());
      continue;
    }
    patience.reset();
    if (reply.eof && !denies_end(reply, out.size(), known_size)) co_return true;
    if (reply.eof && reply.count == 0) {
      if (asked_again) co_return denied_end(reply, out.size());
      asked_again = true;
    }
    if (out.size() >= most) co_return false;
  }
}

Task<absl::StatusOr<Uploaded>> write_small(Flow& flow, nfs3::NfsFh3 fh, nfs3::StableHow stable,
                                           std::span<const std::uint8_t> data) {
  Uploaded uploaded;
  std::optional<Patience> patience;
  bool has_verf = false;
  while (uploaded.octets < data.size()) {
    const auto rest = data.subspan(uploaded.octets);
    const auto len = static_cast<std::uint32_t>(rest.size());
    PreparedCall call{.proc = Proc::kWrite};
    nfs3::XdrWriter writer(call.args);
    emit(writer, nfs3::WriteArgs{fh, uploaded.octets, len, stable, {len, {}}}, nfs3::ItemForm::kReduced);
    call.item = rpcrdma::ArgumentItem{call.args.size(), rest};
    std::vector<std::uint8_t> results;
    absl::Status status = co_await flow.call_raw(call, results, nullptr);
    nfs3::WriteRes res;
    bool is_busy = false;
    if (status.ok()) status = take_write(results, len, stable, res, is_busy);
    if (!status.ok()) co_return status;
    if (is_busy) {
      if (!patience) patience.emplace(flow.session());
      if (!patience->again()) co_return check(nfs3::Nfsstat3::kJukebox, "WRITE");
      co_await flow.until(patience->next());
      continue;
    }
    patience.reset();
    uploaded.octets += res.count;
    if (res.committed != nfs3::StableHow::kUnstable) continue;
    uploaded.unstable = true;
    if (has_verf && uploaded.verf != res.verf) uploaded.verf_changed = true;
    uploaded.verf = res.verf;
    has_verf = true;
  }
  co_return uploaded;
}

}  // namespace weft::nfs
