#include "bench/gateway_attacks.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/exhaust/nfs_call.h"
#include "tests/exhaust/record.h"

namespace weft::bench {
namespace {

using exhaust::Attack;
using exhaust::nfs_call;
using exhaust::Octets;
using exhaust::part_of_a_record;
using nfs3::Proc;

Octets null(std::uint32_t xid) {
  return nfs_call(xid, Proc::kNull, nfs3::VoidArgs{});
}

}  // namespace

std::vector<Attack> gateway_attacks(const exhaust::Handles& of) {
  using enum Attack::Over;
  using enum Attack::Pace;
  constexpr std::uint32_t kMib = 1 << 20, kLongest = (4 << 20) - 4;
  const auto read = [of](std::uint32_t len) {
    return [of, len](std::uint32_t xid) { return nfs_call(xid, Proc::kRead, nfs3::ReadArgs{of.data, 0, len}); };
  };
  const auto list = [of](std::uint32_t xid) {
    return nfs_call(xid, Proc::kReaddirplus, nfs3::ReaddirplusArgs{.dir = of.many, .dircount = kMib, .maxcount = kMib});
  };
  const auto write = [of](std::uint32_t xid) {
    static const Octets data(256 << 10);
    const auto len = static_cast<std::uint32_t>(data.size());
    const auto& file = of.open[xid % of.open.size()];
    return nfs_call(xid, Proc::kWrite, nfs3::WriteArgs{file, 0, len, nfs3::StableHow::kUnstable, {len, data}});
  };
  const auto create = [of](std::uint32_t xid) {
    nfs3::CreateArgs args;
    args.where = {of.root, "hostile-" + std::to_string(xid % 64)};
    return nfs_call(xid, Proc::kCreate, args);
  };
  return {
      {.name = "connections, silent", .connections = 1100, .over = kTcp},
      {.name = "connections, resting", .connections = 1100, .over = kRecords, .depth = 1, .message = null},
      {.name = "connections, Calls under way",
       .connections = 1100,
       .over = kRecords,
       .pace = kAgain,
       .depth = 1,
       .message = list},
      {.name = "announced records", .connections = 1000, .over = kTcp, .raw = part_of_a_record(kLongest, 0)},
      {.name = "parts of records", .connections = 300, .over = kTcp, .raw = part_of_a_record(kLongest, kMib)},
      {.name = "Replies that nobody reads",
       .connections = 200,
       .over = kRecords,
       .depth = 8,
       .message = read(kMib),
       .is_deaf = true},
      {.name = "Replies that all read",
       .connections = 200,
       .over = kRecords,
       .pace = kAgain,
       .depth = 8,
       .message = read(256 << 10)},
      {.name = "WRITEs", .connections = 200, .over = kRecords, .pace = kAgain, .depth = 8, .message = write},
      {.name = "disk lane", .connections = 200, .over = kRecords, .pace = kAgain, .depth = 8, .message = list},
      {.name = "NULLs", .connections = 700, .over = kRecords, .pace = kAgain, .depth = 128, .message = null},
      {.name = "kept Replies", .connections = 64, .over = kRecords, .pace = kAgain, .depth = 16, .message = create},
  };
}

}  // namespace weft::bench
