#pragma once

#include <cstdint>

#include "apps/common/global_options.h"
#include "rpcrdma/client.h"
#include "rpcrdma/server.h"

namespace weft::apps {

// client_config and server_config are the settings that the global options make for a client and a server of
// RPC-over-RDMA. `credits` holds without --credits. Their log is program_log().
rpcrdma::ClientConfig client_config(const GlobalOptions& options, std::uint32_t credits);
rpcrdma::ServerConfig server_config(const GlobalOptions& options, std::uint32_t credits);

}  // namespace weft::apps
