#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "apps/onc_tcp/record.h"
#include "apps/onc_tcp/room.h"
#include "rpcrdma/buffer_pool.h"

// The two directions of a TCP connection with RPC messages that must not be copied. Records (RFC 5531 section 11) are
// received into registered memory, and sent from the memory of their parts. There are no sockets here.
namespace weft::onc_tcp {

// Record is one RPC message as received.
struct Record {
  rpcrdma::Buffer memory;  // at least `len` octets; empty for an empty record
  std::size_t len = 0;
  ConstBytes octets() const { return memory.octets().first(len); }
};

// RecordLimits bounds the memory that one record may take in a RecordReceiver.
struct RecordLimits {
  std::size_t max_record = 2 << 20;  // bytes
  // The most bytes of a record's first Buffer, taken before any byte of the record has arrived.
  std::size_t first = 32 << 10;
};

// RecordReceiver gives the memory for the next bytes of the stream. A record's Buffer grows with the bytes that have
// arrived, not with the length that its mark announces. It begins with RecordLimits::first. Once this is full, it gets
// kMostNfs, which holds the READs and WRITEs of NFS. After that it grows by a factor of four each time. Growing copies
// the bytes that have arrived. All other bytes go from the socket straight into their final Buffer. So a thirtieth of a
// WRITE of 1 MiB is copied. RecordReceiver holds at most max_record bytes of one record, and kStaging more. It runs in
// the pool's thread only.
//
// The order of calls: space, received, then next until it does not return kRecord.
class RecordReceiver {
 public:
  enum class Outcome : std::uint8_t {
    kNeedMore,
    kRecord,   // take() it
    kNoRoom,   // the Room or the pool has no memory now: receive nothing before next() returns another value
    kTooLong,  // over max_record or kMaxFragments: the stream cannot be read further
  };

  // The octets received together with the end of a record: the next mark, and whole small records.
  static constexpr std::size_t kStaging = 4096;

  // A MiB of data, and the rest of a Call or Reply around it.
  static constexpr std::size_t kMostNfs = (1 << 20) + (64 << 10);

  // The pool outlives this object and its Records. client: the Room's client that holds the Records; null: none.
  RecordReceiver(rpcrdma::BufferPool& pool, const RecordLimits& limits, std::shared_ptr<Room::Client> client = nullptr)
      : pool_(pool), limits_(limits), client_(std::move(client)), claim_(client_) {}

  // The memory to receive into, in this order. The second part may be empty. Both are empty only if next() returned
  // kNoRoom or kTooLong.
  std::array<MutBytes, 2> space();
  // The first n octets of space() have been filled.
  void received(std::size_t n);
  Outcome next();
  Record take();
  // Gives up all memory and the client. Call nothing else afterwards.
  void close();

  // The bytes of the record that has begun to arrive.
  std::size_t held() const { return record_.memory.octets().size(); }
  bool holds_little() const { return !client_ || client_->is_little(claim_.size()); }
  // After kNoRoom: whether the Room still has it in its line.
  bool waits_in_line() const { return claim_.waits(); }
  // Whether a record has begun to arrive and has not ended.
  bool is_inside() const { return state_ != State::kMark || num_fragments_ > 0 || staged() > 0; }

 private:
  enum class State : std::uint8_t { kMark, kMemory, kFragment, kDone, kBroken };

  std::size_t staged() const { return staged_end_ - staged_begin_; }
  Outcome on_mark();
  bool is_full() const { return record_.len == record_.memory.octets().size(); }
  std::size_t next_size() const;
  bool make_room();
  void copy_staged();

  rpcrdma::BufferPool& pool_;
  RecordLimits limits_;
  std::shared_ptr<Room::Client> client_;
  Room::Claim claim_;  // of record_
  State state_ = State::kMark;
  std::array<std::uint8_t, kStaging> staging_;
  std::size_t staged_begin_ = 0, staged_end_ = 0;
  std::size_t fragment_left_ = 0;
  bool last_ = false;
  std::size_t num_fragments_ = 0;
  Record record_;  // the part that has arrived
};

// OutRecord is an RPC message to send: its parts. A derived class owns the memory of the parts.
struct OutRecord {
  virtual ~OutRecord() = default;
  std::vector<ConstBytes> parts;
};

// RecordSender queues records and gives their next octets on the stream. One thread uses it.
class RecordSender {
 public:
  // The parts together have less than 2^31 octets.
  void push(std::unique_ptr<OutRecord> record);
  // The octets not sent yet, marks included.
  std::size_t queued() const { return queued_; }
  std::size_t num_queued() const { return entries_.size(); }
  // The octets of the records in it. A record stays whole until its last octet is sent.
  std::size_t held() const { return queued_ + done_; }

  // Fills `out` with the next octets to send and returns the number of entries. They stay valid until sent() or push().
  std::size_t gather(std::span<ConstBytes> out) const;
  // Drops all records: nothing more is to be sent.
  void clear();
  // The socket took the first n octets of the list of gather. Records that were sent completely are destroyed.
  void sent(std::size_t n);

 private:
  struct Entry {
    std::unique_ptr<OutRecord> record;
    std::array<std::uint8_t, kMarkLen> mark;
    std::size_t len = 0;  // with its mark
  };

  std::deque<Entry> entries_;
  std::size_t done_ = 0;  // octets of the first entry
  std::size_t queued_ = 0;
};

}  // namespace weft::onc_tcp
