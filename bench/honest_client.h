#pragma once

#include <netinet/in.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/nfs3/codec.h"
#include "bench/honest_line.h"

namespace weft::bench {

// HonestClient is one NFS client at 127.0.0.1 that has one request under way at a time, and says how long each took.
class HonestClient {
 public:
  using Millis = std::optional<double>;  // nothing: not served within HonestLine::kPatience

  HonestClient(Dial dial, const sockaddr_in& mount);

  Millis null();
  Millis getattr();
  Millis read();    // 1 MiB of /data
  Millis create();  // a file that may be there
  Millis mnt();     // over a new TCP connection, to the server itself
  // Another client connects, and this is its first request.
  Millis newcomers_getattr();
  Millis newcomers_read();  // as read()

  const nfs3::NfsFh3& root() const { return root_; }
  // The handle of a name; empty if the directory has no such name.
  std::optional<nfs3::NfsFh3> lookup(const nfs3::NfsFh3& dir, const std::string& name);
  // The first `most` files of a directory.
  std::vector<nfs3::NfsFh3> files_of(const nfs3::NfsFh3& dir, std::size_t most);

 private:
  template <typename Args>
  Millis call(HonestLine& line, nfs3::Proc proc, const Args& args, MutBytes room = {});

  const Dial dial_;
  const sockaddr_storage mount_;
  nfs3::NfsFh3 root_;
  nfs3::NfsFh3 data_;
  std::unique_ptr<HonestLine> line_;
  std::vector<std::uint8_t> results_;  // of the last Call
  std::vector<std::uint8_t> room_;
  std::uint32_t num_created_ = 0;
};

}  // namespace weft::bench
