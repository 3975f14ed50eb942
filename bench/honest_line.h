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
#include "verbs-shim/api/verbs.h"

namespace weft::bench {

// HonestLine is the way of an honest client's NFS Calls to the server, one Call at a time. It connects again, and sends
// a Call again, as NFS clients do.
class HonestLine {
 public:
  static constexpr std::chrono::seconds kPatience{10};  // for a Call, its connection included
  struct Answer {
    std::optional<std::vector<std::uint8_t>> results;  // nothing: not served within kPatience
    std::string why;                                   // it was not
  };

  virtual ~HonestLine() = default;
  // Data of a READ go to `room` over RDMA, and are among the results over TCP.
  virtual Answer call(nfs3::Proc proc, const std::vector<std::uint8_t>& args, MutBytes room) = 0;
};

// Each call makes another client of the server.
using Dial = std::function<std::unique_ptr<HonestLine>()>;
Dial dial_rdma(verbs::Device& device, const sockaddr_in& server);  // `device` outlives the lines
Dial dial_tcp(const sockaddr_in& server);

sockaddr_storage storage_of(const sockaddr_in& addr);

}  // namespace weft::bench
