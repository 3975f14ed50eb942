#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>

#include "rpcrdma/property_exchange.h"
#include "rpcrdma/v2_cel05/header.h"

namespace weft::rpcrdma::v2_cel05 {

// Exchange: the operations on properties of section 6.3. The client opens with RDMA2_CONNPROP, and the server answers
// with its own (R2-6.3.1-9). It rejects every RDMA2_REQPROP (R2-6.2-3). One RDMA2_REQPROP of this end waits for its
// answer at a time.
class Exchange final : public PropertyExchange {
 public:
  // variable: ids of this end's properties that update() may change. All others are told to be constant.
  explicit Exchange(Properties own, std::set<std::uint32_t> variable = {})
      : PropertyExchange(std::move(own)), variable_(std::move(variable)) {}

  Octets open() override;
  bool is_mine(ConstBytes message) const override;
  Taken take(ConstBytes message) override;
  Taken request(const Properties& wanted) override;
  Octets update(const Properties& now) override;

 private:
  // An RDMA2_REQPROP without an answer.
  struct Request {
    std::uint32_t xid = 0;
    v2::Propset want;
    std::uint32_t size_before = 0;  // of the peer's Receives
  };
  void end_request();
  Taken take_body(const Connprop& body, const Header& header);
  Taken take_body(const Reqprop& body, const Header& header);
  Taken take_body(const Updprop& body, const Header& header);
  Taken take_body(const Resprop& body, const Header& header);
  Taken take_body(const Error& body, const Header& header);
  template <typename OtherBody>
  Taken take_body(const OtherBody& body, const Header& header);

  bool told_ = false;
  const std::set<std::uint32_t> variable_;
  std::optional<Request> asked_;
  bool takes_no_requests_ = false;  // the peer answered one with an error
  std::uint32_t next_xid_ = 1;
  std::set<std::uint32_t> may_change_;  // ids that the peer's RDMA2_CONNPROP had and did not call constant
};

std::unique_ptr<PropertyExchange> make_exchange(const Properties& own);

}  // namespace weft::rpcrdma::v2_cel05
