#include "nfsulb/schemas.h"

// The Network Status Monitor, version 1 (X/Open XNFS). U1-5.1-02: nothing is eligible.
namespace weft::nfsulb {
namespace {

using namespace xdr;

constexpr Type sm_name = string<1024>;
constexpr Type my_id = structure<sm_name, uint32, uint32, uint32>;
constexpr Type mon_id = structure<sm_name, my_id>;
constexpr Type mon = structure<mon_id, opaque_fixed<16>>;
constexpr Type stat_chge = structure<sm_name, uint32>;
constexpr Type sm_stat = uint32;
constexpr Type sm_stat_res = structure<uint32, uint32>;

using enum Runs;
constexpr Operation kNsmProcedures[] = {
    operation(0, "NULL", kAgain, void_type, void_type),       //
    operation(1, "STAT", kAgain, sm_name, sm_stat_res),       //
    operation(2, "MON", kOnce, mon, sm_stat_res),             //
    operation(3, "UNMON", kOnce, mon_id, sm_stat),            //
    operation(4, "UNMON_ALL", kOnce, my_id, sm_stat),         //
    operation(5, "SIMU_CRASH", kOnce, void_type, void_type),  //
    operation(6, "NOTIFY", kOnce, stat_chge, void_type),      //
};

}  // namespace

constexpr Program kNsm1 = {kNsmProcedures};

}  // namespace weft::nfsulb
