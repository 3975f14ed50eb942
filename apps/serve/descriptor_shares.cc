#include "apps/serve/descriptor_shares.h"

#include <algorithm>

#include "apps/common/descriptor_plan.h"
#include "apps/serve/backend/backend.h"
#include "apps/serve/mount/mount_server.h"

namespace weft::serve {
namespace {

// Whatever the limit is, these run: the disk workers, Calls on the loop, and MOUNT. A search for moved files runs
// within the task that needs it.
std::size_t of_tasks(unsigned disk_workers) {
  return disk_workers * Backend::kDescriptorsOfCall + Backend::kDescriptorsOfCallNow + MountServer::kMoreDescriptors;
}

constexpr std::size_t of_sync_workers(unsigned sync_workers) {
  return sync_workers * Backend::kDescriptorsOfChange;
}

constexpr std::size_t kLeastOthers = of_sync_workers(kLeastShares.sync_workers) + kLeastShares.mount_connections +
                                     kLeastShares.waiting + kLeastShares.silent + kLeastShares.lingering +
                                     OpenFiles::num_descriptors(kLeastShares.open_files);

// The most files that may be open, up to `most`, with this number of descriptors.
std::size_t open_files_with(std::size_t descriptors, std::size_t most) {
  // A file needs two, and eight files need two more for evicted ones.
  std::size_t files = std::min(descriptors / 2, most);
  while (files > 0 && OpenFiles::num_descriptors(files) > descriptors) --files;
  return files;
}

}  // namespace

absl::StatusOr<DescriptorShares> share_descriptors(const ShareWish& wish) {
  const absl::StatusOr<apps::DescriptorPlan> plan =
      apps::plan_descriptors({.limit = wish.limit,
                              .own = wish.own + of_tasks(wish.disk_workers),
                              .per_client = 1,
                              .least_others = kLeastOthers,
                              .preferred_clients = wish.most.connections,
                              .clients = wish.connections});
  if (!plan.ok()) return plan.status();
  // Each use has its least part. Workers of the sync lane get a quarter of the descriptors that are left. MOUNT gets an
  // eighth, and connections that come, wait or go get three sixteenths. Open files get the rest.
  const std::size_t more = plan->others - kLeastOthers;
  const std::size_t more_workers =
      std::min<std::size_t>(more / 4 / Backend::kDescriptorsOfChange, wish.most.sync_workers);
  DescriptorShares out;
  out.connections = plan->clients;
  out.sync_workers = std::min(kLeastShares.sync_workers + static_cast<unsigned>(more_workers), wish.most.sync_workers);
  out.mount_connections = std::min(kLeastShares.mount_connections + more / 8, wish.most.mount_connections);
  out.waiting = std::min(kLeastShares.waiting + more / 16, wish.most.waiting);
  out.silent = std::min(kLeastShares.silent + more / 16, wish.most.silent);
  out.lingering = std::min(kLeastShares.lingering + more / 16, wish.most.lingering);
  const std::size_t used =
      of_sync_workers(out.sync_workers) + out.mount_connections + out.waiting + out.silent + out.lingering;
  out.open_files = open_files_with(plan->others - used, wish.most.open_files);
  return out;
}

}  // namespace weft::serve
