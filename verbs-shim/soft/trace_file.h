#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/time.h"
#include "verbs-shim/soft/trace.h"
#include "verbs-shim/soft/trace_blocks.h"
#include "verbs-shim/soft/trace_ring.h"

namespace weft::verbs::soft {

// TraceFile puts packets into pcapng blocks (draft-ietf-opsawg-pcapng) and writes them in a thread of its own. put
// takes a lock for the length of a copy, and never waits for the file. The file may be a pipe, whose reader may be
// slow: at the end the trace waits kPatience for it. A file that is full ends the trace, or the next of a ring begins.
class TraceFile final : public Trace {
 public:
  static constexpr std::chrono::milliseconds kPatience{1000};

  // fd: of the ring's first file, non-blocking.
  TraceFile(const TraceConfig& config, TraceRing ring, Fd fd);
  ~TraceFile() override;

  const TraceConfig& config() const { return config_; }
  Counters counters() const override;
  bool has_thread() const { return has_thread_; }
  // False: the trace has reached its limit, and put does nothing.
  bool is_open() const { return !full_.load(std::memory_order_relaxed); }

  // The comment of a packet that was cut, in the words of the program.
  const std::string& cut_note() const { return cut_note_; }

  // put appends a packet: `head` and `payload` one behind the other. wire_len: octets that the packet had. comment: for
  // readers of the capture; may be empty.
  void put(ConstBytes head, ConstBytes payload, std::size_t wire_len, TimePoint time, std::string_view comment);

 private:
  void write_all();
  bool write_piece(const BlockQueue::Piece& piece);
  bool has_room(std::size_t len) const;
  bool begin_file();
  bool end_file();
  bool next_file();
  bool write_out(ConstBytes octets);
  bool wait_for_room();
  void warn(const std::string& what) const;

  const TraceConfig config_;
  const std::string cut_note_;
  const std::chrono::nanoseconds since_epoch_;  // of the steady clock's zero

  // Of the thread that writes.
  TraceRing ring_;
  Fd fd_;
  std::uint64_t file_len_ = 0;
  std::uint64_t num_in_file_ = 0;         // packets
  std::uint64_t num_dropped_before_ = 0;  // the file

  mutable std::mutex mutex_;
  std::condition_variable more_;
  BlockQueue waiting_;
  std::size_t being_written_ = 0;  // octets that were taken from waiting_
  std::uint64_t num_packets_ = 0;  // as in Counters
  std::uint64_t num_dropped_ = 0;
  bool failed_ = false;
  std::atomic<bool> full_ = false;
  bool ending_ = false;
  bool has_thread_ = true;
  std::thread thread_;
};

}  // namespace weft::verbs::soft
