#pragma once

#include <sys/socket.h>

#include <memory>

#include "absl/status/statusor.h"
#include "apps/common/global_options.h"
#include "apps/common/progress.h"
#include "apps/perf/message.h"
#include "apps/perf/options.h"
#include "apps/perf/report.h"
#include "verbs-shim/api/verbs.h"

// The clients of `weft perf`: each runs one op to its end and returns its measurement.
namespace weft::apps::perf {

// RunContext is the input of every client. All of it outlives the run.
struct RunContext {
  const GlobalOptions& global;
  const PerfOptions& options;
  verbs::Device& device;
  verbs::Pd& pd;
  Progress& progress;
  sockaddr_storage addr;  // the listener's RDMA address
};

// announce logs that a measurement begins.
void announce(const PerfOptions& options);

// not_responding is the error for a listener, or a server, that has been silent for options' patience.
absl::Status not_responding(const std::string& who, const PerfOptions& options);

// introduce connects, sends the listener a Hello, returns its Ready, and closes the connection again. It is for the ops
// that go to another port.
absl::StatusOr<Ready> introduce(const RunContext& context);

absl::StatusOr<Measured> run_rdma(const RunContext& context);
absl::StatusOr<Measured> run_rpc(const RunContext& context, std::uint16_t rpc_port);
// run_nfs runs an RPC op against an NFSv3 server: NULL, or READ or WRITE (UNSTABLE) through a file. options.target, an
// nfs+rdma URL, names the server and the file.
absl::StatusOr<Measured> run_nfs(const GlobalOptions& global, const PerfOptions& options, verbs::Device& device,
                                 Progress& progress, const StopSignals& stop);
// run_tcp needs no device.
absl::StatusOr<Measured> run_tcp(const GlobalOptions& global, const PerfOptions& options, const StopSignals& stop,
                                 const sockaddr_storage& addr);

}  // namespace weft::apps::perf
