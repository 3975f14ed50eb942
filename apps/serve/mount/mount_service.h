#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "apps/nfs3/mount.h"
#include "apps/serve/export/tree.h"
#include "apps/serve/mount/mount_list.h"
#include "base/bytes.h"

namespace weft::serve {

// MountService is MOUNT version 3 (RFC 1813 section 5) for one export. The export is called "/", and the directory's
// real path names it too. Clients can also mount directories beneath it. Any thread; MNT blocks on the disk.
class MountService {
 public:
  // The most descriptors that one Call has open at once: MNT of a path with ".." has the directory before it.
  static constexpr std::size_t kDescriptorsOfCall = 1 + Tree::kDescriptorsOfResolve;

  explicit MountService(Tree& tree) : tree_(tree) {}

  // answer parses one RPC message and returns the reply. It returns nothing if there is no reply to give (not a Call).
  std::optional<std::vector<std::uint8_t>> answer(ConstBytes message, const MountClient& client);

  nfs3::MntRes mnt(const nfs3::DirpathArgs& args, const MountClient& client);
  nfs3::DumpRes dump() const;
  void umnt(const nfs3::DirpathArgs& args, const MountClient& client);
  void umntall(const MountClient& client);
  nfs3::ExportRes exports() const;

 private:
  bool call(std::uint32_t procedure, rpcrdma::xdr::XdrReader& args, const MountClient& client,
            rpcrdma::xdr::XdrWriter& results);

  Tree& tree_;
  mutable std::mutex mutex_;
  MountList mounts_;
};

}  // namespace weft::serve
