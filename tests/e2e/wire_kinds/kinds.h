#pragma once

#include "capture.h"

namespace weft::e2e {

// Every kind of startup frame, and of RTR indication (RFC 5044 section 7.1, RFC 6581).
void startup_kinds(Capture& capture);
// Every kind of message but the Terminate, whole and in several segments, with and without CRCs and Markers.
void data_kinds(Capture& capture);
// Terminates of every layer, in each of the three forms that RFC 5040 section 4.8 gives them.
void terminate_kinds(Capture& capture);

}  // namespace weft::e2e
