#include "apps/nfs/remote_file.h"

#include "apps/nfs/local_file.h"
#include "apps/nfs/tree.h"

namespace weft::nfs {
namespace {

using nfs3::Nfsstat3;
using nfs3::Proc;

constexpr int kMaxNameAttempts = 16;

}  // namespace

Task<absl::Status> RemoteFile::create(std::uint32_t mode) {
  // Servers differ in whether the creator of a file that forbids writing can write it.
  constexpr std::uint32_t kOwnerMayWrite = 0200;
  const std::uint32_t mode_now = (mode & kOwnerMayWrite) != 0 ? mode : 0600;
  for (int attempt = 0; attempt < kMaxNameAttempts; ++attempt) {
    std::string temporary = temporary_name(url_.basename());
    nfs3::CreateArgs args{{dir_, temporary}, nfs3::Createmode3::kGuarded, {}, {}};
    args.obj_attributes.mode = mode_now;
    nfs3::NewObjectRes res;
    absl::Status status = co_await flow_.call(Proc::kCreate, std::move(args), res);
    if (!status.ok()) {
      temporary_ = std::move(temporary);  // the server may have made it
      co_return explain(status, url_.str());
    }
    if (res.status == Nfsstat3::kExist) continue;
    if (status = check(res.status, url_.str()); !status.ok()) co_return status;
    temporary_ = std::move(temporary);
    constexpr std::uint32_t kModeBits = 07777;
    has_mode_ = res.obj_attributes && (res.obj_attributes->mode & kModeBits) == mode;
    if (res.obj) {
      fh_ = *res.obj;
      co_return absl::OkStatus();
    }
    absl::StatusOr<Node> node = co_await lookup(flow_, dir_, temporary_, url_);
    if (!node.ok()) co_return node.status();
    fh_ = node->fh;
    co_return absl::OkStatus();
  }
  co_return absl::AlreadyExistsError(url_.str() + ": no free temporary name");
}

Task<absl::Status> RemoteFile::set_attributes(nfs3::Sattr3 attributes) {
  nfs3::SetattrArgs args{fh_, attributes, std::nullopt};
  nfs3::WccRes res;
  absl::Status status = co_await flow_.call(Proc::kSetattr, args, res);
  co_return status.ok() ? check(res.status, url_.str()) : explain(status, url_.str());
}

Task<absl::StatusOr<bool>> RemoteFile::commit(Uploaded uploaded) {
  if (!uploaded.unstable) co_return true;
  nfs3::CommitArgs args{fh_, 0, 0};
  nfs3::CommitRes res;
  absl::Status status = co_await flow_.call(Proc::kCommit, args, res);
  if (!status.ok()) co_return explain(status, url_.str());
  if (status = check(res.status, url_.str()); !status.ok()) co_return status;
  co_return !uploaded.verf_changed && res.verf == uploaded.verf;
}

Task<absl::Status> RemoteFile::rename() {
  nfs3::RenameArgs args{{dir_, temporary_}, {dir_, url_.basename()}};
  nfs3::RenameRes res;
  absl::Status status = co_await flow_.call(Proc::kRename, std::move(args), res);
  if (!status.ok()) co_return explain(status, url_.str());
  if (status = check(res.status, url_.str()); status.ok()) temporary_.clear();
  co_return status;
}

Task<void> RemoteFile::remove() {
  if (temporary_.empty()) co_return;
  nfs3::DiropArgs args{{dir_, temporary_}};
  nfs3::WccRes res;
  const absl::Status ignored = co_await flow_.call(Proc::kRemove, std::move(args), res, WhenStopped::kSend);
  temporary_.clear();
}

}  // namespace weft::nfs
