#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft::apps {

// format_octets: "1.50 GiB"; format_rate: "3.21 GB/s" (GB = 10^9 bytes); format_duration_ns: "3.2 us".
std::string format_octets(double octets);
std::string format_rate(double octets_per_s);
std::string format_duration_ns(double ns);
// counted: "1 ping", "2 pings". The plural of noun ends with "s".
std::string counted(std::uint64_t num, std::string_view noun);

// print_ready prints the line that a command prints once it accepts connections ("ready rdma=127.0.0.1:20049"). It
// flushes the line, so that the reader of a pipe sees it at once.
void print_ready(const std::string& what);

// finish_output is for the end of the program: it returns `status`, the exit status so far. If standard output did not
// take everything, it returns kExitFailed instead of kExitDone, and prints the error. It returns kExitReaderLeft and
// prints nothing if the reader of a pipe has left, since the reader may have seen enough, or if the reader did not read
// after a stop signal.
int finish_output(int status);

}  // namespace weft::apps
