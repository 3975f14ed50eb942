#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "mpa/startup_frame.h"
#include "verbs-shim/soft/trace.h"
#include "verbs-shim/soft/trace_file.h"

// What the tests of traces have in common.
namespace weft::verbs::soft::testing {

using Octets = std::vector<std::uint8_t>;

inline Octets ulpdu(std::size_t len, bool tagged) {
  Octets octets(len, 0x5a);
  octets[0] = tagged ? 0xc1 : 0x41;
  return octets;
}

inline Octets startup(bool markers, const Octets& private_data = {}) {
  Octets octets;
  mpa::emit_startup_frame({.kind = mpa::FrameKind::kRequest, .m = markers, .rev = 1, .private_data = private_data},
                          octets);
  return octets;
}

inline sockaddr_storage address(int family, std::uint8_t last, std::uint16_t port) {
  sockaddr_storage out{};
  out.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET6) {
    auto& in6 = reinterpret_cast<sockaddr_in6&>(out);
    in6.sin6_addr.s6_addr[15] = last;
    in6.sin6_port = htons(port);
  } else {
    auto& in = reinterpret_cast<sockaddr_in&>(out);
    in.sin_addr.s_addr = htonl(0x0a000000u + last);
    in.sin_port = htons(port);
  }
  return out;
}

// A trace in a file of its own.
struct TraceTest : ::testing::Test {
  ~TraceTest() override { ::unlink(path.c_str()); }

  std::shared_ptr<TraceFile> open(TraceConfig config = {}) {
    const int fd = ::mkstemp(path.data());
    EXPECT_GE(fd, 0);
    ::close(fd);
    config.path = path;
    auto trace = open_trace(config);
    EXPECT_TRUE(trace.ok());
    return std::static_pointer_cast<TraceFile>(trace.value());
  }
  struct Block {
    std::uint32_t type = 0;
    Octets body;
  };
  // The file's blocks, each of which has its length at both ends.
  std::vector<Block> blocks() {
    std::ifstream in(path, std::ios::binary);
    const Octets octets{std::istreambuf_iterator<char>(in), {}};
    std::vector<Block> out;
    for (std::size_t at = 0; at < octets.size();) {
      std::uint32_t words[2] = {}, behind = 0;
      if (octets.size() - at < 12) ADD_FAILURE() << "a block without its head";
      std::memcpy(words, octets.data() + at, 8);
      if (words[1] % 4 != 0 || words[1] > octets.size() - at) {
        ADD_FAILURE() << "a block with a wrong length";
        return out;
      }
      std::memcpy(&behind, octets.data() + at + words[1] - 4, 4);
      EXPECT_EQ(behind, words[1]);
      out.push_back({words[0],
                     {octets.begin() + static_cast<std::ptrdiff_t>(at + 8),
                      octets.begin() + static_cast<std::ptrdiff_t>(at + words[1] - 4)}});
      at += words[1];
    }
    return out;
  }

  std::string path = "/tmp/weft-trace-XXXXXX";
};

}  // namespace weft::verbs::soft::testing
