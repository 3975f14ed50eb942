#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/nfs/io_thread.h"
#include "apps/nfs/session.h"

namespace weft::nfs {

// TransferLimits: how the octets of a file are cut into READs and WRITEs.
struct TransferLimits {
  std::uint32_t in_flight = 8;      // Calls at once
  std::uint32_t io_size = 1 << 20;  // octets each, at most what the server takes
};

// TransferBuffers are page-aligned pieces of memory that READs fill and WRITEs send from. More of them than Calls in
// flight, so that the local file is written or read while the network is busy.
class TransferBuffers {
 public:
  TransferBuffers(std::size_t num, std::size_t len);
  ~TransferBuffers();
  TransferBuffers(const TransferBuffers&) = delete;
  TransferBuffers& operator=(const TransferBuffers&) = delete;

  // False where the memory was not to be had; nothing else is of use then.
  bool ok() const { return base_ != nullptr; }
  std::size_t num() const { return num_; }
  std::size_t len() const { return len_; }
  std::span<std::uint8_t> at(std::size_t index) const { return {base_ + index * len_, len_}; }

 private:
  std::size_t num_;
  std::size_t len_;
  std::uint8_t* base_ = nullptr;
};

// Called now and then with the octets done so far.
using ProgressFunction = std::function<void(std::uint64_t octets)>;

// Transfer is what download and upload work with; it serves one file after the other.
class Transfer {
 public:
  Transfer(Session& session, TransferLimits limits);

  Session& session() { return session_; }
  IoThread& io() { return io_; }

  // download reads the file `fh` from its beginning to its end into `sink`, which gets the octets in order, on the I/O
  // thread, and returns 0 or a negative errno value. size_hint saves waiting for the end to be seen. Returns the octets
  // read. Errors name neither file; those of the sink are kDataLoss. In any case nothing is in use when it returns.
  using Sink = std::function<std::int64_t(std::span<const std::uint8_t>)>;
  absl::StatusOr<std::uint64_t> download(const nfs3::NfsFh3& fh, std::uint64_t size_hint, Sink sink,
                                         const ProgressFunction& progress);

  // upload writes what `source` gives to the file from its beginning. source runs on the I/O thread and fills the span
  // as far as there is data: octets, or a negative errno value. Where a WRITE came back UNSTABLE, the data is safe only
  // after a COMMIT with this same verifier.
  using Source = std::function<std::int64_t(std::span<std::uint8_t>)>;
  struct Uploaded {
    std::uint64_t octets = 0;
    bool unstable = false;
    bool verf_changed = false;  // the server started anew meanwhile: octets may be lost
    nfs3::Verf verf{};
  };
  absl::StatusOr<Uploaded> upload(const nfs3::NfsFh3& fh, nfs3::StableHow stable, Source source,
                                  const ProgressFunction& progress);

 private:
  absl::Status prepare();

  Session& session_;
  TransferLimits limits_;
  bool prepared_ = false;
  std::uint32_t read_size_ = 0;
  std::uint32_t write_size_ = 0;
  std::unique_ptr<TransferBuffers> buffers_;
  IoThread io_;  // last: its jobs use the buffers
};

}  // namespace weft::nfs
