#include "rpcrdma/v2_cel05/property_exchange.h"

#include <limits>
#include <set>
#include <utility>
#include <variant>

#include "requirements/violates.h"
#include "rpcrdma/v2_cel05/properties.h"

namespace weft::rpcrdma::v2_cel05 {

namespace {

constexpr std::uint32_t kXid = 0;  // of a message that no other one answers

PropertyExchange::Octets octets_of(const Header& header) {
  PropertyExchange::Octets octets;
  xdr::XdrWriter out(octets);
  emit_header(out, header);
  return octets;
}

v2::Propsubset all_of(const v2::Propset& set) {
  v2::Propsubset all;
  for (std::size_t position = 0; position < set.size(); ++position) all.insert(position);
  return all;
}

// R2-6.1.1-13: no rule forbids it, and the later value stands.
const char* fault_of(const v2::Propset& set) {
  std::set<std::uint32_t> ids;
  for (const v2::Propval& value : set) {
    if (!ids.insert(value.which).second) return "it names a property twice";
  }
  return "";
}

}  // namespace

PropertyExchange::Octets Exchange::open() {
  if (std::exchange(told_, true)) return {};
  Connprop body{.start = make_propset(own_, kProperties)};
  body.nochg = all_of(body.start);  // R2-6.3.1-4
  return octets_of({.xid = kXid, .body = std::move(body)});
}

bool Exchange::is_mine(ConstBytes message) const {
  xdr::XdrReader in(message);
  v2::Prefix prefix;
  if (!v2::parse_prefix(in, prefix) || prefix.vers != v2::kVersion) return false;
  return prefix.htype >= static_cast<std::uint32_t>(Proc::kConnprop) &&
         prefix.htype <= static_cast<std::uint32_t>(Proc::kUpdprop);
}

PropertyExchange::Taken Exchange::take(ConstBytes message) {
  Header header;
  ConstBytes payload;
  const HeaderError error = parse_message(message, header, payload);
  if (error == HeaderError::kNone) {
    return std::visit([&](const auto& body) { return take_body(body, header); }, header.body);
  }
  const auto err = answer(header, error);
  Taken taken{.fault = header_error_str(error)};
  if (err) taken.answer = octets_of({.xid = header.xid, .vers = header.vers, .body = Error{.err = *err}});
  return taken;
}

// Properties that the message leaves out have their default values (R2-6.3.1-6).
PropertyExchange::Taken Exchange::take_body(const Connprop& body, const Header& /*header*/) {
  Properties told = kProperties.defaults;
  (void)v2::apply(body.start, kProperties, told);              // parse_message judged the values
  told.send_size = std::numeric_limits<std::uint32_t>::max();  // cel05 lacks this property: as long as Receives are
  may_change_.clear();
  for (std::size_t position = 0; position < body.start.size(); ++position) {
    if (!body.nochg.contains(position)) may_change_.insert(body.start[position].which);
  }
  const bool changed = peer_ != told;
  peer_ = std::move(told);
  return {.answer = open(), .changed = changed, .fault = fault_of(body.start)};
}

// R2-6.3.2-3, R2-6.3.3-2, R2-6.3.3-4, R2-6.3.3-9
PropertyExchange::Taken Exchange::take_body(const Reqprop& body, const Header& header) {
  return {.answer = octets_of({.xid = header.xid, .body = Resprop{.rejected = all_of(body.want)}})};
}

PropertyExchange::Taken Exchange::take_body(const Updprop& body, const Header& /*header*/) {
  Taken taken{.fault = fault_of(body.now)};
  v2::Propset now;
  for (const v2::Propval& value : body.now) {
    if (violates("R2-6.3.1-6", !may_change_.contains(value.which))) {
      taken.fault = "it changes a property that was to stay as it was";  // R2-6.1.1-11
    } else {
      now.push_back(value);
    }
  }
  if (!peer_) return taken;
  Properties told = *peer_;
  (void)v2::apply(now, kProperties, told);
  taken.changed = peer_ != told;
  peer_ = std::move(told);
  return taken;
}

// R2-6.3.3-2: this end asks for no change.
template <typename OtherBody>
PropertyExchange::Taken Exchange::take_body(const OtherBody& /*body*/, const Header& /*header*/) {
  return {.fault = "no RDMA2_REQPROP waits for it"};
}

std::unique_ptr<PropertyExchange> make_exchange(const Properties& own) {
  return std::make_unique<Exchange>(own);
}

}  // namespace weft::rpcrdma::v2_cel05
