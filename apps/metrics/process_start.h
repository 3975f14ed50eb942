#pragma once

namespace weft::metrics {

// process_start_time tells when this process started, in seconds since 1970, as the kernel knows it.
double process_start_time();

}  // namespace weft::metrics
