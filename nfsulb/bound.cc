#include "nfsulb/bound.h"

#include <algorithm>
#include <bit>

#include "nfsulb/nfs4_attributes.h"
#include "rpcrdma/rpc_message.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::nfsulb {
namespace {

using rpcrdma::Walked;
using rpcrdma::xdr::round_up;

constexpr std::size_t kWord = 4;
constexpr std::size_t kBitmapWords = 3;  // for all existing attributes, operations and notifications

}  // namespace

std::size_t Bounder::estimate(std::size_t octets) {
  bound_.is_estimate = true;
  return octets;
}

std::size_t Bounder::octets_of_opaque(const Type& type, const CallNotes& notes) {
  switch (type.bound) {
    case Bound::kText: return kWord + estimate(round_up(limits_.max_text));
    case Bound::kUnbounded: {
      const std::size_t assumed = type.assumed != 0 ? type.assumed : limits_.max_unbounded;
      return kWord + estimate(round_up(std::min(assumed, limits_.max_unbounded)));
    }
    case Bound::kLength: return kWord + round_up(notes.length);
    case Bound::kAttributes: return kWord + octets_of_attributes(notes);
    default: return kWord + round_up(type.max);
  }
}

std::size_t Bounder::octets_of_eligible(const Type& type, const CallNotes& notes) {
  std::size_t item = type.max;
  if (type.bound == Bound::kCount) item = std::min<std::size_t>(item, notes.count);  // U1-3-03
  if (type.bound == Bound::kText) item = estimate(limits_.max_text);                 // U1-3-05
  bound_.items.push_back(item);
  return kWord;
}

std::size_t Bounder::octets_of_elements(const Type& type, const CallNotes& notes) {
  // In a list, a word before each element says that the element is there. The first kWord below is the count of an
  // array, or the word that ends a list.
  const std::size_t each = octets(*type.element, notes) + (type.kind == Kind::kList ? kWord : 0);
  switch (type.bound) {
    case Bound::kCount: return kWord + each * notes.count;
    case Bound::kWords: return kWord + each * std::max<std::size_t>(notes.words, kBitmapWords);
    case Bound::kUnbounded: {
      if (type.assumed == 0) return kWord + estimate(round_up(limits_.max_unbounded));
      return kWord + estimate(round_up(std::min(each * type.assumed, limits_.max_unbounded)));
    }
    default: return kWord + each * type.max;
  }
}

std::size_t Bounder::octets_of_bounded(const Type& type, const CallNotes& notes) {
  if (type.bound == Bound::kUnbounded) return estimate(round_up(limits_.max_unbounded));
  is_counted_ = true;
  const std::size_t counted = std::size_t{notes.count} + type.assumed;
  const std::size_t whole = std::max(counted, octets(*type.least, notes));
  return type.bound == Bound::kAboutCount ? estimate(whole) : whole;
}

std::size_t Bounder::octets_of_arms(const Type& type, const CallNotes& notes) {
  std::size_t largest = type.element != nullptr ? octets(*type.element, notes) : 0;
  for (const Arm& arm : type.arms) largest = std::max(largest, octets(*arm.type, notes));
  return kWord + largest;
}

std::size_t Bounder::octets_of_attributes(const CallNotes& notes) {
  std::size_t sum = notes.other_attributes ? estimate(round_up(limits_.max_unbounded)) : 0;
  for (std::size_t i = 0; i < notes.attributes.size(); ++i) {
    for (std::uint32_t word = notes.attributes[i]; word != 0; word &= word - 1) {
      const Type* type = attribute_type(i * 32 + static_cast<std::size_t>(std::countr_zero(word)));
      sum += type != nullptr ? octets(*type, notes) : estimate(round_up(limits_.max_unbounded));
    }
  }
  return sum;
}

std::size_t Bounder::octets(const Type& type, const CallNotes& notes) {
  switch (type.kind) {
    case Kind::kFixed: return type.max;
    case Kind::kOpaque: return octets_of_opaque(type, notes);
    case Kind::kEligible: return octets_of_eligible(type, notes);
    case Kind::kArray:
    case Kind::kList: return octets_of_elements(type, notes);
    case Kind::kBounded: return octets_of_bounded(type, notes);
    case Kind::kUnion: return octets_of_arms(type, notes);
    case Kind::kOperations: return kWord + operations_;
    case Kind::kStruct: break;
  }
  std::size_t sum = 0;
  for (const Type* field : type.fields) sum += octets(*field, notes);
  return sum;
}

void Bounder::add_operation(const Operation& operation, const CallNotes& notes) {
  runs_.add(operation);
  operations_ += kWord + octets(*operation.results, notes);
  may_retry_ = may_retry_ || operation.retry;
}

// U2-5.2.2-1: what the session leaves to the results of a Reply, in whole words of XDR.
std::size_t Bounder::max_results() const {
  const std::size_t header = rpcrdma::kPlainReplyHeader + round_up(limits_.max_verf);
  return (limits_.max_reply - std::min(header, limits_.max_reply)) / kWord * kWord;
}

void Bounder::limit_by_session() {
  // U1-6.2.2-01: ca_maxresponsesize is the absolute maximum, so a bound that it cuts is not an estimate any more.
  const std::size_t most = max_results();
  std::size_t whole = bound_.rest;
  for (const std::size_t item : bound_.items) whole += round_up(item);
  if (whole <= most) return;
  bound_.is_estimate = false;
  bound_.rest = std::min(bound_.rest, most);
  for (std::size_t& item : bound_.items) item = std::min(item, most);
}

void Bounder::finish(const Operation& procedure, const CallNotes& notes, std::uint32_t minor_version, Walked walked) {
  bound_.rest = octets(*procedure.results, notes);
  const bool known = walked == Walked::kWhole;
  // U1-6.2.1-03, -04: only NFSv4.0, and never a COMPOUND that must not run twice.
  bound_.may_retry = known && (runs_.any ? may_retry_ && runs_.all_idempotent && minor_version == 0 : procedure.retry);
  // Beyond RFC 8267 section 3.1 (U1-3.1-06): a server may send more than the Call allows, and a repeated Call with more
  // room does no harm. This does not hold in a session: there the operations ran, and their slot has to be recovered
  // (U1-6.6-04).
  const bool runs_again = runs_.any ? runs_.all_idempotent && !runs_.in_session : procedure.idempotent;
  bound_.may_retry_once = known && runs_again && (is_counted_ || bound_.is_estimate);
  if (minor_version > 0 && limits_.max_reply > 0) limit_by_session();
}

}  // namespace weft::nfsulb
