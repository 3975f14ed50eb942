#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "apps/nfs3/types.h"
#include "apps/serve/export/file_stat.h"

namespace weft::serve {

using HandleKey = std::array<std::uint8_t, 16>;

// load_handle_key reads the key that signs handles from the state directory, or makes one there (mode 0600).
absl::StatusOr<HandleKey> load_handle_key(int state_dir_fd, const std::string& shown_name);

// HandleCodec turns file keys into file handles and back. A handle is
//   format (4 octets) | export id (8) | dev (8) | ino (8) | birth time (8) | SipHash-2-4 of all that, 128 bits (16)
// Without the key a handle cannot be made, and one file of one export has exactly one handle. Any thread.
class HandleCodec {
 public:
  static constexpr std::size_t kHandleLen = 52;

  static absl::StatusOr<std::unique_ptr<HandleCodec>> create(const HandleKey& key, std::uint64_t export_id);
  ~HandleCodec();

  nfs3::NfsFh3 make(const FileKey& file) const;
  // EBADMSG for every handle that make() never returned.
  Outcome<FileKey> parse(const nfs3::NfsFh3& handle) const;

 private:
  struct Mac;
  HandleCodec(std::unique_ptr<Mac> mac, std::uint64_t export_id);

  std::unique_ptr<Mac> mac_;
  std::uint64_t export_id_;
};

}  // namespace weft::serve
