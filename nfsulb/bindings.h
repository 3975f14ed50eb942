#pragma once

#include <cstdint>
#include <span>

#include "nfsulb/schema.h"
#include "rpcrdma/binding.h"

namespace weft::nfsulb {

// BoundProgram: an Upper-Layer Binding and the schema that it walks.
struct BoundProgram {
  rpcrdma::Binding binding;
  const Program* schema = nullptr;
};

// bound_programs lists all programs and versions that have a binding here.
std::span<const BoundProgram> bound_programs();

// find_binding returns the Upper-Layer Binding of a program and version of the NFS family, nullptr if there is none.
// The binding of the NFSv4 callback program also holds for another program number that a client chose for it.
const rpcrdma::Binding* find_binding(std::uint32_t program, std::uint32_t version);

}  // namespace weft::nfsulb
