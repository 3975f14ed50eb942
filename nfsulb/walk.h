#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nfsulb/schema.h"
#include "rpcrdma/binding.h"

// The interpreter of the schemas. It answers the questions of rpcrdma::Binding for any Program by one walk over the
// octets. It never reads outside the octets, and the types' own nesting bounds its recursion.
namespace weft::nfsulb {

// find_operation returns the row with this number, nullptr if the table has none.
const Operation* find_operation(std::span<const Operation> table, std::uint32_t number);

// The functions from here on implement rpcrdma::Binding's functions of the same names. For garbage, functions with
// outputs leave them empty.
rpcrdma::Walked walk_arguments(const Program& program, std::uint32_t procedure, ConstBytes args,
                               std::span<const std::size_t> reduced, std::vector<rpcrdma::EligibleItem>& items);
rpcrdma::Walked walk_results(const Program& program, std::uint32_t procedure, ConstBytes results,
                             std::span<const std::uint32_t> reduced,
                             std::vector<std::optional<rpcrdma::EligibleItem>>& items);
rpcrdma::Walked bound_reply(const Program& program, std::uint32_t procedure, ConstBytes args,
                            std::span<const std::size_t> reduced, const rpcrdma::ReplyLimits& limits,
                            rpcrdma::ReplyBound& bound);
bool has_result_items(const Program& program, std::uint32_t procedure);
bool is_idempotent(const Program& program, std::uint32_t procedure, ConstBytes args,
                   std::span<const std::size_t> reduced);

// ListedOperation: an operation of a COMPOUND, and where its arguments or results begin within the COMPOUND. For
// another procedure: the procedure, and 0.
struct ListedOperation {
  const Operation* operation = nullptr;
  std::size_t position = 0;
};

// list_arguments and list_results name the operations, for tools. They list the operations before an unknown or broken
// one, too. reduced: as of walk_arguments and walk_results.
rpcrdma::Walked list_arguments(const Program& program, std::uint32_t procedure, ConstBytes args,
                               std::span<const std::size_t> reduced, std::vector<ListedOperation>& operations);
rpcrdma::Walked list_results(const Program& program, std::uint32_t procedure, ConstBytes results,
                             std::span<const std::uint32_t> reduced, std::vector<ListedOperation>& operations);

// binding_of makes the Binding of a program.
template <const Program& kProgram>
consteval rpcrdma::Binding binding_of(std::uint32_t program, std::uint32_t version) {
  rpcrdma::Binding binding;
  binding.program = program;
  binding.version = version;
  binding.walk_arguments = [](std::uint32_t procedure, ConstBytes args, std::span<const std::size_t> reduced,
                              std::vector<rpcrdma::EligibleItem>& items) {
    return nfsulb::walk_arguments(kProgram, procedure, args, reduced, items);
  };
  binding.walk_results = [](std::uint32_t procedure, ConstBytes results, std::span<const std::uint32_t> reduced,
                            std::vector<std::optional<rpcrdma::EligibleItem>>& items) {
    return nfsulb::walk_results(kProgram, procedure, results, reduced, items);
  };
  binding.bound_reply = [](std::uint32_t procedure, ConstBytes args, std::span<const std::size_t> reduced,
                           const rpcrdma::ReplyLimits& limits, rpcrdma::ReplyBound& bound) {
    return nfsulb::bound_reply(kProgram, procedure, args, reduced, limits, bound);
  };
  binding.has_result_items = [](std::uint32_t procedure) { return nfsulb::has_result_items(kProgram, procedure); };
  binding.is_idempotent = [](std::uint32_t procedure, ConstBytes args, std::span<const std::size_t> reduced) {
    return nfsulb::is_idempotent(kProgram, procedure, args, reduced);
  };
  return binding;
}

}  // namespace weft::nfsulb
