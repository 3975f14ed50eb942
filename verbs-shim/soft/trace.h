#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "verbs-shim/api/log.h"
#include "verbs-shim/api/result.h"

namespace weft::verbs {

// TraceConfig describes a trace: a capture (pcapng) of what the connections of a soft RNIC send and receive. Each FPDU
// is a packet of its own; IP and TCP headers are made for it, so any program that reads captures can read it.
struct TraceConfig {
  // The least max_file: room for the head of a file and the longest packet.
  static constexpr std::uint64_t kMinFile = 128 << 10;
  static constexpr std::size_t kMaxFiles = 1000;

  std::string path = {};  // created, or overwritten
  // Octets kept of the first FPDU of an RDMA Write or a Read Response, of its further FPDUs, and of other frames; 0:
  // all of them, and tagged_len 0 means the further FPDUs, too. The capture has the true length of each, and a comment
  // where a message or another frame was cut first. Payload that moves by RDMA is most of the traffic and tells little.
  std::size_t tagged_len = 256;
  std::size_t tagged_more_len = 32;  // the headers, and a Marker among them
  std::size_t other_len = 4608;
  // The most octets of a file, at least kMinFile; 0: no limit. The trace ends with the last packet that fits.
  std::uint64_t max_file = 0;
  // A ring of so many files of max_file octets, 2 to kMaxFiles; 0: one file, `path`. With 8 files the path x.pcapng
  // stands for x_1.pcapng to x_8.pcapng. The trace begins with a file that is not there yet, or with the oldest, and a
  // full file is followed by the next one, whose packets go.
  std::size_t num_files = 0;
  // Octets that wait for the disk. Packets beyond are dropped and counted.
  std::size_t max_buffered = std::size_t{64} << 20;
  // Lines of kWarn: the file cannot be written; packets were dropped. From the trace's thread, or the last owner's.
  Log log = {};
  // Puts the advice in comments into the words of the program: its options, for the fields of our configuration. Any
  // thread of the device.
  std::function<std::string(std::string_view)> in_words = {};
};

// The comment of a packet that was cut, before TraceConfig::in_words.
inline constexpr char kTraceCutNote[] = "weft trace: cut here; TraceConfig::tagged_len 0 keeps all";

// Trace is an open trace. Several devices may share it (SoftConfig::trace). A thread of its own writes the file. When
// the last owner releases the Trace, the rest is written and the file is closed. Any thread.
class Trace {
 public:
  struct Counters {
    std::uint64_t packets = 0;  // written, or waiting to be
    std::uint64_t dropped = 0;  // no room for them
    bool failed = false;        // the file could not be written; everything since then is dropped
    bool full = false;          // max_file is reached; nothing since then is written or counted
  };

  virtual ~Trace() = default;
  virtual Counters counters() const = 0;
};

// trace_paths returns the names of the files that a trace writes.
std::vector<std::string> trace_paths(const TraceConfig& config);

// open_trace creates the file. Errors: errno of open(2), EAGAIN (no thread), EINVAL (max_file or num_files).
Result<std::shared_ptr<Trace>> open_trace(const TraceConfig& config);

}  // namespace weft::verbs
