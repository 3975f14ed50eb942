#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>

#include "tests/wire_v1/decoder.h"
#include "verbs-shim/api/types.h"

// The octets that one end of a connection put on the wire, as lines of text that are the same in every run. XIDs and
// handles are random: the text numbers them in the order in which this end first used them. Offsets count from the
// first one that came with their handle.
namespace weft::wire_v1 {

// Xids holds the XIDs of all Calls of a test: a long Reply begins with an XID, and may be written before this end has
// sent it.
using Xids = std::set<std::uint32_t>;

class EndRecord {
 public:
  // One line about a Send of `octets`, an RDMA Read or an RDMA Write; empty for a request that puts nothing on the
  // wire. The fault of a Send that no sender may send goes to `fault`.
  std::string line_of(const verbs::SendWr& wr, Octets octets, Xids& xids, std::string& fault);

 private:
  struct Handle {
    std::size_t number = 0;
    std::uint64_t first_offset = 0;
  };
  std::size_t number_of_xid(std::uint32_t xid);
  const Handle& handle(std::uint32_t handle, std::uint64_t offset);
  std::string text_of(std::uint32_t the_handle, std::uint64_t offset);
  std::string text_of(const Segment& segment);
  std::string text_of(const Chunk& chunk);
  std::string text_of(const Message& message, Octets octets);
  std::string send_line(const verbs::SendWr& wr, Octets octets, Xids& xids, std::string& fault);

  std::map<std::uint32_t, std::size_t> xids_;
  std::map<std::uint32_t, Handle> handles_;
};

}  // namespace weft::wire_v1
