#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/nfs/flow.h"
#include "apps/nfs/io_thread.h"
#include "apps/nfs/session.h"
#include "apps/nfs/task.h"

namespace weft::nfs {

// TransferLimits: how the octets of a file are cut into READs and WRITEs.
struct TransferLimits {
  std::uint32_t in_flight = 8;      // Calls at once, of one file
  std::uint32_t io_size = 1 << 20;  // octets each, at most the server's limit
};

// TransferBuffers are page-aligned pieces of memory that READs fill and WRITEs send from. There are more of them than
// Calls in flight, so that the local file is written or read while the network is busy.
class TransferBuffers {
 public:
  TransferBuffers(std::size_t num, std::size_t len);
  ~TransferBuffers();
  TransferBuffers(const TransferBuffers&) = delete;
  TransferBuffers& operator=(const TransferBuffers&) = delete;

  // False if the memory could not be had; no other function may be used then.
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

// ReadReply is the outcome of one READ.
struct ReadReply {
  std::uint32_t count = 0;
  bool eof = false;
  // The file's size after the READ, if the server told it.
  std::optional<std::uint64_t> size;
};

// take_read checks the results of a READ of `room` octets, of which the engine has put item_len into the caller's
// buffer. kUnavailable if the results make no sense; the Status of check() for an nfsstat3. is_busy: the server asks to
// try again later, and nothing else is known.
absl::Status take_read(std::span<const std::uint8_t> results, std::size_t item_len, std::size_t room, ReadReply& reply,
                       bool& is_busy);

// denies_end: whether a READ that says that the file ends at `end` also says that the file is larger. A file that grows
// while it is read looks the same. The octets that were appended behind `known_size`, its size when it was listed, need
// not be read.
bool denies_end(const ReadReply& reply, std::uint64_t end, std::uint64_t known_size);
absl::Status denied_end(const ReadReply& reply, std::uint64_t end);

// take_write checks the results of a WRITE of `len` octets: res.count is from 1 to len, res.committed at least
// `stable`.
absl::Status take_write(std::span<const std::uint8_t> results, std::uint32_t len, nfs3::StableHow stable,
                        nfs3::WriteRes& res, bool& is_busy);

// Uploaded says how data was written. If a WRITE came back UNSTABLE, the data is safe only after a COMMIT with this
// same verifier.
struct Uploaded {
  std::uint64_t octets = 0;
  bool unstable = false;
  bool verf_changed = false;  // the server restarted meanwhile: octets may be lost
  nfs3::Verf verf{};
};

// Transfer moves large files, one at a time, with several READs or WRITEs under way.
class Transfer {
 public:
  Transfer(Session& session, TransferLimits limits);

  IoThread& io() { return io_; }

  // prepare asks the server for its limits and takes the memory, once. The caller calls it before the other functions.
  absl::Status prepare();
  // Octets of one READ and WRITE at most. After prepare().
  std::uint32_t read_size() const { return read_size_; }
  std::uint32_t write_size() const { return write_size_; }

  // download reads the file `fh` from its beginning to its end into `sink`. The sink gets the octets in order, on the
  // I/O thread, and returns 0 or a negative errno value. known_size saves waiting for the end to be seen. Returns the
  // octets read. Errors name neither file; errors of the sink are kDataLoss. In any case nothing is in use when it
  // ends.
  using Sink = std::function<std::int64_t(std::span<const std::uint8_t>)>;
  Task<absl::StatusOr<std::uint64_t>> download(Flow& flow, nfs3::NfsFh3 fh, std::uint64_t known_size, Sink sink,
                                               ProgressFunction progress);

  // upload writes the data of `source` to the file from its beginning. source runs on the I/O thread and fills the span
  // as far as there is data. It returns the number of octets, or a negative errno value.
  using Source = std::function<std::int64_t(std::span<std::uint8_t>)>;
  Task<absl::StatusOr<Uploaded>> upload(Flow& flow, nfs3::NfsFh3 fh, nfs3::StableHow stable, Source source,
                                        ProgressFunction progress);

 private:
  Session& session_;
  TransferLimits limits_;
  bool prepared_ = false;
  std::uint32_t read_size_ = 0;
  std::uint32_t write_size_ = 0;
  std::unique_ptr<TransferBuffers> buffers_;
  IoThread io_;  // last: its jobs use the buffers
};

// read_small reads a whole file into `out`, one READ after the other, as long as it has at most `most` octets: nothing
// if it has more. write_small writes `data`. Both are for many files at once.
Task<absl::StatusOr<bool>> read_small(Flow& flow, nfs3::NfsFh3 fh, std::uint64_t known_size, std::uint32_t most,
                                      std::vector<std::uint8_t>& out);
Task<absl::StatusOr<Uploaded>> write_small(Flow& flow, nfs3::NfsFh3 fh, nfs3::StableHow stable,
                                           std::span<const std::uint8_t> data);

}  // namespace weft::nfs
