#include "apps/serve/call_work.h"

#include <algorithm>
#include <array>

#include "apps/nfs3/codec.h"
#include "apps/serve/backend/reply_limits.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::serve {
namespace {

using nfs3::Proc;
using rpcrdma::ServedCall;
using std::chrono::microseconds;

constexpr microseconds kCall{20};
constexpr microseconds kSync{1000};  // fsync(2)
// Octets for each microsecond: copied data; entries of READDIR; entries of READDIRPLUS, each of which is looked up.
constexpr std::uint32_t kOfData = 2048, kOfNames = 32, kOfFiles = 5;
constexpr std::uint32_t kMost = 1 << 20;  // octets of one Reply

microseconds cost_of(std::uint32_t octets, std::uint32_t octets_per_microsecond) {
  return microseconds(std::min(octets, kMost) / octets_per_microsecond);
}

template <typename Args>
std::optional<Args> parsed(const ServedCall& call) {
  Args args;
  rpcrdma::xdr::XdrReader reader(call.args);
  return nfs3::parse(reader, args) ? std::optional(args) : std::nullopt;
}

// What the octets cost that a Call asks for. Garbage asks for none.
using OctetsCost = microseconds (*)(const ServedCall& call, const BulkArgs& args);
microseconds data(const ServedCall&, const BulkArgs& args) {
  if (const auto* read = std::get_if<nfs3::ReadArgs>(&args)) return cost_of(read->count, kOfData);
  if (const auto* write = std::get_if<nfs3::WriteArgs>(&args)) return cost_of(write->count, kOfData);
  return microseconds(0);
}
microseconds names(const ServedCall& call, const BulkArgs&) {
  const auto list = parsed<nfs3::ReaddirArgs>(call);
  return list ? cost_of(std::min(list->count, kMaxListReply), kOfNames) : microseconds(0);
}
microseconds names_and_files(const ServedCall& call, const BulkArgs&) {
  const auto list = parsed<nfs3::ReaddirplusArgs>(call);
  return list ? cost_of(std::min(list->maxcount, kMaxListReply), kOfFiles) : microseconds(0);
}

// Whether a Call waits for a device to write.
enum class Sync : std::uint8_t { kNo, kYes, kIfStable };

struct Row {
  Proc procedure;
  Sync sync;
  OctetsCost octets_cost = nullptr;  // null: they cost nothing
};

// One row for each procedure, by its number.
constexpr std::array<Row, nfs3::kNumProcs> kRows = {{
    {Proc::kNull, Sync::kNo},           {Proc::kGetattr, Sync::kNo},
    {Proc::kSetattr, Sync::kYes},       {Proc::kLookup, Sync::kNo},
    {Proc::kAccess, Sync::kNo},         {Proc::kReadlink, Sync::kNo},
    {Proc::kRead, Sync::kNo, data},     {Proc::kWrite, Sync::kIfStable, data},
    {Proc::kCreate, Sync::kYes},        {Proc::kMkdir, Sync::kYes},
    {Proc::kSymlink, Sync::kYes},       {Proc::kMknod, Sync::kYes},
    {Proc::kRemove, Sync::kYes},        {Proc::kRmdir, Sync::kYes},
    {Proc::kRename, Sync::kYes},        {Proc::kLink, Sync::kYes},
    {Proc::kReaddir, Sync::kNo, names}, {Proc::kReaddirplus, Sync::kNo, names_and_files},
    {Proc::kFsstat, Sync::kNo},         {Proc::kFsinfo, Sync::kNo},
    {Proc::kPathconf, Sync::kNo},       {Proc::kCommit, Sync::kYes},
}};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<std::size_t>(kRows[i].procedure) != i) return false;
  return true;
}
static_assert(is_in_order());

bool is_stable_write(const BulkArgs& args) {
  const auto* write = std::get_if<nfs3::WriteArgs>(&args);
  return write != nullptr && write->stable != nfs3::StableHow::kUnstable;
}

}  // namespace

CallWork work_of(const ServedCall& call, const BulkArgs& args) {
  CallWork work{DiskLane::kNormal, kCall};
  if (call.procedure >= kRows.size()) return work;
  const Row& row = kRows[call.procedure];
  if (row.octets_cost != nullptr) work.expected_cost += row.octets_cost(call, args);
  if (row.sync == Sync::kYes || (row.sync == Sync::kIfStable && is_stable_write(args))) {
    work.lane = DiskLane::kSync;
    work.expected_cost += kSync;
  }
  return work;
}

std::optional<nfs3::NfsFh3> listed_directory(const ServedCall& call) {
  const auto dir_of = [](const auto& args) { return args ? std::optional(args->dir) : std::nullopt; };
  switch (static_cast<Proc>(call.procedure)) {
    case Proc::kReaddir: return dir_of(parsed<nfs3::ReaddirArgs>(call));
    case Proc::kReaddirplus: return dir_of(parsed<nfs3::ReaddirplusArgs>(call));
    default: return std::nullopt;
  }
}

}  // namespace weft::serve
