#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/time.h"
#include "verbs-shim/soft/trace.h"

namespace weft::verbs::soft {

// claim empties a regular file that is open, and locks it against other traces (flock). 0 or an errno value:
// EWOULDBLOCK if another trace has the lock. Other kinds of files are nobody's.
int claim(int fd);

// TraceFile puts packets into pcapng blocks (draft-ietf-opsawg-pcapng) and writes them in a thread of its own. put
// takes a lock for the length of a copy, and never waits for the file. The file may be a pipe, whose reader may be
// slow: at the end the trace waits kPatience for it.
class TraceFile final : public Trace {
 public:
  static constexpr std::chrono::milliseconds kPatience{1000};

  // fd: non-blocking.
  TraceFile(const TraceConfig& config, Fd fd);
  ~TraceFile() override;

  const TraceConfig& config() const { return config_; }
  Counters counters() const override;
  bool has_thread() const { return has_thread_; }

  // put appends a packet: `head` and `payload` one behind the other. wire_len: octets that the packet had. comment: for
  // readers of the capture; may be empty.
  void put(ConstBytes head, ConstBytes payload, std::size_t wire_len, TimePoint time, std::string_view comment);

 private:
  void write_all();
  bool write_out(ConstBytes octets);
  bool wait_for_room();
  void warn(const std::string& what) const;
  void begin_file();
  void end_file();

  const TraceConfig config_;
  const Fd fd_;
  const std::chrono::nanoseconds since_epoch_;  // of the steady clock's zero

  mutable std::mutex mutex_;
  std::condition_variable more_;
  std::vector<std::uint8_t> waiting_;
  std::uint64_t num_packets_ = 0;  // as in Counters
  std::uint64_t num_dropped_ = 0;
  bool failed_ = false;
  bool ending_ = false;
  bool has_thread_ = true;
  std::thread thread_;
};

}  // namespace weft::verbs::soft
