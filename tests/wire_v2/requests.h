#pragma once

#include <map>
#include <vector>

#include "tests/wire_v2/message.h"

namespace weft::wire_v2 {

// Request: a message that may be answered, as far as the answer has to keep to it.
struct Request {
  Message header;         // of its last part
  std::size_t event = 0;  // of its last part
  bool is_rpc = false;
  bool is_whole = true;
  std::map<std::uint32_t, std::uint64_t> written;  // by handle: the end of the octets written into its segment
};

// Requests: the unanswered requests of one end.
class Requests {
 public:
  // Null where there is none.
  Request* find_rpc(std::uint32_t xid);
  Request* find_option(std::uint32_t xid);
  // The request that an error with this XID answers: a Call before any other.
  Request* find_any(std::uint32_t xid);
  void add(Request request) { open_.push_back(std::move(request)); }
  void close(const Request* request);

  // RDMA of the other end: whether a Call offers these octets, to be read or to be written.
  bool offers_read(const Segment& octets) const;
  bool offers_write(const Segment& octets);
  // The XIDs of Calls that were never answered.
  std::vector<std::uint32_t> unanswered() const;

 private:
  std::vector<Request> open_;
};

}  // namespace weft::wire_v2
