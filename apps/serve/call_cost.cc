#include "apps/serve/call_cost.h"

#include <algorithm>

#include "apps/nfs3/codec.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::serve {
namespace {

using nfs3::Proc;
using std::chrono::microseconds;

constexpr microseconds kCall{20};
constexpr microseconds kSync{1000};  // fsync(2)
// Octets for each microsecond: copied data; entries of READDIR; entries of READDIRPLUS, each of which is looked up.
constexpr std::uint32_t kOfData = 2048, kOfNames = 32, kOfFiles = 5;
constexpr std::uint32_t kMost = 1 << 20;  // octets of one Reply

microseconds data_cost(std::uint32_t octets) {
  return microseconds(std::min(octets, kMost) / kOfData);
}

template <typename Args>
std::optional<Args> parsed(const rpcrdma::ServedCall& call) {
  Args args;
  rpcrdma::xdr::XdrReader reader(call.args);
  return nfs3::parse(reader, args) ? std::optional(args) : std::nullopt;
}

}  // namespace

microseconds expected_cost(const rpcrdma::ServedCall& call, const BulkArgs& args) {
  switch (static_cast<Proc>(call.procedure)) {
    case Proc::kRead:
      if (const auto* read = std::get_if<nfs3::ReadArgs>(&args)) return kCall + data_cost(read->count);
      return kCall;
    case Proc::kWrite: {
      const auto* write = std::get_if<nfs3::WriteArgs>(&args);
      if (write == nullptr) return kCall;
      return kCall + data_cost(write->count) + (write->stable == nfs3::StableHow::kUnstable ? microseconds(0) : kSync);
    }
    case Proc::kReaddir:
      if (const auto list = parsed<nfs3::ReaddirArgs>(call))
        return kCall + microseconds(std::min(list->count, kMost) / kOfNames);
      return kCall;
    case Proc::kReaddirplus:
      if (const auto list = parsed<nfs3::ReaddirplusArgs>(call))
        return kCall + microseconds(std::min(list->maxcount, kMost) / kOfFiles);
      return kCall;
    case Proc::kSetattr:
    case Proc::kCreate:
    case Proc::kMkdir:
    case Proc::kSymlink:
    case Proc::kMknod:
    case Proc::kRemove:
    case Proc::kRmdir:
    case Proc::kRename:
    case Proc::kLink:
    case Proc::kCommit: return kCall + kSync;
    default: return kCall;
  }
}

}  // namespace weft::serve
