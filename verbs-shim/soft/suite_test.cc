// The suite that every backend has to pass, run over the soft RNIC.
#include <sys/socket.h>

#include "verbs-shim/api/testing/async.h"
#include "verbs-shim/api/testing/extension.h"
#include "verbs-shim/api/testing/pair.h"
#include "verbs-shim/api/testing/srq.h"
#include "verbs-shim/api/testing/window.h"
#include "verbs-shim/soft/device.h"

namespace weft::verbs::testing {
namespace {

// A connect request that the suite drops unanswered looks to the initiator like a peer that does not know revision 2;
// the suite wants to see the first end of it.
SoftConfig plain_config() {
  SoftConfig config;
  config.fall_back = false;
  config.cq_overcommit = true;  // tests of the suite share a Cq freely, and one overflows it
  return config;
}

Result<std::unique_ptr<Device>> open_default() {
  return open_soft_device(plain_config());
}

Result<std::unique_ptr<Device>> open_narrow() {
  SoftConfig config;
  config.mpa_revision = 1;
  config.crc = false;
  config.fpdu_limit = 512;
  config.send_buffer = 4608;  // every message is cut
  config.receive_buffer = 4608;
  config.cq_overcommit = true;
  return open_soft_device(config);
}

Result<std::unique_ptr<Device>> open_direct() {
  SoftConfig config = plain_config();
  config.direct_placement = true;
  return open_soft_device(config);
}

Result<std::unique_ptr<Device>> open_peer_to_peer() {
  SoftConfig config = plain_config();
  config.rtr = Rtr::kSend;
  config.cq_overcommit = true;
  return open_soft_device(config);
}

Result<std::unique_ptr<Device>> open_marked() {
  SoftConfig config = plain_config();
  config.markers = true;
  return open_soft_device(config);
}

Result<std::unique_ptr<Device>> open_threaded() {
  SoftConfig config = plain_config();
  config.num_workers = 2;
  return open_soft_device(config);
}

std::string name(const ::testing::TestParamInfo<Backend>& info) {
  return info.param.name;
}

const auto kBackends = ::testing::Values(
    Backend{"Spinning", open_default, false, AF_INET}, Backend{"Blocking", open_default, true, AF_INET},
    Backend{"Direct", open_direct, true, AF_INET}, Backend{"Ipv6", open_default, true, AF_INET6},
    Backend{.name = "Threaded", .open = open_threaded, .own_progress = true},
    Backend{.name = "ThreadedBlocking", .open = open_threaded, .blocking = true, .own_progress = true});
const auto kNarrow = ::testing::Values(Backend{"Blocking", open_narrow, true, AF_INET, false});

INSTANTIATE_TEST_SUITE_P(Soft, VerbsTest, kBackends, name);
INSTANTIATE_TEST_SUITE_P(SoftNarrow, VerbsTest, kNarrow, name);
INSTANTIATE_TEST_SUITE_P(Soft, WindowTest, kBackends, name);
INSTANTIATE_TEST_SUITE_P(SoftNarrow, WindowTest, kNarrow, name);
INSTANTIATE_TEST_SUITE_P(Soft, ExtensionTest, kBackends, name);
INSTANTIATE_TEST_SUITE_P(SoftNarrow, ExtensionTest, kNarrow, name);

INSTANTIATE_TEST_SUITE_P(Soft, AsyncTest, kBackends, name);
INSTANTIATE_TEST_SUITE_P(SoftNarrow, AsyncTest, kNarrow, name);
INSTANTIATE_TEST_SUITE_P(Soft, SrqTest, kBackends, name);
INSTANTIATE_TEST_SUITE_P(SoftNarrow, SrqTest, kNarrow, name);

INSTANTIATE_TEST_SUITE_P(SoftPeerToPeer, VerbsTest,
                         ::testing::Values(Backend{"Spinning", open_peer_to_peer, false, AF_INET}), name);
INSTANTIATE_TEST_SUITE_P(SoftMarkers, VerbsTest, ::testing::Values(Backend{"Blocking", open_marked, true, AF_INET}),
                         name);

}  // namespace
}  // namespace weft::verbs::testing
