#pragma once

#include "base/probe.h"

// The probes of RPC-over-RDMA. docs/probes.md has their arguments.
WEFT_DECLARE_PROBE(client_call_begin);
WEFT_DECLARE_PROBE(client_call_end);
WEFT_DECLARE_PROBE(message_received);
WEFT_DECLARE_PROBE(message_sent);
WEFT_DECLARE_PROBE(server_call_begin);
WEFT_DECLARE_PROBE(server_call_end);
