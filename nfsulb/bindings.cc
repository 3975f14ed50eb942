#include "nfsulb/bindings.h"

#include "nfsulb/nfs3.h"
#include "nfsulb/programs.h"
#include "nfsulb/schemas.h"
#include "nfsulb/walk.h"

namespace weft::nfsulb {
namespace {

constexpr rpcrdma::Binding kNfs3Binding = binding_of<kNfs3>(kNfsProgram, kNfsV3);

constexpr BoundProgram kBoundPrograms[] = {
    {binding_of<kNfs2>(kNfsProgram, kNfsV2), &kNfs2},
    {kNfs3Binding, &kNfs3},
    {binding_of<kNfs4>(kNfsProgram, kNfsV4), &kNfs4},
    {binding_of<kMount1>(kMountProgram, kMountV1), &kMount1},
    {binding_of<kMount2>(kMountProgram, kMountV2), &kMount2},
    {binding_of<kMount3>(kMountProgram, kMountV3), &kMount3},
    {binding_of<kNlm1>(kNlmProgram, kNlmV1), &kNlm1},
    {binding_of<kNlm3>(kNlmProgram, kNlmV3), &kNlm3},
    {binding_of<kNlm4>(kNlmProgram, kNlmV4), &kNlm4},
    {binding_of<kNsm1>(kNsmProgram, kNsmV1), &kNsm1},
    {binding_of<kNfsAcl2>(kNfsAclProgram, kNfsAclV2), &kNfsAcl2},
    {binding_of<kNfsAcl3>(kNfsAclProgram, kNfsAclV3), &kNfsAcl3},
    {binding_of<kNfs4Callback>(kNfs4CallbackProgram, kNfs4CallbackV1), &kNfs4Callback},
};

}  // namespace

std::span<const BoundProgram> bound_programs() {
  return kBoundPrograms;
}

const rpcrdma::Binding* find_binding(std::uint32_t program, std::uint32_t version) {
  for (const BoundProgram& bound : kBoundPrograms) {
    if (bound.binding.program == program && bound.binding.version == version) return &bound.binding;
  }
  return nullptr;
}

const rpcrdma::Binding& nfs3_binding() {
  return kNfs3Binding;
}

}  // namespace weft::nfsulb
