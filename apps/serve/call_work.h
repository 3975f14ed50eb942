#pragma once

#include <chrono>
#include <optional>

#include "apps/serve/nfs_service.h"

namespace weft::serve {

// CallWork: the lane of a Call, and how long a worker probably needs for it. A wrong guess only moves the Call within
// its client's first turns: DiskPool measures what each Call has cost.
struct CallWork {
  DiskLane lane = DiskLane::kNormal;
  std::chrono::microseconds expected_cost{0};
};

// work_of looks at the procedure, and at the octets that the Call asks for. `args`: of parse_bulk_args.
CallWork work_of(const rpcrdma::ServedCall& call, const BulkArgs& args);
// The directory of a READDIR or READDIRPLUS; nothing for any other Call, and for garbage.
std::optional<nfs3::NfsFh3> listed_directory(const rpcrdma::ServedCall& call);

}  // namespace weft::serve
