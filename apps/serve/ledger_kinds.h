#pragma once

#include "base/ledger.h"

// Rows of docs/security.md: what clients hold of `weft serve` through a Ledger or a FairLine, beside what they hold of
// its RPC-over-RDMA server.
namespace weft::serve {

inline constexpr LedgerKind kLedgerKinds[] = {
    {.name = "tasks that wait for a disk worker",
     .client = "one; beyond, as many as it leaves to its address",
     .address = "as many as it leaves free, at most 4,096 of each lane",
     .all = "8,192 of each lane, and one for each connection; more get NFS3ERR_JUKEBOX",
     .place = "`DiskPoolConfig::max_queued_per_group`, `max_queued`",
     .tests = "`DiskPoolTest.OneGroupOfAddressesFillsItsPartOfTheQueueOnly`, "
              "`TheQueueIsBoundedAndARefusedTaskStaysTheCallers`"},
    {.name = "time of the disk workers",
     .client = "its turn among the connections of its address, by the microseconds and the bytes that its tasks cost",
     .address = "the same among the addresses; 112 of the 128 workers that sync",
     .all = "`--disk-workers` (4) workers, and 128 that sync; fewer that sync where the limit of open files is low",
     .place = "`FairLine`, `DiskPoolConfig`",
     .tests = "`FairLine.*`, `DiskPoolTest.WorkersAreSharedByTheTimeThatTasksTake`, `OctetsCostTooWhenTheyTakeNoTime`, "
              "`AmongNewcomersTheOneThatAsksForLittleIsNext`, `DearTasks.*`, "
              "`DiskWorkTest.AClientThatHasAllDiskWorkersDelaysAnotherByOneTask`, `AHeldFsyncHoldsNobodyElse`, "
              "`ChangesDoNotWaitForAListingOfAnotherClient`"},
    {.name = "searches of the tree for moved files",
     .client = "its turn: the next search is for the files of all that wait, one file of each client and more while "
               "there is room (1,024)",
     .address = "as its clients, at most half of the 1,024",
     .all = "one at a time, of at most 20,000,000 entries; others get NFS3ERR_JUKEBOX",
     .place = "`TreeConfig::max_search_entries`, `SearchWishes`",
     .tests = "`SharesTest.OneSearchIsForAllThatWait`, `SearchWishes.EachClientMayHaveOne`, "
              "`HandleLifeTest.ASearchThatIsTooLongSaysLaterNotStale`, `ManyThreadsThatMissFindTheFileTogether`, "
              "`NoLockIsHeldDuringASearch`"},
    {.name = "open files",
     .client = "all, until others need them: then the client with most files, of the address with most files, closes "
               "the one used longest ago",
     .address = "the same",
     .all = "1,024, or fewer where the limit of open files is low: two descriptors for each, of those that tasks and "
            "connections leave",
     .place = "`BackendConfig::max_open_files`, `SharedOrder`",
     .tests = "`SharesTest.AClientThatOpensManyFilesClosesItsOwn`, `SharedOrderTest.*`, "
              "`IoTest.FewDescriptorsServeManyFiles`, `EdgesTest.OpenFilesGoInTheOrderOfTheirLastUse`"},
    {.name = "files that lost their place before their writes were synced",
     .client = "as its address",
     .address = "one of its own, and a quarter of the shared ones. Beyond them its Calls close its own files",
     .all = "an eighth of the open files for all addresses to share, and at most as many again for the one of each "
            "address. Beyond them a Call of an address without open files syncs the file that it replaces",
     .place = "`EvictedFiles`, `Ledger`",
     .tests = "`SharesTest.ACallThatNeedsAPlaceSyncsNoFileOfOthers`, "
              "`DiskWorkTest.ACallThatTakesAPlaceOfAnotherFileWaitsForNoSync`"},
    {.name = "names in the index of handles",
     .client = "all, until others need them, as with open files",
     .address = "the same",
     .all =
         "524,288 places of at most 650 bytes: one for a file with its longest name, and one more for every 128 bytes "
         "of its other names, 96 bytes added for each; and about 450 bytes for each client that named one, and for "
         "each address whose clients did before they ended",
     .place = "`TreeConfig::max_indexed_files`, `SharedOrder`",
     .tests = "`SharesTest.AClientThatNamesManyFilesForgetsItsOwn`, `SharedOrder.ALargeTableIsSharedToo`, "
              "`HoldersAreClientsAndAddressesThatHaveKeys`, `PathIndexTest.IsBounded`, "
              "`PathIndexTest.LongNamesTakeMorePlaces`, `PathIndexTest.ANameOfAnotherClientTakesNoPlaceOfTheOwner`"},
    {.name = "MOUNT connections",
     .client = "1, with a record of 4,096 bytes and one Call under way, for 30 s of silence",
     .address = "all, until others connect",
     .all =
         "128, or about an eighth of the descriptors that tasks and connections leave, each until nothing of it is "
         "left; the address with most gives one up, the one with the dearest Call first; one without a Call counts as "
         "a Call of 1 ms",
     .place = "`MountServerConfig`, `Ledger`",
     .tests = "`HeldMountTest.AGoneConnectionTakesItsCallAlong`, `OfOneAddressTheCallThatCostsMostGivesWay`, "
              "`WhoSaysNothingGivesWayBeforeACallThatWaits`, `MountServerTest.ManySilentClientsDoNotStopTheService`"},
    {.name = "time of MOUNT's disk thread",
     .client = "its turn, by the microseconds that its Calls cost",
     .address = "the same",
     .all = "one thread",
     .place = "`FairLine`",
     .tests = "`FairLine.*`, `DiskPoolTest.WorkersAreSharedByTheTimeThatTasksTake`"},
};

}  // namespace weft::serve
