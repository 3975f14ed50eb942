#pragma once

#include <cstdio>
#include <memory>

#include "base/fd.h"

namespace weft::apps {

// An output stream of stdio writes to a descriptor whose reader may be slow: a pipe, a terminal or a socket. It waits
// for its reader until a stop signal comes (StopSignals). From then on the reader has a short time to go on reading.
// After that every write fails: a reader that does not read does not keep the program from its end.
struct CloseStream {
  void operator()(std::FILE* stream) const { std::fclose(stream); }
};
using OutputStream = std::unique_ptr<std::FILE, CloseStream>;

OutputStream open_output_stream(Fd fd);

// fill_standard_files opens something at each of the descriptors 0 to 2 that the program was started without. Else the
// next file of the program would be its standard input or output. Reads and writes there fail with EBADF, as before.
void fill_standard_files();

// use_output_streams puts output streams in the place of stdout and stderr, for the rest of the program. They have the
// buffers that programs expect: lines for stdout on a terminal, none for stderr. Call it before anything is printed.
void use_output_streams();

}  // namespace weft::apps
