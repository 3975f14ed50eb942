#pragma once

#include "base/ledger.h"

// Rows of docs/security.md: what peers hold of the soft RNIC through the Ledgers of Holdings, and what they spend of
// its rounds (RoundShares). The figures are the defaults of SoftConfig.
namespace weft::verbs::soft {

inline constexpr LedgerKind kLedgerKinds[] = {
    {.name = "connections without a whole MPA Request",
     .client = "1",
     .address = "as all",
     .all = "1,024, for 5 s; beyond them the oldest of the address that has most is reset",
     .place = "`SoftConfig::max_silent`, `request_timeout`, `Holdings`",
     .tests = "`HoldingsTest.AnAddressLosesItsOwn`, `e2e.silent_clients`"},
    {.name = "connections that are closing",
     .client = "1",
     .address = "as all",
     .all = "1,024, for 10 s; beyond them the oldest of the address that has most is reset",
     .place = "`SoftConfig::max_lingering`, `close_timeout`, `Holdings`",
     .tests = "`HoldingsTest.AnAddressLosesItsOwn`, `LingeringTest.OnlySoManyPeersCanHoldUpTheirEnd`"},
    {.name = "parts of FPDUs",
     .client = "65,535 bytes; 30 s without another byte, one second in all if it does not begin with a header of DDP "
               "and RDMAP",
     .address = "as all",
     .all = "64 MiB; beyond them the oldest of the address that has most is reset",
     .place = "`SoftConfig::max_parked`, `StreamConfig::part_timeout`, `Holdings`",
     .tests = "`HoldingsTest.AnAddressLosesItsOwn`, `SecurityLimits.PartsOfFpdusAreHeldUpToABound`, "
              "`Stream.AnFpduThatStopsInTheMiddle*`"},
    {.name = "time of the loop",
     .client =
         "in each round of turns its part of what its address may move, at least 64 KiB, at most 3 MiB, and twice "
         "as much that it reads; an FPDU that comes counts as 1 KiB more",
     .address = "its part of 4 MiB a round, at least 64 KiB; its other connections wait for the next round",
     .all = "4 MiB a round; beyond them, 64 KiB for each connection that has something new; 8 turns of the RPC server "
            "within one `process()`",
     .place = "`RoundShares`; `kMaxTurns`, `kPulledPerTurn` in `rpcrdma/server.cc`",
     .tests =
         "`RoundSharesTest.*`, `SecurityLimits.ConnectionsOfOneAddressShareARound`, "
         "`FloodsOfOneAddressHoldUpNoConnectionForLong`, `APingIsAnsweredBesideABulkStream`, "
         "`StreamSocketTest.ATurnMovesNoMoreThanItsOctets`, `HostileClientTest.AFloodInOneTurnTakesOthersNothing`"},
};

}  // namespace weft::verbs::soft
