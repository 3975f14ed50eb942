#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::ends {

// Memory of the end: kMemoryLen octets at a fixed address, under a fixed STag.
enum class Rights : std::uint8_t {
  kRead,     // the peer may read it
  kWrite,    // the peer may write it
  kSink,     // for the end's own RDMA Reads
  kForeign,  // the peer may do nothing: it is of another protection domain
};
struct Memory {
  std::uint32_t stag = 0;
  std::uint64_t addr = 0;
  Rights rights = Rights::kRead;
};
inline constexpr std::size_t kMemoryLen = 64;

// Step is one action of the end. Steps are taken in order; a request does not wait for its completion.
struct Step {
  enum class Kind : std::uint8_t {
    kReceive,  // waits for the next message
    kDone,     // waits for all completions
    kSend,     // text
    kWrite,    // text, to (stag, to) of the peer
    kRead,     // kReadLen octets at (stag, to) of the peer, to (sink) of the end
  };
  Kind kind = Kind::kDone;
  std::string text = {};
  std::uint32_t stag = 0;
  std::uint64_t to = 0;
  std::uint64_t sink = 0;
};
inline constexpr std::uint32_t kReadLen = 16;

struct Options {
  std::string address;
  std::string port;
  bool listen = false;
  std::string trace;
  std::uint8_t ird = 2, ord = 2;
  std::uint32_t receives = 4, receive_len = 1024;
  bool markers = false;
  std::size_t max_fpdu = 0;
  std::vector<Memory> memory;
  std::vector<Step> steps;
};

// parse ends the process with a message where the arguments are wrong.
Options parse(int argc, char** argv);

}  // namespace weft::ends
