#include "apps/nfs/mount_client.h"

#include <algorithm>
#include <chrono>

#include "apps/common/address.h"
#include "apps/nfs/silence.h"
#include "apps/onc_tcp/client.h"
#include "base/address.h"

namespace weft::nfs {
namespace {

using nfs3::Mountstat3;
using rpcrdma::xdr::XdrReader;
using rpcrdma::xdr::XdrWriter;

constexpr std::size_t kMaxCandidates = 64;
// Only a service that is there and slow gets a longer time.
constexpr std::chrono::milliseconds kConnectTimeout{10000};
constexpr const char* kTryMountport =
    ". Try: '?mountport=N' behind the URL, N being the port of 'mount=' in weft serve's 'ready' line, or mountd's in "
    "'rpcinfo -p HOST'";

// Mount is one connection to a MOUNT service.
class Mount {
 public:
  Mount(onc_tcp::Client& client, std::chrono::milliseconds timeout)
      : client_(client), timeout_(timeout), cred_(rpcrdma::auth_sys_of_this_process()) {}

  template <typename Res>
  absl::Status call(nfs3::MountProc proc, const nfs3::DirpathArgs* args, Res* res) {
    std::vector<std::uint8_t> octets;
    XdrWriter writer(octets);
    if (args != nullptr) emit(writer, *args);
    const rpcrdma::CallHeader header{
        0, nfs3::kMountProgram, nfs3::kMountVersion, static_cast<std::uint32_t>(proc), cred_, {}};
    auto results = client_.call(header, octets, timeout_);
    if (!results.ok()) return results.status();
    if (res == nullptr) return absl::OkStatus();
    XdrReader reader(*results);
    if (!parse(reader, *res)) return absl::UnavailableError("the answer does not decode");
    return absl::OkStatus();
  }

 private:
  onc_tcp::Client& client_;
  std::chrono::milliseconds timeout_;
  rpcrdma::OpaqueAuth cred_;
};

bool is_prefix(const std::vector<std::string>& prefix, const std::vector<std::string>& path) {
  return prefix.size() <= path.size() && std::equal(prefix.begin(), prefix.end(), path.begin());
}

std::string service_name(const Url& url) {
  return "MOUNT service at " + url.host + " port " + std::to_string(url.mountport) + " (TCP)";
}

std::string short_name(const Url& url) {
  return url.host + " (MOUNT, TCP port " + std::to_string(url.mountport) + ")";
}

absl::StatusOr<MountedExport> mount_first(Mount& mount, const Url& url,
                                          const std::vector<std::vector<std::string>>& candidates) {
  Mountstat3 refusal = Mountstat3::kNoent;
  std::string refused_path = absolute_path(url.path);
  bool is_first = true;
  for (const std::vector<std::string>& names : candidates) {
    const nfs3::DirpathArgs args{absolute_path(names)};
    nfs3::MntRes res;
    if (absl::Status status = mount.call(nfs3::MountProc::kMnt, &args, &res); !status.ok()) {
      return explain(status, service_name(url));
    }
    if (res.fhs_status == Mountstat3::kOk) {
      auto cred = choose_cred(res.auth_flavors);
      if (!cred.ok()) return explain(cred.status(), "mount of " + args.dirpath + " from " + url.host);
      // The outcome is ignored; nothing depends on it.
      mount.call<nfs3::MntRes>(nfs3::MountProc::kUmnt, &args, nullptr).IgnoreError();
      return MountedExport{res.fhandle, names, std::move(*cred)};
    }
    // The refusal of the best candidate says most; its parents are only guesses.
    if (is_first) {
      refusal = res.fhs_status;
      refused_path = args.dirpath;
    }
    is_first = false;
  }
  return absl::PermissionDeniedError("mount of " + refused_path + " from " + url.host + " refused: " +
                                     nfs3::mountstat3_text(refusal) + "; see what the server exports, and to whom");
}

}  // namespace

absl::Status explain(const absl::Status& status, const std::string& what) {
  return absl::Status(status.code(), what + ": " + std::string(status.message()));
}

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    std::string name = path.substr(at, slash - at);
    if (!name.empty() && name != ".") names.push_back(std::move(name));
    at = slash + 1;
  }
  return names;
}

