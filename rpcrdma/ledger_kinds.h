#pragma once

#include "base/ledger.h"

// The rows of docs/security.md for what peers hold of an RPC-over-RDMA server: one for each resource that a Ledger or a
// FairLine of this folder bounds. The figures are the defaults of `weft serve`.
namespace weft::rpcrdma {

inline constexpr LedgerKind kCallMemory{
    .name = "memory of chunks and results",
    .client =
        "4 MiB and 64 KiB, but never more than the connection leaves to its address; or one larger Call (at most "
        "13 MiB)",
    .address =
        "64 MiB (`--max-buffered-per-address`), but never more than the address leaves free, unless it holds "
        "one Call alone; 64 KiB more a connection",
    .all = "256 MiB (`--max-buffered`) and 64 KiB a connection",
    .place =
        "`ServerConfig::max_buffered_per_connection`, `max_buffered_per_client`, `max_buffered`, "
        "`min_buffered_per_connection`; `Budget`, `Ledger`",
    .tests = "`BudgetTest.*`, `LimitsTest.CallsThatMayHoldMegabytesHoldUpNoSmallOnes`"};

inline constexpr LedgerKind kFinishingMemory{
    .name = "the same memory, for Calls that came in parts and lack the rest (version 2)",
    .client = "one Call's need",
    .address = "as all",
    .all = "13 MiB more: what one Call needs at most",
    .place = "`Budget::Bounds::finishing`, `Ledger`",
    .tests = "`HostilePartsTest.WholeCallsThatWaitForEachOther`"};

inline constexpr LedgerKind kTurnsForMemory{
    .name = "turns of Calls that wait for this memory",
    .client = "the next turn is of the connection that received least of it",
    .address = "and of the address that received least; Calls that came in parts are first",
    .all = "one Call each turn; smaller Calls that pass the first one take no more than it waits for",
    .place = "`Budget`, `FairLine`",
    .tests = "`FairLine.*`, `BudgetTest.ConnectionsInLineTakeTurns`, `StalledNeighboursTest.*`"};

inline constexpr LedgerKind kTimeToMove{
    .name = "time for which a slow peer holds this memory",
    .client =
        "30 s without progress; while others wait for it 0.4 s, and what its progress earns: ten seconds for as "
        "many octets as it holds, 0.4 s ahead at most",
    .address = "",
    .all = "",
    .place = "`ServerConfig::stall_timeout`, `while_others_wait`; `EarnedTime`",
    .tests = "`EarnedTime.*`, `BudgetTest.WhileOthersWait*`, `StalledNeighboursTest.*`"};

}  // namespace weft::rpcrdma
