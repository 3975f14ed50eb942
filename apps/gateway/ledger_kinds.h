#pragma once

#include "base/ledger.h"

// Rows of docs/security.md: what clients hold of `weft gateway` through a Ledger, over TCP and then over RDMA.
namespace weft::gateway {

inline constexpr LedgerKind kLedgerKinds[] = {
    {.name = "connections (a descriptor and about 15 KB each at rest)",
     .client = "1",
     .address = "all, until others come; with `--max-connections-per-address` that number",
     .all = "1,024, as far as the files allow; beyond them the address that holds most gives one up, also one with "
            "Calls under way",
     .place = "`ToRdmaConfig::max_connections`, `max_connections_per_address`, `ToRdma::make_place`, `ConnectionOrder`",
     .tests = "`FewPlaces.*`, `BusyPlaces.*`"},
    {.name = "newcomers that wait until a client of their own address ends for them (a descriptor each)",
     .client = "1",
     .address = "a quarter as many as it has connections, at most 128; half of its connections end for newcomers in a "
                "second, and where more would wait, the first in line goes in at once",
     .all = "256, but no more than half of the connections; fewer where the limit of open files is low",
     .place = "`ToRdmaConfig::max_waiting`, `ServerConfig::max_waiting`, `Arrivals`",
     .tests = "`ArrivalsTest.*`, `WaitingPlaces.*`"},
    {.name = "memory of Calls before their first byte arrived",
     .client = "32 KiB",
     .address = "32 MiB",
     .all = "128 MiB",
     .place = "`RecordLimits::first`, `Room`",
     .tests = "`HostileClients.AnnouncingLongRecordsTakesNothingFromOthers`"},
    {.name = "memory of Calls",
     .client = "16 MiB; 5 MiB for one record, in at most 1,024 fragments",
     .address = "32 MiB",
     .all = "128 MiB",
     .place = "`Room`, `RecordLimits::max_record`, `kMaxFragments`",
     .tests = "`HostileClients.HoldingPartsOfRecordsTakesNothingFromOthersForLong`"},
    {.name = "memory of Replies, from the Call to the last byte sent",
     .client = "14 MiB, with 1 KiB for each Call and 512 bytes for each answer of the gateway's own",
     .address = "28 MiB",
     .all = "112 MiB",
     .place = "`Room`, `kCallOverhead`, `kOwnAnswer`",
     .tests = "`HostileClients.AskingWithoutReadingIsBoundedAndEnds`"},
    {.name = "memory of Replies of more than 128 KiB without an item: listings of directories",
     .client = "2 MiB; in its turn one Reply of 1 MiB and 65 KiB at most",
     .address = "4 MiB",
     .all = "16 MiB",
     .place = "`Room`, `kShortReply`, `rooms_of_replies`",
     .tests = "`HostileClients.ListingsThatTheServerHoldsUpTakeNoRoomOfReads`"},
    {.name = "turns of Calls and Replies that wait for memory, over TCP and over RDMA",
     .client = "the next turn is of the connection that received least of it; one Call or Reply of each waits",
     .address = "and of the address that received least; smaller ones pass the first one until they have taken as much "
                "as it waits for",
     .all = "memory that all addresses together lack goes to the first one; until then other clients get only the part "
            "that each may always hold",
     .place = "`Room::serve_line`, `FairLine`",
     .tests = "`RoomTest.*`, `FairLine.*`"},
    {.name = "turns of clients whose Calls have come over TCP",
     .client = "16 Calls in a turn; the next turn is of the connection of which fewest were taken",
     .address = "and of the address of which fewest were taken",
     .all = "256 Calls, then newcomers and the server's Replies have their turn",
     .place = "`ToRdma::take_records`, `Stream::turn`, `FairLine`",
     .tests = "`ToRdmaTest.OfManyCallsThatCameAtOnce*`, `StreamWithTurns.*`, `FairLine.*`"},
    {.name = "connections over RDMA",
     .client = "1",
     .address = "all, until others come; with `--max-connections-per-address` that number",
     .all = "1,024, as far as the files allow",
     .place = "`ServerConfig::max_connections`, `max_connections_per_client`",
     .tests = "`ToTcpTest.SilentClientsKeepNoOtherOut`, `LimitsTest.AnAddressThatFillsItsPartTakesNobodyElsesPlace`"},
    {.name = "TCP connections of lost clients, whose Calls must not run twice",
     .client = "1, for 30 s",
     .address = "all, until others are lost",
     .all = "256, at most a quarter of the connections, fewer where the limit of open files is low; the address with "
            "most gives up its oldest",
     .place = "`ToTcpConfig::max_lost`, `answer_wait`, `ToTcp::keep_lost`",
     .tests = "`LostClientTest.AreBoundedInNumber`, `AnAddressThatLosesManyTakesNoPlaceOfAnother`"},
    {.name = "memory of Replies",
     .client = "32 MiB",
     .address = "64 MiB",
     .all = "256 MiB",
     .place = "`ToTcpConfig::max_replies`, `max_replies_per_address`, `Room`",
     .tests = "`RoomTest.*`"},
};

}  // namespace weft::gateway