absl::StatusOr<rpcrdma::OpaqueAuth> choose_cred(const std::vector<std::uint32_t>& flavors) {
  const auto offered = [&flavors](rpcrdma::AuthFlavor flavor) {
    return std::find(flavors.begin(), flavors.end(), static_cast<std::uint32_t>(flavor)) != flavors.end();
  };
  if (flavors.empty() || offered(rpcrdma::AuthFlavor::kSys)) return rpcrdma::auth_sys_of_this_process();
  if (offered(rpcrdma::AuthFlavor::kNone)) return rpcrdma::OpaqueAuth{};
  return absl::PermissionDeniedError("the server takes neither AUTH_SYS nor AUTH_NONE (it offers flavor " +
                                     std::to_string(flavors.front()) + "), others are not built yet");
}

std::vector<std::vector<std::string>> candidate_paths(const std::vector<std::string>& path,
                                                      const std::vector<nfs3::Exportnode>& exports) {
  std::vector<std::vector<std::string>> candidates;
  for (const nfs3::Exportnode& node : exports) {
    std::vector<std::string> names = split_path(node.ex_dir);
    if (is_prefix(names, path)) candidates.push_back(std::move(names));
  }
  // The longest export comes first. Guesses follow, also longest first, because a server may export more than it lists.
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  for (std::size_t len = path.size() + 1; len-- > 0;) {
    std::vector<std::string> names(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(len));
    if (std::find(candidates.begin(), candidates.end(), names) == candidates.end()) {
      candidates.push_back(std::move(names));
    }
  }
  candidates.erase(std::remove_if(candidates.begin(), candidates.end(),
                                  [](const auto& names) { return absolute_path(names).size() > nfs3::kMntPathLen; }),
                   candidates.end());
  if (candidates.size() > kMaxCandidates) candidates.resize(kMaxCandidates);
  return candidates;
}

absl::StatusOr<MountedExport> mount_for(const Url& url, std::chrono::milliseconds timeout, int stop_fd,
                                        const std::function<void(const std::string&)>& tell,
                                        std::chrono::milliseconds tell_after) {
  const absl::StatusOr<sockaddr_storage> addr = apps::resolve({url.host, url.mountport});
  if (!addr.ok()) return addr.status();
  bool told = false;
  std::chrono::milliseconds patience = std::min(kConnectTimeout, timeout);
  onc_tcp::Slow slow{tell_after, nullptr};
  if (tell) {
    slow.tell = [&] {
      told = true;
      tell(not_responding(short_name(url), patience, {}, {}));
    };
  }
  auto client = onc_tcp::Client::connect(*addr, address_len(*addr), patience, stop_fd, onc_tcp::Client::LocalPort::kAny,
                                         std::move(slow));
  if (!client.ok()) {
    const absl::Status failed = explain(client.status(), service_name(url));
    if (absl::IsCancelled(failed)) return failed;
    return absl::Status(failed.code(), std::string(failed.message()) + kTryMountport);
  }
  patience = timeout;
  Mount mount(**client, timeout);
  nfs3::ExportRes exports;
  const absl::Status listed = mount.call(nfs3::MountProc::kExport, nullptr, &exports);
  // A server that does not give its list may still mount.
  if (!listed.ok() && listed.code() != absl::StatusCode::kFailedPrecondition) {
    return explain(listed, service_name(url));
  }
  auto mounted = mount_first(mount, url, candidate_paths(url.path, exports.exports));
  if (told && mounted.ok()) tell(responding_again(short_name(url)));
  return mounted;
}

}  // namespace weft::nfs
