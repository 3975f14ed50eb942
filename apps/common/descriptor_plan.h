#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"

namespace weft::apps {

// DescriptorWish says for what a server program needs descriptors. Its clients get half of those that it does not need
// for itself.
struct DescriptorWish {
  std::uint64_t limit = 0;                  // RLIMIT_NOFILE
  std::size_t own = 0;                      // of the program itself, without any client
  std::size_t per_client = 1;               // of one client's connections
  std::size_t least_others = 0;             // of files and of short uses, at least
  std::size_t preferred_clients = 0;        // the default
  std::optional<std::size_t> clients = {};  // --max-connections
};

// DescriptorPlan is how a program divides its descriptors.
struct DescriptorPlan {
  std::size_t clients = 0;
  std::size_t others = 0;  // descriptors that are left for files and for short uses
};

// kLeastClients is the default number of clients where the limit of open files is low.
inline constexpr std::size_t kLeastClients = 16;

// plan_descriptors divides the descriptors. It fails if the limit is too low for kLeastClients, or for the number of
// clients that was asked for. The message names the limit that is needed.
absl::StatusOr<DescriptorPlan> plan_descriptors(const DescriptorWish& wish);

// num_open_descriptors counts the descriptors that this process has open, also those that it inherited.
std::size_t num_open_descriptors();

}  // namespace weft::apps
