#pragma once

#include <algorithm>
#include <cstddef>

#include "absl/status/statusor.h"
#include "apps/onc_tcp/room.h"
#include "fmt/format.h"

namespace weft::gateway {

// The bytes that each client may hold at any time, whatever the others hold: room for a short Call.
inline constexpr std::size_t kLeastRoom = 2048;

// room_limits divides `total` bytes among so many clients. A quarter is for clients that hold little, in equal parts
// for all of them. num_rooms: into how many Rooms --max-buffered is divided.
inline absl::StatusOr<onc_tcp::Room::Limits> room_limits(std::size_t total, std::size_t per_address,
                                                         std::size_t num_clients, std::size_t num_rooms) {
  constexpr std::size_t kMib = 1 << 20, kReserveShare = 4;
  num_clients = std::max<std::size_t>(num_clients, 1);
  const std::size_t reserve = total / kReserveShare;
  if (reserve / num_clients < kLeastRoom) {
    const std::size_t needed = num_clients * kLeastRoom * kReserveShare * num_rooms;
    return absl::ResourceExhaustedError(
        fmt::format("{} connections need {} MiB of memory, so that each has room for a short call; choose "
                    "--max-buffered {}, or a smaller --max-connections",
                    num_clients, (needed + kMib - 1) / kMib, (needed + kMib - 1) / kMib));
  }
  return onc_tcp::Room::Limits{
      .total = total, .per_address = per_address, .reserve = reserve, .small = reserve / num_clients};
}

// The memory of Replies is divided into a Room for listings of directories and a Room for other Replies. The Room for
// listings has no reserve: short Replies are no listings.
struct ReplyRooms {
  onc_tcp::Room::Limits replies, listings;
};
inline ReplyRooms rooms_of_replies(const onc_tcp::Room::Limits& all) {
  constexpr std::size_t kListingShare = 8;
  ReplyRooms out{.replies = all,
                 .listings = {.total = all.total / kListingShare, .per_address = all.per_address / kListingShare}};
  out.replies.total -= out.listings.total;
  out.replies.per_address -= out.listings.per_address;
  return out;
}

}  // namespace weft::gateway
