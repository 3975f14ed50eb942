#include "apps/common/descriptor_plan.h"

#include <dirent.h>

#include <algorithm>
#include <memory>

#include "fmt/format.h"

namespace weft::apps {

absl::StatusOr<DescriptorPlan> plan_descriptors(const DescriptorWish& wish) {
  constexpr const char* kAdvice = "raise it (ulimit -n, or LimitNOFILE= of systemd)";
  const std::uint64_t fixed = std::uint64_t{wish.own} + wish.least_others;
  const auto with = [&](std::size_t clients) { return fixed + std::uint64_t{wish.per_client} * clients; };
  const std::size_t wanted = wish.clients.value_or(kLeastClients);
  if (const std::uint64_t least = with(std::min(wanted, kLeastClients)); wish.limit < least) {
    return absl::ResourceExhaustedError(
        fmt::format("the limit of open files is {}, and at least {} are needed: {}", wish.limit, least, kAdvice));
  }
  if (wish.limit < with(wanted)) {
    return absl::ResourceExhaustedError(fmt::format(
        "--max-connections {} needs a limit of {} open files, and the limit is {}: {}, or allow at most {} connections",
        wanted, with(wanted), wish.limit, kAdvice, (wish.limit - fixed) / wish.per_client));
  }
  const std::uint64_t room = wish.limit - wish.own;
  DescriptorPlan plan;
  const std::uint64_t for_clients = std::min(room / 2, room - wish.least_others);
  plan.clients = wish.clients.value_or(
      std::clamp<std::uint64_t>(for_clients / wish.per_client, kLeastClients, wish.preferred_clients));
  plan.others = room - plan.clients * wish.per_client;
  return plan;
}

std::size_t num_open_descriptors() {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir("/proc/self/fd"), ::closedir);
  if (!dir) return 0;
  std::size_t num = 0;
  while (const dirent* entry = ::readdir(dir.get())) num += entry->d_name[0] != '.';
  return num - 1;  // without the directory's own
}

}  // namespace weft::apps
