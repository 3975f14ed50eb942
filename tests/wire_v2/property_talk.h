#pragma once

#include <functional>
#include <map>
#include <set>

#include "tests/wire_v2/properties.h"

namespace weft::wire_v2 {

// PropertyTalk: cel05's four property messages of both ends, and whether each of them may come where it does. (In wg07
// there is one type, with a last message: Parts.)
class PropertyTalk {
 public:
  using Report = std::function<void(const char* rule, const char* text)>;

  // on_message: an end's property message, which is the event of this number. `own`: the properties of
  // the end that sent it.
  void on_message(bool from_client, const Message& message, Properties& own, std::size_t event, const Report& report);
  // limit: the lower RBSIZ that this end asked the other end for, while the request is pending (R2-6.2.1-7).
  std::optional<std::uint32_t> limit(bool of_client) const;
  // on_error: an error that answers a request of this end with this XID.
  void on_error(bool to_client, std::uint32_t xid);

 private:
  struct Side {
    std::optional<std::vector<Property>> start;                  // of CONNPROP
    std::set<std::uint32_t> fixed;                               // the ids that rdma_nochg names
    std::multimap<std::uint32_t, std::vector<Property>> wanted;  // of REQPROP, by XID
  };
  void on_update(const Side& side, const Message& message, Properties& own, std::size_t event, const Report& report);
  void on_response(Side& asker, const Message& message, Properties& own, std::size_t event, const Report& report);

  Side client_, server_;
};

}  // namespace weft::wire_v2
