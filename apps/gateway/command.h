#pragma once

#include "apps/common/global_options.h"

namespace weft::apps {

// register_gateway_command adds `weft gateway`: RPC-over-RDMA on one side, RPC over TCP on the other.
void register_gateway_command(CLI::App& root, CommandContext& context);

}  // namespace weft::apps
