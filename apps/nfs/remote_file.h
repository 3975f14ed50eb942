#pragma once

#include <string>

#include "absl/status/status.h"
#include "apps/nfs/flow.h"
#include "apps/nfs/task.h"
#include "apps/nfs/transfer.h"
#include "apps/nfs/url.h"

namespace weft::nfs {

// RemoteFile is the temporary file on the server that a put fills. The file that create() made is renamed in the end,
// or removed. Errors name the URL.
class RemoteFile {
 public:
  RemoteFile(Flow& flow, const nfs3::NfsFh3& dir, const Url& url) : flow_(flow), dir_(dir), url_(url) {}

  const nfs3::NfsFh3& fh() const { return fh_; }
  // Whether the file has the mode already that create() was asked for.
  bool has_mode() const { return has_mode_; }

  Task<absl::Status> create(std::uint32_t mode);
  Task<absl::Status> set_attributes(nfs3::Sattr3 attributes);
  // commit makes the written data safe. False if the server has lost part of it meanwhile (RFC 1813 section 3.3.21) and
  // it must be written again.
  Task<absl::StatusOr<bool>> commit(Uploaded uploaded);
  Task<absl::Status> rename();
  // remove is for a file that will not get its name. It works also after the Flow was stopped.
  Task<void> remove();

 private:
  Flow& flow_;
  nfs3::NfsFh3 dir_;
  Url url_;
  std::string temporary_;  // empty: there is no file
  nfs3::NfsFh3 fh_;
  bool has_mode_ = false;
};

}  // namespace weft::nfs
