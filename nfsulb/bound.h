#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "nfsulb/schema.h"
#include "rpcrdma/binding.h"

// The largest size of a Reply, from the types of its results and from its Call.
namespace weft::nfsulb {

// CallNotes holds the values in the arguments of one procedure or operation that bound its results (Note).
struct CallNotes {
  std::uint32_t count = 0;
  std::uint32_t length = 0;
  std::uint32_t words = 0;
  std::array<std::uint32_t, 3> attributes{};
  bool other_attributes = false;  // bits without an attribute in the protocol
};

// OperationRuns: whether the operations of a COMPOUND may run twice.
struct OperationRuns {
  bool any = false;
  bool in_session = false;  // the first one is [CB_]SEQUENCE, whose slot remembers the Reply
  bool all_idempotent = true;

  void add(const Operation& operation) {
    if (!std::exchange(any, true)) in_session = operation.sequence;
    all_idempotent = all_idempotent && operation.idempotent;
  }
};

// Bounder fills a ReplyBound: first each operation of a COMPOUND, then the procedure.
class Bounder {
 public:
  // `limits` and `bound` outlive it.
  Bounder(const rpcrdma::ReplyLimits& limits, rpcrdma::ReplyBound& bound) : limits_(limits), bound_(bound) {}

  void add_operation(const Operation& operation, const CallNotes& notes);
  void finish(const Operation& procedure, const CallNotes& notes, std::uint32_t minor_version, rpcrdma::Walked walked);

 private:
  std::size_t octets(const Type& type, const CallNotes& notes);
  std::size_t octets_of_opaque(const Type& type, const CallNotes& notes);
  std::size_t octets_of_eligible(const Type& type, const CallNotes& notes);
  std::size_t octets_of_elements(const Type& type, const CallNotes& notes);
  std::size_t octets_of_bounded(const Type& type, const CallNotes& notes);
  std::size_t octets_of_arms(const Type& type, const CallNotes& notes);
  std::size_t octets_of_attributes(const CallNotes& notes);
  std::size_t estimate(std::size_t octets);
  std::size_t max_results() const;
  void limit_by_session();

  const rpcrdma::ReplyLimits& limits_;
  rpcrdma::ReplyBound& bound_;
  std::size_t operations_ = 0;  // octets of the operations' results
  OperationRuns runs_;
  bool may_retry_ = false;
  bool is_counted_ = false;  // a count limits the server
};

}  // namespace weft::nfsulb
