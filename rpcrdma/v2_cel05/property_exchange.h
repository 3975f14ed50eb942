#pragma once

#include <cstdint>
#include <memory>
#include <set>

#include "rpcrdma/property_exchange.h"
#include "rpcrdma/v2_cel05/header.h"

namespace weft::rpcrdma::v2_cel05 {

// Exchange: the operations on properties of section 6.3. The client opens with RDMA2_CONNPROP, and the server answers
// with its own (R2-6.3.1-9). The properties of this end never change: it rejects every RDMA2_REQPROP, and sends none
// (R2-6.2-3).
class Exchange final : public PropertyExchange {
 public:
  explicit Exchange(Properties own) : PropertyExchange(std::move(own)) {}

  Octets open() override;
  bool is_mine(ConstBytes message) const override;
  Taken take(ConstBytes message) override;

 private:
  Taken take_body(const Connprop& body, const Header& header);
  Taken take_body(const Reqprop& body, const Header& header);
  Taken take_body(const Updprop& body, const Header& header);
  template <typename OtherBody>
  Taken take_body(const OtherBody& body, const Header& header);

  bool told_ = false;
  std::set<std::uint32_t> may_change_;  // ids that the peer's RDMA2_CONNPROP had and did not call constant
};

std::unique_ptr<PropertyExchange> make_exchange(const Properties& own);

}  // namespace weft::rpcrdma::v2_cel05
