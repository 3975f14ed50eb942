#include "nfsulb/nfs4_0.h"
#include "nfsulb/nfs4_1.h"
#include "nfsulb/nfs4_2.h"
#include "nfsulb/nfs4_compound.h"
#include "nfsulb/schemas.h"

// NFS version 4, all minor versions: NULL and COMPOUND (RFC 7863).
namespace weft::nfsulb {
namespace {

using namespace xdr;
using enum Runs;

constexpr auto kNfs4Operations =
    join(v4_0::kOperations, v4_1::kOperations, v4_2::kOperations,
         std::to_array<Operation>({operation(kIllegal, "ILLEGAL", kAgain, void_type, nfsstat4)}));
constexpr Type nfs_ops = operations_of(kNfs4Operations);

constexpr Type COMPOUND4args = structure<compound_tag, minorversion, nfs_ops>;
constexpr Type COMPOUND4res = structure<nfsstat4, same_tag, nfs_ops>;

constexpr Operation kNfs4Procedures[] = {
    operation(0, "NULL", kAgain, void_type, void_type),
    operation(1, "COMPOUND", kAgain, COMPOUND4args, COMPOUND4res),
};

}  // namespace

constexpr Program kNfs4 = {kNfs4Procedures};

}  // namespace weft::nfsulb
