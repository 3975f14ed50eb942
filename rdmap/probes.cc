#include "rdmap/probes.h"

WEFT_DEFINE_PROBE(connection_established);
WEFT_DEFINE_PROBE(connection_ended);
WEFT_DEFINE_PROBE(fpdu_in);
WEFT_DEFINE_PROBE(fpdu_out);
WEFT_DEFINE_PROBE(terminate_received);
WEFT_DEFINE_PROBE(terminate_sent);
WEFT_DEFINE_PROBE(work_completed);
WEFT_DEFINE_PROBE(work_posted);
