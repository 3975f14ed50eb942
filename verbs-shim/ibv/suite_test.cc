// The suite that every backend has to pass, run over an RDMA device of the kernel: WEFT_IBV_DEVICE (default the first)
// at the address WEFT_IBV_ADDRESS, which its network interface has, and at WEFT_IBV_ADDRESS6 where that is set. Tests
// that need an unused address take WEFT_IBV_NOBODY.
#include <sys/utsname.h>

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "verbs-shim/api/testing/async.h"
#include "verbs-shim/api/testing/extension.h"
#include "verbs-shim/api/testing/pair.h"
#include "verbs-shim/api/testing/srq.h"
#include "verbs-shim/api/testing/window.h"
#include "verbs-shim/ibv/device.h"

namespace weft::verbs::testing {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

Result<std::unique_ptr<Device>> open_named() {
  return open_ibv_device({.name = environment("WEFT_IBV_DEVICE")});
}

std::map<std::string, std::string> deviations() {
  std::map<std::string, std::string> out{
      {"QueuePairBeforeTheAddressIsKnown", "librdmacm knows the device of an identifier once its address is resolved"},
      {"FullSendQueueTakesNoMore", "the kernel's responders send before the initiator has spoken: nothing is held"},
  };
  out["CqOverflowEndsItsQueuePairs"] = "a Cq has more room than was asked for: for markers (qp.h), and by rounding";
  out["OverflowNamesTheCqAndItsQueuePair"] = out["CqOverflowEndsItsQueuePairs"];
  if (environment("WEFT_IBV_DEVICE").starts_with("rxe")) {
    out["SendWithoutReceiveTerminates"] = "RoCE sends again until there is a receive (rnr_retry_count 7)";
    out["SendTooLongForTheReceive"] = "rxe completes the receive as kLocQpOpErr, not as kLocLenErr";
    out["InvalidationOfANameThatNeverWasFails"] = "rxe completes it as kLocQpOpErr, not as kMwBindErr";
    out["EndsWhereTheBindSaid"] = "rxe holds a peer to the region, not to the window in it";
    out["AtomicThroughAWindow"] = out["EndsWhereTheBindSaid"];
    out["TargetsAreAlignedAddresses"] = "rxe refuses an Atomic at an odd address when it is posted";
    out["ImmediateWithoutReceiveEndsTheConnection"] = out["SendWithoutReceiveTerminates"];
    out["SendThatFindsNoReceiveBreaksTheProtocol"] = out["SendWithoutReceiveTerminates"];
    out["EventsOfDestroyedObjectsAreDropped"] = out["SendWithoutReceiveTerminates"];
    out["DescriptorsTellUntilTheEventIsTaken"] = out["SendWithoutReceiveTerminates"];
    out["EmptyItEndsTheConnectionThatAsks"] = out["SendWithoutReceiveTerminates"];
    out["WriteToForeignMemoryIsAnAccessError"] = "rxe raises no asynchronous event for what a peer asks wrongly";
    out["ReadOfForeignMemoryIsAnAccessError"] = out["WriteToForeignMemoryIsAnAccessError"];
    out["SolicitedOnlyWaitsForASolicitedSend"] =
        "rxe of Linux 6.12 and 7.2 fires no solicited event for a request that failed, so every completion wakes";
    out["OnlyASolicitedImmediateWakesWhoWaitsForSolicitedEvents"] = out["SolicitedOnlyWaitsForASolicitedSend"];
    out["FaultOfOnesOwnIsFatal"] = "rxe tells it by the completion alone, not by an asynchronous event";
  }
  if (environment("WEFT_IBV_DEVICE").starts_with("siw")) {
    out["ReadNeedsTheRight"] = "siw serves Reads of regions without kRemoteRead";
    out["ReadOfForeignMemoryIsAnAccessError"] = out["ReadNeedsTheRight"];
    out["SendThatFindsNoReceiveBreaksTheProtocol"] = "siw sends its Terminate, and raises no asynchronous event";
    out["DescriptorsTellUntilTheEventIsTaken"] = out["SendThatFindsNoReceiveBreaksTheProtocol"];
    out["SolicitedOnlyWaitsForASolicitedSend"] = "siw fires no solicited events, so every completion wakes";
  }
  return out;
}

// Whether the device is rxe of a kernel later than 6.1. That of 6.12 and 7.2 flushes a request that failed, like those
// behind it. That of 6.1 names the cause.
bool flushes_the_failed() {
  utsname kernel{};
  ::uname(&kernel);
  int major = 0, minor = 0;
  std::sscanf(kernel.release, "%d.%d", &major, &minor);
  return environment("WEFT_IBV_DEVICE").starts_with("rxe") && std::pair(major, minor) > std::pair(6, 1);
}

std::vector<Backend> backends() {
  Backend one;
  one.name = "Ipv4";
  one.open = open_named;
  one.own_progress = true;
  one.address = environment("WEFT_IBV_ADDRESS");
  one.counters = false;
  one.tells_why = false;
  one.pads_private_data = !environment("WEFT_IBV_DEVICE").starts_with("siw");
  one.raises_ird = environment("WEFT_IBV_DEVICE").starts_with("siw");
  // siw and rxe say kLocQpOpErr where the API says kLocProtErr.
  one.wrong_lkey = flushes_the_failed() ? WcStatus::kWrFlushErr : WcStatus::kLocQpOpErr;
  if (flushes_the_failed()) one.refused_bind = WcStatus::kWrFlushErr;
  one.deviations = deviations();
  std::vector<Backend> out{one};
  one.name = "Sleeping";
  one.blocking = true;
  out.push_back(one);
  one.blocking = false;
  one.name = "Ipv6";
  one.family = AF_INET6;
  one.address = environment("WEFT_IBV_ADDRESS6");
  if (!one.address.empty()) out.push_back(one);
  return out;
}

std::string name(const ::testing::TestParamInfo<Backend>& info) {
  return info.param.name;
}

// WEFT_IBV_NOBODY: an unused address of the device's network.
TEST_P(VerbsTest, ResolvesAgainAfterAnAddressError) {
  const std::string nobody = environment("WEFT_IBV_NOBODY");
  if (nobody.empty() || GetParam().family != AF_INET) GTEST_SKIP() << "WEFT_IBV_NOBODY is not set, or for IPv4";
  ASSERT_TRUE(listen().ok());
  Backend elsewhere = GetParam();
  elsewhere.address = nobody;
  ASSERT_TRUE(client_.id->resolve_addr(bind_address(elsewhere), std::chrono::milliseconds(200)).ok());
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kAddrError); }));
  ASSERT_TRUE(client_.id->resolve_addr(server_.id->local_addr(), std::chrono::seconds(1)).ok());
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kAddrResolved); }));
}

INSTANTIATE_TEST_SUITE_P(Ibv, VerbsTest, ::testing::ValuesIn(backends()), name);
INSTANTIATE_TEST_SUITE_P(Ibv, WindowTest, ::testing::ValuesIn(backends()), name);
INSTANTIATE_TEST_SUITE_P(Ibv, ExtensionTest, ::testing::ValuesIn(backends()), name);
INSTANTIATE_TEST_SUITE_P(Ibv, AsyncTest, ::testing::ValuesIn(backends()), name);
INSTANTIATE_TEST_SUITE_P(Ibv, SrqTest, ::testing::ValuesIn(backends()), name);

}  // namespace
}  // namespace weft::verbs::testing
