#pragma once

#include <cstdint>
#include <memory>

#include "rpcrdma/property_exchange.h"
#include "rpcrdma/v2_wg07/header.h"

namespace weft::rpcrdma::v2_wg07 {

// Exchange: RDMA2_CONNPROP_MIDDLE and RDMA2_CONNPROP_FINAL (sections 6.3.3 and 6.3.4). The client opens. The server
// answers the client's FINAL with its own: a client that does not exchange properties gets none.
class Exchange final : public PropertyExchange {
 public:
  explicit Exchange(Properties own);

  Octets open() override;
  bool is_between() const override { return is_between_; }
  // Everything is, between MIDDLE and FINAL, but RDMA2_GRANT and RDMA2_ERROR (W2-6.3.3-3).
  bool is_mine(ConstBytes message) const override;
  Taken take(ConstBytes message) override;

 private:
  Taken take_set(const v2::Propset& set, bool is_final);

  Properties heard_;         // of MIDDLEs, before FINAL
  bool is_between_ = false;  // MIDDLE came, and FINAL did not
  bool told_ = false;
};

std::unique_ptr<PropertyExchange> make_exchange(const Properties& own);

}  // namespace weft::rpcrdma::v2_wg07
