#include "apps/dissect/property_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "apps/dissect/transport_header.h"
#include "rpcrdma/v2_cel05/properties.h"
#include "rpcrdma/v2_wg07/header.h"
#include "rpcrdma/v2_wg07/properties.h"

namespace weft::apps::dissect {

namespace {

namespace cel05 = rpcrdma::v2_cel05;
namespace wg07 = rpcrdma::v2_wg07;
using rpcrdma::Protocol;
using rpcrdma::v2::HeaderError;
using rpcrdma::v2::Propval;

// Most messages have no properties.
bool has_properties(Protocol protocol, const TransportHeader& header) {
  using enum cel05::Proc;
  if (protocol == Protocol::k2Wg07) return header.is_connprop_wg07();
  return header.is(kConnprop) || header.is(kReqprop) || header.is(kResprop) || header.is(kUpdprop);
}

// An answer has three parts. Each property of the request is in at most one of them.
void judge_parts(const std::vector<std::uint32_t>& wanted, const cel05::Resprop& body, Frame& frame) {
  constexpr std::string_view kRejected = "the requester takes the property for rejected";
  const auto is_other = [&](std::uint32_t which) {
    return std::ranges::find(body.other, which, &Propval::which) != body.other.end();
  };
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const int num_parts = int{body.done.contains(i)} + int{body.rejected.contains(i)} + int{is_other(wanted[i])};
    if (num_parts <= 1) continue;
    frame.find("R2-6.3.3-8",
               fmt::format("property {} is in several of rdma_done, rdma_rejected and rdma_other", wanted[i]),
               kRejected);
    break;
  }
  for (const Propval& value : body.other) {
    if (std::ranges::find(wanted, value.which) != wanted.end()) continue;
    frame.find("R2-6.3.3-6", fmt::format("property {} is in rdma_other, and was not asked for", value.which),
               "the requester ignores it");
    break;
  }
}

}  // namespace

std::size_t PropertyRules::max_receive(Side of) const {
  return has_unread_ ? SIZE_MAX : half(of).max_receive;
}

void PropertyRules::on_message(Side from, Protocol protocol, const TransportHeader& header, ConstBytes message,
                               Frame& frame) {
  if (!has_properties(protocol, header)) return;
  ConstBytes payload;
  if (protocol == Protocol::k2Cel05) {
    cel05::Header parsed;
    if (parse_message(message, parsed, payload) == HeaderError::kNone) on_cel05(from, parsed, frame);
    return;
  }
  wg07::Header parsed;
  if (parse_message(message, parsed, payload) != HeaderError::kNone) return;
  if (const auto* middle = std::get_if<wg07::ConnpropMiddle>(&parsed.body))
    take(from, middle->props, wg07::kProperties);
  if (const auto* final = std::get_if<wg07::ConnpropFinal>(&parsed.body)) take(from, final->props, wg07::kProperties);
}

// The values of a set, where it has them.
void PropertyRules::take(Side of, const rpcrdma::v2::Propset& set, const rpcrdma::v2::PropertyTable& table) {
  rpcrdma::Properties told{.receive_size = 0, .reverse = rpcrdma::ReverseSupport::kNone};
  if (apply(set, table, told) != HeaderError::kNone) return on_unreadable();
  half(of).max_receive = std::max<std::size_t>(half(of).max_receive, told.receive_size);
  half(of).takes_reverse_calls |= told.reverse != rpcrdma::ReverseSupport::kNone;
}

void PropertyRules::on_cel05(Side from, const cel05::Header& header, Frame& frame) {
  if (const auto* connprop = std::get_if<cel05::Connprop>(&header.body))
    take(from, connprop->start, cel05::kProperties);
  if (const auto* updprop = std::get_if<cel05::Updprop>(&header.body)) take(from, updprop->now, cel05::kProperties);
  if (const auto* request = std::get_if<cel05::Reqprop>(&header.body)) on_request(from, header.xid, *request);
  if (const auto* answer = std::get_if<cel05::Resprop>(&header.body)) on_answer(from, header.xid, *answer, frame);
}

// A bit of the answer can put the wanted values into force.
void PropertyRules::on_request(Side from, std::uint32_t xid, const cel05::Reqprop& body) {
  take(other(from), body.want, cel05::kProperties);
  Half& own = half(from);
  if (body.want.size() > kMaxWanted) {
    own.has_forgotten = true;
    return;
  }
  Request request{.xid = xid, .wanted = {}};
  for (const Propval& value : body.want) request.wanted.push_back(value.which);
  own.requests.push_back(std::move(request));
  if (own.requests.size() <= kMaxRequests) return;
  own.requests.pop_front();
  own.has_forgotten = true;
}

void PropertyRules::on_answer(Side from, std::uint32_t xid, const cel05::Resprop& body, Frame& frame) {
  take(from, body.other, cel05::kProperties);
  Half& asker = half(other(from));
  if (asker.has_forgotten) return;
  const auto request = std::ranges::find(asker.requests, xid, &Request::xid);
  if (request == asker.requests.end()) {
    return frame.find("R2-6.3.3-2", fmt::format("no open RDMA2_REQPROP has XID {:#010x}", xid),
                      "the requester drops the answer");
  }
  const auto second =
      std::find_if(std::next(request), asker.requests.end(), [xid](const Request& one) { return one.xid == xid; });
  if (second == asker.requests.end()) judge_parts(request->wanted, body, frame);
  asker.requests.erase(request);
}

}  // namespace weft::apps::dissect
