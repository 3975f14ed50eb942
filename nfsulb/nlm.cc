#include "nfsulb/schemas.h"

// The Network Lock Manager, versions 1 and 3 (X/Open XNFS) and 4 (RFC 1813 appendix II). U1-5.1-02: nothing is
// eligible.
namespace weft::nfsulb {
namespace {

using namespace xdr;

constexpr Type netobj = opaque<1024>;
constexpr Type caller_name = string<1024>;  // LM_MAXSTRLEN
constexpr Type notified = string<1025>;     // LM_MAXNAMELEN
// The cookie of a Call comes back in its Reply.
constexpr Type call_cookie = noted<netobj, Note::kLength>;
constexpr Type same_cookie = bounded<netobj, Bound::kLength>;

// Versions 1 and 3 have offsets and lengths of 32 bits, version 4 has 64 bits.
template <const Type& kOffset>
constexpr Type holder = structure<boolean, uint32, netobj, kOffset, kOffset>;
template <const Type& kOffset>
constexpr Type lock = structure<caller_name, netobj, netobj, uint32, kOffset, kOffset>;
template <const Type& kOffset>
constexpr Type lockargs = structure<call_cookie, boolean, boolean, lock<kOffset>, boolean, uint32>;
template <const Type& kOffset>
constexpr Type cancargs = structure<call_cookie, boolean, boolean, lock<kOffset>>;
template <const Type& kOffset>
constexpr Type testargs = structure<call_cookie, boolean, lock<kOffset>>;
template <const Type& kOffset>
constexpr Type unlockargs = structure<call_cookie, lock<kOffset>>;
constexpr Type shareargs = structure<call_cookie, structure<caller_name, netobj, netobj, uint32, uint32>, boolean>;
constexpr Type notify = structure<notified, uint32>;

constexpr std::uint32_t kDenied = 1;
template <const Type& kOffset>
constexpr Type testres = structure<same_cookie, union_or<void_type, arm<kDenied, holder<kOffset>>>>;
constexpr Type res = structure<same_cookie, uint32>;
constexpr Type shareres = structure<same_cookie, uint32, uint32>;

using enum Runs;
template <const Type& kOffset>
constexpr Operation kNlmProcedures[] = {
    operation(0, "NULL", kAgain, void_type, void_type),
    operation(1, "TEST", kAgain, testargs<kOffset>, testres<kOffset>),
    operation(2, "LOCK", kOnce, lockargs<kOffset>, res),
    operation(3, "CANCEL", kOnce, cancargs<kOffset>, res),
    operation(4, "UNLOCK", kOnce, unlockargs<kOffset>, res),
    operation(5, "GRANTED", kOnce, testargs<kOffset>, res),
    operation(6, "TEST_MSG", kAgain, testargs<kOffset>, void_type),
    operation(7, "LOCK_MSG", kOnce, lockargs<kOffset>, void_type),
    operation(8, "CANCEL_MSG", kOnce, cancargs<kOffset>, void_type),
    operation(9, "UNLOCK_MSG", kOnce, unlockargs<kOffset>, void_type),
    operation(10, "GRANTED_MSG", kOnce, testargs<kOffset>, void_type),
    operation(11, "TEST_RES", kAgain, testres<kOffset>, void_type),
    operation(12, "LOCK_RES", kOnce, res, void_type),
    operation(13, "CANCEL_RES", kOnce, res, void_type),
    operation(14, "UNLOCK_RES", kOnce, res, void_type),
    operation(15, "GRANTED_RES", kOnce, res, void_type),
    // Not in version 1.
    operation(20, "SHARE", kOnce, shareargs, shareres),
    operation(21, "UNSHARE", kOnce, shareargs, shareres),
    operation(22, "NM_LOCK", kOnce, lockargs<kOffset>, res),
    operation(23, "FREE_ALL", kOnce, notify, void_type),
};
constexpr std::size_t kNumProcedures1 = 16;

}  // namespace

constexpr Program kNlm1 = {std::span(kNlmProcedures<uint32>).first(kNumProcedures1)};
constexpr Program kNlm3 = {kNlmProcedures<uint32>};
constexpr Program kNlm4 = {kNlmProcedures<uint64>};

}  // namespace weft::nfsulb
