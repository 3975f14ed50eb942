#include "tests/exhaust/attacks.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "apps/nfs3/mount.h"
#include "nfsulb/nfs3.h"
#include "rpcrdma/v2_wg07/header.h"
#include "tests/exhaust/nfs_call.h"
#include "tests/exhaust/v1_message.h"

namespace weft::exhaust {
namespace {

using nfs3::Proc;

constexpr std::string_view kConnections = "connections (a descriptor and about 10 KB each at rest)";
constexpr std::string_view kWaiting =
    "newcomers that wait until a connection of their own address ends for them (a descriptor each)";

Octets null(std::uint32_t xid) {
  return v1_message(xid, nfs_call(xid, Proc::kNull, nfs3::VoidArgs{}));
}

template <typename Body>
Octets wg07(std::uint32_t xid, Body body, const Octets& payload) {
  constexpr std::uint32_t kEnoughCredits = 30000;  // so that the server never waits for them
  Octets octets;
  nfs3::XdrWriter out(octets);
  rpcrdma::v2_wg07::Header header;
  header.xid = xid;
  header.credit = kEnoughCredits;
  header.body = std::move(body);
  emit_header(out, header);
  out.raw(payload);
  return octets;
}

// A READDIRPLUS for as many entries as the server returns. The attacker drops the Writes into its Reply chunk.
Octets list(std::uint32_t xid, const nfs3::NfsFh3& dir) {
  constexpr std::uint32_t kLen = 1 << 20;
  rpcrdma::ChunkListsView lists;
  lists.reply_chunk = {{.handle = 0x7777, .length = kLen + 4096, .offset = 0}};
  return v1_message(
      xid, nfs_call(xid, Proc::kReaddirplus, nfs3::ReaddirplusArgs{.dir = dir, .dircount = kLen, .maxcount = kLen}),
      std::move(lists));
}

// A WRITE of 1 MiB from memory that the client never lets the server read.
Octets starved_write(std::uint32_t xid, const nfs3::NfsFh3& file) {
  constexpr std::uint32_t kLen = 1 << 20;
  const nfs3::WriteArgs args{file, 0, kLen, nfs3::StableHow::kUnstable, {kLen, {}}};
  const Octets rpc = nfs_call(xid, Proc::kWrite, args, nfs3::ItemForm::kReduced);
  rpcrdma::ChunkListsView lists;
  lists.read_list = {{static_cast<std::uint32_t>(rpc.size()), {.handle = 0x7777, .length = kLen, .offset = 0}}};
  return v1_message(xid, rpc, std::move(lists));
}

// A READ into memory of the attacker.
Octets read(std::uint32_t xid, const nfs3::NfsFh3& file, std::uint32_t len) {
  rpcrdma::ChunkListsView lists;
  lists.write_list = {{{.handle = 0x7777, .length = len, .offset = 0}}};
  return v1_message(xid, nfs_call(xid, Proc::kRead, nfs3::ReadArgs{file, 0, len}), std::move(lists));
}

Octets part(std::uint32_t xid) {
  Octets octets(4000);
  for (int i = 0; i < 4; ++i) octets[std::size_t(i)] = static_cast<std::uint8_t>(xid >> (24 - 8 * i));
  return wg07(xid, rpcrdma::v2_wg07::CallMiddle{1 << 20}, octets);
}

// A Send of one FPDU that lacks its last octets, for which the server has to keep what came (RFC 5041 section 4.3).
Octets part_of_an_fpdu() {
  Octets octets = {0xff, 0xf0, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0};
  octets.resize(65000);
  return octets;
}

Octets mnt(std::uint32_t xid) {
  std::string path;
  for (int i = 0; i < 100; ++i) path += "/many/..";
  return rpc_call(nfs3::kMountProgram, nfs3::kMountVersion, nfs3::MountProc::kMnt, xid, nfs3::DirpathArgs{path});
}

}  // namespace

std::vector<Attack> attacks(const Handles& of) {
  using enum Attack::Over;
  using enum Attack::Pace;
  const auto starve = [of](std::uint32_t xid) { return starved_write(xid, of.data); };
  const auto read_all = [of](std::uint32_t xid) { return read(xid, of.data, 1 << 20); };
  const auto read_some = [of](std::uint32_t xid) { return read(xid, of.data, 256 << 10); };
  const auto list_many = [of](std::uint32_t xid) { return list(xid, of.many); };
  const auto touch_gone = [of](std::uint32_t xid) {
    return v1_message(xid, nfs_call(xid, Proc::kGetattr, nfs3::FhArgs{of.gone[xid % of.gone.size()]}));
  };
  const auto open = [of](std::uint32_t xid) {
    return v1_message(xid, nfs_call(xid, Proc::kRead, nfs3::ReadArgs{of.open[xid % of.open.size()], 0, 16}));
  };
  const auto write = [of](std::uint32_t xid) {
    static constexpr std::array<std::uint8_t, 16> kData{};
    const nfs3::WriteArgs args{
        of.open[xid % of.open.size()], 0, kData.size(), nfs3::StableHow::kUnstable, {kData.size(), kData}};
    return v1_message(xid, nfs_call(xid, Proc::kWrite, args));
  };
  const auto create = [of](std::uint32_t xid) {
    nfs3::CreateArgs args;
    args.where = {of.root, "hostile-" + std::to_string(xid % 64)};
    return v1_message(xid, nfs_call(xid, Proc::kCreate, args));
  };
  const auto first_wg07 = [](std::uint32_t xid) {
    return wg07(xid, rpcrdma::v2_wg07::CallInline{}, nfs_call(xid, Proc::kNull, nfs3::VoidArgs{}));
  };
  return {
      {.name = "connections, silent",
       .kinds = {"connections without a whole MPA Request"},
       .connections = 2200,
       .over = kTcp},
      {.name = "parts of FPDUs", .kinds = {"parts of FPDUs"}, .connections = 1100, .raw = part_of_an_fpdu()},
      {.name = "connections, resting",
       .kinds = {kConnections, "Receives of `--inline` bytes (4 KiB)"},
       .connections = 1100,
       .first = null},
      {.name = "connections, Calls under way",
       .kinds = {kConnections, kWaiting, "names in the index of handles"},
       .connections = 1100,
       .pace = kAgain,
       .depth = 1,
       .first = null,
       .message = list_many},
      {.name = "chunks, 60 connections", .connections = 60, .depth = 8, .first = null, .message = starve},
      {.name = "chunks, 200 connections",
       .kinds = {"memory of chunks and results", "turns of Calls that wait for this memory",
                 "time for which a slow peer holds this memory"},
       .connections = 200,
       .depth = 8,
       .first = null,
       .message = starve},
      {.name = "chunks, 700 connections", .connections = 700, .depth = 8, .first = null, .message = starve},
      {.name = "results that nobody takes",
       .kinds = {"memory of chunks and results", "time for which a slow peer holds this memory"},
       .connections = 200,
       .depth = 8,
       .first = null,
       .message = read_all,
       .is_deaf = true},
      {.name = "results that all take",
       .connections = 200,
       .pace = kAgain,
       .depth = 8,
       .first = null,
       .message = read_some},
      {.name = "disk lane",
       .kinds = {"memory of results of Calls that may wait for a disk (READDIR, READDIRPLUS)",
                 "tasks that wait for a disk worker", "time of the disk workers"},
       .connections = 200,
       .pace = kAgain,
       .depth = 8,
       .first = null,
       .message = list_many},
      {.name = "MOUNT, silent",
       .kinds = {"MOUNT connections"},
       .port = Attack::Port::kMount,
       .connections = 300,
       .over = kTcp},
      {.name = "MOUNT, flood",
       .kinds = {"MOUNT connections", "time of MOUNT's disk thread"},
       .port = Attack::Port::kMount,
       .connections = 256,
       .over = kRecords,
       .depth = 1,
       .per_second = 2200,
       .message = mnt},
      {.name = "open files",
       .kinds = {"open files"},
       .connections = 64,
       .pace = kAgain,
       .depth = 16,
       .first = null,
       .message = open},
      {.name = "unsynced files",
       .kinds = {"files that lost their place before their writes were synced"},
       .connections = 64,
       .pace = kAgain,
       .depth = 16,
       .first = null,
       .message = write},
      {.name = "searches",
       .kinds = {"searches of the tree for moved files"},
       .connections = 64,
       .pace = kAgain,
       .depth = 16,
       .first = null,
       .message = touch_gone},
      {.name = "Receives",
       .kinds = {"Receives of `--inline` bytes (4 KiB)"},
       .connections = 700,
       .pace = kAgain,
       .depth = 128,
       .first = null,
       .message = null},
      {.name = "version 2, half Calls",
       .kinds = {"memory of chunks and results that is kept for Calls in parts (version 2)"},
       .connections = 700,
       .pace = kCredits,
       .depth = 40,
       .first = first_wg07,
       .message = part},
      {.name = "kept Replies",
       .kinds = {"kept Replies", "tasks that wait for a disk worker"},
       .connections = 64,
       .pace = kAgain,
       .depth = 16,
       .first = null,
       .message = create},
  };
}

}  // namespace weft::exhaust
