#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/nfs/url.h"
#include "apps/nfs3/mount.h"
#include "rpcrdma/rpc_message.h"

namespace weft::nfs {

// MountedExport is the answer of MOUNT: the place where an NFS client starts.
struct MountedExport {
  nfs3::NfsFh3 root;
  std::vector<std::string> export_path;  // names of the directory that root stands for, on the server
  rpcrdma::OpaqueAuth cred;              // of a flavor that the server takes
};

// mount_for asks the MOUNT service of url's server (RFC 1813 section 5, over TCP as in RFC 8267 section 5.1) for the
// directory from which url.path is looked up. That directory is the longest export that is a prefix of the path. If the
// server does not list one, mount_for tries the path itself and then its parents, up to "/". It takes the entry in the
// server's mount list back at once, since nothing here stays mounted. Blocks for at most `timeout` per answer, and for
// at most ten seconds of it until the service takes the connection; stop_fd readable ends it with kCancelled. Errors
// are one line. If the service does not answer for tell_after, `tell` is called with a line for the user. It is called
// again when the service answers. `tell` may be null.
absl::StatusOr<MountedExport> mount_for(const Url& url, std::chrono::milliseconds timeout, int stop_fd,
                                        const std::function<void(const std::string&)>& tell = nullptr,
                                        std::chrono::milliseconds tell_after = {});

// choose_cred chooses one of the flavors that MNT offers for the calls to the NFS server; AUTH_SYS if MNT offers none.
// If all are other flavors than AUTH_SYS and AUTH_NONE, the result is kPermissionDenied.
absl::StatusOr<rpcrdma::OpaqueAuth> choose_cred(const std::vector<std::uint32_t>& flavors);

// candidate_paths: the directories to ask MNT for, best first.
std::vector<std::vector<std::string>> candidate_paths(const std::vector<std::string>& path,
                                                      const std::vector<nfs3::Exportnode>& exports);

// split_path: the names of an absolute path; empty names and "." are left out.
std::vector<std::string> split_path(const std::string& path);

// explain puts "what: " before the message.
absl::Status explain(const absl::Status& status, const std::string& what);

}  // namespace weft::nfs
