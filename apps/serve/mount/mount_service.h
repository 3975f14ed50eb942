#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "apps/nfs3/mount.h"
#include "apps/serve/export/tree.h"
#include "rpcrdma/bytes.h"

namespace weft::serve {

// MountService is MOUNT version 3 (RFC 1813 section 5) for one export, which is called "/" and may also be named by the
// directory's real path; directories beneath it can be mounted as well. Any thread; MNT blocks on the disk.
class MountService {
 public:
  explicit MountService(Tree& tree) : tree_(tree) {}

  // answer takes one RPC message apart and returns the reply, or nothing where there is none to give (it was no Call).
  // host: who asks, as DUMP shows it.
  std::optional<std::vector<std::uint8_t>> answer(rpcrdma::ConstBytes message, const std::string& host);

  nfs3::MntRes mnt(const nfs3::DirpathArgs& args, const std::string& host);
  nfs3::DumpRes dump() const;
  void umnt(const nfs3::DirpathArgs& args, const std::string& host);
  void umntall(const std::string& host);
  nfs3::ExportRes exports() const;

 private:
  // Mounts that DUMP remembers: information for people, as the RFC says, so the oldest may go.
  static constexpr std::size_t kMaxListed = 1024;

  bool call(std::uint32_t procedure, rpcrdma::xdr::XdrReader& args, const std::string& host,
            rpcrdma::xdr::XdrWriter& results);

  Tree& tree_;
  mutable std::mutex mutex_;
  std::deque<nfs3::Mountbody> mounts_;
};

}  // namespace weft::serve
