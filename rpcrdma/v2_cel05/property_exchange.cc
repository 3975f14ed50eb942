#include "rpcrdma/v2_cel05/property_exchange.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <variant>

#include "requirements/violates.h"
#include "rpcrdma/v2_cel05/properties.h"

namespace weft::rpcrdma::v2_cel05 {

namespace {

constexpr std::uint32_t kXid = 0;          // of a message that no other one answers
constexpr std::uint32_t kReceiveSize = 1;  // RDMA2_PROPID_RBSIZ

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

// The properties in which `to` differs from `from`.
v2::Propset difference(const Properties& from, const Properties& to) {
  const v2::Propset before = make_propset(from, kProperties);
  v2::Propset set = make_propset(to, kProperties);
  std::erase_if(set, [&](const v2::Propval& value) { return std::ranges::find(before, value) != before.end(); });
  return set;
}

bool has_size(const v2::Propset& set) {
  return std::ranges::find(set, kReceiveSize, &v2::Propval::which) != set.end();
}

// The value that an answer puts in force for the property at this position of the request; null: it is rejected, or
// does not stand in one of the three sets alone (R2-6.3.3-10).
const v2::Propval* granted(const v2::Propset& want, std::size_t position, const Resprop& body) {
  const v2::Propval& wanted = want[position];
  const auto is_same = [&](const v2::Propval& value) { return value.which == wanted.which; };
  const bool is_done = body.done.contains(position), is_rejected = body.rejected.contains(position);
  const auto num_other = std::ranges::count_if(body.other, is_same);
  if (int{is_done} + int{is_rejected} + num_other != 1 || is_rejected) return nullptr;
  return is_done ? &wanted : &*std::ranges::find_if(body.other, is_same);
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
  for (std::size_t position = 0; position < body.start.size(); ++position) {
    if (!variable_.contains(body.start[position].which)) body.nochg.insert(position);  // R2-6.3.1-4
  }
  return octets_of({.xid = kXid, .body = std::move(body)});
}

bool Exchange::is_mine(ConstBytes message) const {
  xdr::XdrReader in(message);
  v2::Prefix prefix;
  if (!v2::parse_prefix(in, prefix) || prefix.vers != v2::kVersion) return false;
  std::uint32_t err = 0;
  if (asked_ && prefix.xid == asked_->xid && prefix.htype == static_cast<std::uint32_t>(Proc::kError) && in.u32(err)) {
    // No Call gets these, so a Call may have the same XID. R2-6.3-2: both say that requests are not supported.
    return err == static_cast<std::uint32_t>(Err::kInvalOption) || err == static_cast<std::uint32_t>(Err::kInvalProc);
  }
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
  if (asked_) asked_->size_before = told.receive_size;
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
  if (asked_ && has_size(now)) asked_->size_before = told.receive_size;
  taken.changed = peer_ != told;
  peer_ = std::move(told);
  return taken;
}

// R2-6.3.3-7: values that were not asked for are passed over.
PropertyExchange::Taken Exchange::take_body(const Resprop& body, const Header& header) {
  if (violates("R2-6.3.3-2", !asked_ || header.xid != asked_->xid)) return {.fault = "no RDMA2_REQPROP waits for it"};
  const auto before = peer_;
  const v2::Propset want = asked_->want;
  end_request();
  v2::Propset now;
  for (std::size_t position = 0; position < want.size(); ++position) {
    if (const v2::Propval* value = granted(want, position, body)) now.push_back(*value);
  }
  (void)v2::apply(now, kProperties, *peer_);
  return {.changed = peer_ != before};
}

// R2-6.2-4: the same as a rejection of every change.
PropertyExchange::Taken Exchange::take_body(const Error& /*body*/, const Header& /*header*/) {
  const auto before = peer_;
  takes_no_requests_ = true;
  end_request();
  return {.changed = peer_ != before};
}

template <typename OtherBody>
PropertyExchange::Taken Exchange::take_body(const OtherBody& /*body*/, const Header& /*header*/) {
  return {.fault = "it is none about properties"};
}

PropertyExchange::Taken Exchange::request(const Properties& wanted) {
  if (!peer_ || asked_ || takes_no_requests_) return {};
  v2::Propset want = difference(*peer_, wanted);
  // R2-6.3.1-4, R2-6.3.1-7
  std::erase_if(want, [this](const v2::Propval& value) { return !may_change_.contains(value.which); });
  if (want.empty()) return {};
  asked_ = {.xid = next_xid_++, .want = std::move(want), .size_before = peer_->receive_size};
  const auto before = peer_;
  if (has_size(asked_->want)) peer_->receive_size = std::min(peer_->receive_size, wanted.receive_size);  // R2-6.2.1-7
  return {.answer = octets_of({.xid = asked_->xid, .body = Reqprop{asked_->want}}), .changed = peer_ != before};
}

// Without another word of the peer its Receives are as long as before.
void Exchange::end_request() {
  peer_->receive_size = asked_->size_before;
  asked_.reset();
}

PropertyExchange::Octets Exchange::update(const Properties& now) {
  const v2::Propset set = difference(own_, now);
  const auto is_constant = [this](const v2::Propval& value) { return !variable_.contains(value.which); };
  if (!told_ || set.empty() || std::ranges::any_of(set, is_constant)) return {};
  if (now.receive_size < own_.receive_size) return {};  // R2-6.2.1-6
  own_ = now;
  return octets_of({.xid = kXid, .body = Updprop{set}});
}

std::unique_ptr<PropertyExchange> make_exchange(const Properties& own) {
  return std::make_unique<Exchange>(own);
}

}  // namespace weft::rpcrdma::v2_cel05
