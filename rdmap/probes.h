#pragma once

#include "base/probe.h"

// The probes of a Stream. docs/probes.md has their arguments.
WEFT_DECLARE_PROBE(connection_established);
WEFT_DECLARE_PROBE(connection_ended);
WEFT_DECLARE_PROBE(fpdu_in);
WEFT_DECLARE_PROBE(fpdu_out);
WEFT_DECLARE_PROBE(terminate_received);
WEFT_DECLARE_PROBE(terminate_sent);
WEFT_DECLARE_PROBE(work_completed);
WEFT_DECLARE_PROBE(work_posted);
