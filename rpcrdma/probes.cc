#include "rpcrdma/probes.h"

WEFT_DEFINE_PROBE(client_call_begin);
WEFT_DEFINE_PROBE(client_call_end);
WEFT_DEFINE_PROBE(message_received);
WEFT_DEFINE_PROBE(message_sent);
WEFT_DEFINE_PROBE(server_call_begin);
WEFT_DEFINE_PROBE(server_call_end);
