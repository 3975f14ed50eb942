#include "apps/gateway/served_programs.h"

#include "apps/onc_tcp/client.h"
#include "base/address.h"
#include "nfsulb/bindings.h"
#include "nfsulb/programs.h"

namespace weft::gateway {

absl::StatusOr<std::vector<apps::ProgramVersion>> served_programs(const sockaddr_storage& server,
                                                                  std::chrono::milliseconds timeout, int stop_fd) {
  auto client = onc_tcp::Client::connect(server, address_len(server), timeout, stop_fd);
  if (!client.ok()) return client.status();
  std::vector<apps::ProgramVersion> out;
  for (const nfsulb::BoundProgram& bound : nfsulb::bound_programs()) {
    const apps::ProgramVersion program{bound.binding.program, bound.binding.version};
    if (program.program == nfsulb::kNfs4CallbackProgram) continue;  // clients serve it
    const auto results = (*client)->call({0, program.program, program.version, 0, {}, {}}, {}, timeout);
    if (results.ok()) {
      out.push_back(program);
    } else if (!absl::IsFailedPrecondition(results.status())) {  // other than a refusal
      return results.status();
    }
  }
  return out;
}

}  // namespace weft::gateway
