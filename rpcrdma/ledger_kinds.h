#pragma once

#include "base/ledger.h"

// Rows of docs/security.md: what peers hold of an RPC-over-RDMA server through a Ledger, a FairLine or a
// cache with shares of its own. The figures are the defaults of `weft serve`.
namespace weft::rpcrdma {

inline constexpr LedgerKind kLedgerKinds[] = {
    {.name = "memory of chunks and results",
     .client = "4 MiB and 64 KiB, but never more than the connection leaves to its address; or one larger Call (at "
               "most 13 MiB)",
     .address = "64 MiB (`--max-buffered-per-address`), but never more than the address leaves free, unless it holds "
                "one Call alone; 64 KiB more a connection",
     .all = "256 MiB (`--max-buffered`) and 64 KiB a connection",
     .place = "`ServerConfig::max_buffered_per_connection`, `max_buffered_per_client`, `max_buffered`, "
              "`min_buffered_per_connection`; `Budget`, `Ledger`",
     .tests = "`BudgetTest.*`, `LimitsTest.CallsThatMayHoldMegabytesHoldUpNoSmallOnes`"},
    {.name = "memory of chunks and results that is kept for Calls in parts (version 2)",
     .client = "one Call's need",
     .address = "as all",
     .all = "13 MiB more where the server speaks a version that has Calls in parts: the most that one Call needs",
     .place = "`Budget::Bounds::finishing`, `Ledger`",
     .tests = "`HostilePartsTest.WholeCallsThatWaitForEachOther`"},
    {.name = "memory of results of Calls that may wait for a disk (READDIR, READDIRPLUS)",
     .client = "64 KiB; more as long as it leaves as much to its address",
     .address = "64 KiB a connection, and 16 MiB, but never more than the address leaves free",
     .all = "64 KiB a connection, and 64 MiB: a quarter of the memory above; Calls that came in parts (version 2), and "
            "Calls that need more than an eighth of what an address has, have the memory above",
     .place = "`ServedProgram::results_of`, `BudgetShare::take_slow`, `Ledger`",
     .tests = "`BudgetTest.SlowCallsLeaveMemoryToTheOthersOfTheirAddress`, `LargeSlowCallsWait*`"},
    {.name = "turns of Calls that wait for this memory",
     .client = "the next turn is of the connection that received least of it",
     .address = "and of the address that received least; Calls that came in parts are first",
     .all = "one Call each turn; smaller Calls that pass the first one take no more than it waits for",
     .place = "`Budget`, `FairLine`",
     .tests = "`FairLine.*`, `BudgetTest.ConnectionsInLineTakeTurns`, `StalledNeighbours.*`"},
    {.name = "time for which a slow peer holds this memory",
     .client = "30 s without progress; while others wait for it 0.4 s, and what its progress earns: ten seconds for as "
               "many octets as it holds, 0.4 s ahead at most",
     .address = "a peer that has not moved as many octets as it holds has at most the part of 0.5 s in which all that "
                "wait have their turns, but at least 50 ms",
     .all = "the same while less than a quarter is free",
     .place = "`ServerConfig::stall_timeout`, `while_others_wait`; `EarnedTime`",
     .tests = "`EarnedTime.*`, `BudgetTest.WhileOthersWait*`, `InACrowd*`, `StalledNeighbours.*`"},
    {.name = "Receives of `--inline` bytes (4 KiB)",
     .client =
         "8 at first (fewer where the device has too few for `--max-connections`; a number that needs more than it has "
         "is refused at start); beyond them as many as it leaves to its address, at most `--credits` (128) and 2",
     .address = "8 a connection, and as many as it leaves free",
     .all = "8 a connection and 16 MiB",
     .place = "`ReceivePlan`, `ReceivePool::grown`, `ServerConfig::credits`, `max_shared_receives`",
     .tests = "`ReceivePlan.*`, `ReceivePoolTest.GrantsThatGrewLeaveReceivesForConnectionsToCome`, "
              "`ServerPlacesTest.HundredsRestBesideOneThatWorks`, `ScaleTest.WhenReceivesAreLowGrantsFall`"},
    {.name = "connections (a descriptor and about 10 KB each at rest)",
     .client = "1",
     .address = "all, until others come; with `--max-connections-per-address` that number",
     .all = "1,024, or half of the descriptors that the program does not need for itself (`--max-connections`); beyond "
            "them the address that holds most gives one up, also one with Calls under way; a number that the limit of "
            "open files cannot hold is refused at start",
     .place = "`ConnectionTable`, `ConnectionOrder`, `ServerConfig::max_connections_per_client`, `max_connections`",
     .tests = "`ServerPlacesTest.*`, `LimitsTest.SilentConnectionsGiveWayToClientsOfTheirAddress`, "
              "`AnAddressThatFillsItsPartTakesNobodyElsesPlace`"},
    {.name = "newcomers that wait until a connection of their own address ends for them (a descriptor each)",
     .client = "1",
     .address = "a quarter as many as it has connections, at most 128; half of its connections end for newcomers in a "
                "second, and where more would wait, the first in line goes in at once",
     .all = "256, but no more than half of the connections; fewer where the limit of open files is low",
     .place = "`ServerConfig::max_waiting`, `Arrivals`",
     .tests = "`ArrivalsTest.*`, `ServerPlacesTest.NewcomersOfAFullAddressWait*`, "
              "`ANewcomerThatFindsTheLineFull*`"},
    {.name = "connections that have ended, while their queue pairs are flushed (0.1 s; `--backend ibv` and `--progress "
             "threads=N` alone)",
     .client = "1",
     .address = "as many as its connections, at least 64",
     .all = "twice all connections, at least 128",
     .place = "`Flushing`, `kMinFlushing`",
     .tests = "`LimitsTest.ConnectionsThatEndTogetherTakeNoPlaceOfOthers`, `Flushing.*`"},
    {.name = "kept Replies",
     .client = "as its address",
     .address = "half as many Calls as it leaves free: 5,461 if it is alone",
     .all = "16,384 Calls, 16 MiB, for 120 s; an address without Replies takes the oldest one of the address that has "
            "most, or its oldest running Call, which would then run twice if it came again",
     .place = "`DuplicateRequestLimits`, `DuplicateRequestCache`, `Ledger`",
     .tests = "`DuplicateRequestCacheTest.AFloodOfOneAddressDropsItsOwnRepliesOnly`, "
              "`CallsOfManyAddressesThatNeverEndLeaveRoomForThoseOfAnother`"},
};

}  // namespace weft::rpcrdma
