#include "rpcrdma/v2_wg07/property_exchange.h"

#include <utility>
#include <variant>

#include "requirements/violates.h"
#include "rpcrdma/v2_wg07/properties.h"

namespace weft::rpcrdma::v2_wg07 {

namespace {

constexpr std::uint32_t kXid = 0;  // of a message that no other one answers (W2-6.3.4-3)

PropertyExchange::Octets octets_of(const Header& header) {
  PropertyExchange::Octets octets;
  xdr::XdrWriter out(octets);
  emit_header(out, header);
  return octets;
}

PropertyExchange::Taken refuse(const Header& header, Err err, const char* fault) {
  return {.answer = octets_of({.xid = header.xid, .vers = header.vers, .body = Error{.err = err}}), .fault = fault};
}

}  // namespace

Exchange::Exchange(Properties own) : PropertyExchange(std::move(own)), heard_(kProperties.defaults) {}

PropertyExchange::Octets Exchange::open() {
  if (std::exchange(told_, true)) return {};
  return octets_of({.xid = kXid, .body = ConnpropFinal{make_propset(own_, kProperties)}});
}

bool Exchange::is_mine(ConstBytes message) const {
  xdr::XdrReader in(message);
  v2::Prefix prefix;
  if (!v2::parse_prefix(in, prefix) || prefix.vers != v2::kVersion) return false;
  const auto type = static_cast<Htype>(prefix.htype);
  if (type == Htype::kConnpropMiddle || type == Htype::kConnpropFinal) return true;
  return is_between_ && type != Htype::kGrant && type != Htype::kError;
}

PropertyExchange::Taken Exchange::take(ConstBytes message) {
  Header header;
  ConstBytes payload;
  const HeaderError error = parse_message(message, header, payload);
  const auto* middle = std::get_if<ConnpropMiddle>(&header.body);
  const auto* final = std::get_if<ConnpropFinal>(&header.body);
  if (violates("W2-6.3.3-3", middle == nullptr && final == nullptr)) {
    return refuse(header, Err::kInvalCont, "it stands inside the messages of the peer's properties");
  }
  if (violates("W2-6.3.4-2", peer_.has_value())) {
    return refuse(header, Err::kInvalCont, "the peer has told its properties before");
  }
  if (error != HeaderError::kNone) {
    return refuse(header, answer(header, error).value_or(Err::kBadXdr), header_error_str(error));
  }
  return take_set(final != nullptr ? final->props : middle->props, final != nullptr);
}

PropertyExchange::Taken Exchange::take_set(const v2::Propset& set, bool is_final) {
  (void)v2::apply(set, kProperties, heard_);  // parse_message judged the values
  is_between_ = !is_final;
  if (!is_final) return {};
  peer_ = std::move(heard_);
  return {.answer = open(), .changed = true};
}

std::unique_ptr<PropertyExchange> make_exchange(const Properties& own) {
  return std::make_unique<Exchange>(own);
}

}  // namespace weft::rpcrdma::v2_wg07
