#pragma once

#include <netinet/in.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/nfs3/codec.h"
#include "rpcrdma/client.h"
#include "verbs-shim/api/verbs.h"

namespace weft::bench {

// HonestClient is one NFS client at 127.0.0.1 that has one request under way at a time, and says how long each took.
class HonestClient {
 public:
  static constexpr std::chrono::seconds kPatience{10};
  using Millis = std::optional<double>;  // nothing: not served within kPatience

  HonestClient(verbs::Device& device, const sockaddr_in& rdma, const sockaddr_in& mount);

  Millis null();
  Millis getattr();
  Millis read();    // 1 MiB of /data
  Millis create();  // a file that may be there
  Millis mnt();     // over a new TCP connection
  // Another client connects, and this is its first request.
  Millis newcomers_getattr();
  Millis newcomers_read();  // as read()

  const nfs3::NfsFh3& root() const { return root_; }
  // The handle of a name; empty if the directory has no such name.
  std::optional<nfs3::NfsFh3> lookup(const nfs3::NfsFh3& dir, const std::string& name);
  // The first `most` files of a directory.
  std::vector<nfs3::NfsFh3> files_of(const nfs3::NfsFh3& dir, std::size_t most);

 private:
  std::unique_ptr<rpcrdma::Client> connect();
  Millis call(rpcrdma::Client& client, nfs3::Proc proc, const std::vector<std::uint8_t>& args, MutBytes room = {});
  template <typename Args>
  Millis call(nfs3::Proc proc, const Args& args, MutBytes room = {});
  template <typename Args>
  Millis newcomer(nfs3::Proc proc, const Args& args, MutBytes room = {});

  verbs::Device& device_;
  const sockaddr_storage rdma_;
  const sockaddr_storage mount_;
  nfs3::NfsFh3 root_;
  nfs3::NfsFh3 data_;
  std::unique_ptr<rpcrdma::Client> client_;
  std::vector<std::uint8_t> results_;  // of the last Call
  std::vector<std::uint8_t> room_;
  std::uint32_t num_created_ = 0;
};

}  // namespace weft::bench
