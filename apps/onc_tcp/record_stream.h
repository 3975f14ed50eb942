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

// The two directions of a TCP connection that carries RPC messages which must not be copied: records (RFC 5531 section
// 11) are received into registered memory and sent from wherever their parts lie. No sockets here.
namespace weft::onc_tcp {

using rpcrdma::MutBytes;

// Record is one RPC message as it came.
struct Record {
  rpcrdma::Buffer memory;  // at least `len` octets; empty for a record of none
  std::size_t len = 0;
  ConstBytes octets() const { return memory.octets().first(len); }
};

// RecordLimits: what one record may make a RecordReceiver hold.
struct RecordLimits {
  std::size_t max_record = 2 << 20;  // bytes
  // Bytes that the first Buffer of a record may have before any byte of it has come.
  std::size_t first = 32 << 10;
};

// RecordReceiver tells where the next bytes of the stream belong. A record's Buffer grows with what has arrived,
// whatever its mark announces: first RecordLimits::first; once these are full kMostNfs, which holds the READs and
// WRITEs of NFS; then four times as much each time. The bytes that are there are copied then; all others go from the
// socket straight into the Buffer that they stay in. So of a WRITE of 1 MiB a thirtieth is copied. It holds at most
// max_record bytes of one record, and kStaging more. One thread, the pool's.
//
// In turn: space, received, then next until it does not return kRecord.
class RecordReceiver {
 public:
  enum class Outcome : std::uint8_t {
    kNeedMore,
    kRecord,   // take() it
    kNoRoom,   // the Room or the pool has none now: nothing is to be received before next() says something else
    kTooLong,  // over max_record or kMaxFragments: the stream cannot be read any further
  };

  // Octets taken along with the end of a record: the next mark, and small records whole.
  static constexpr std::size_t kStaging = 4096;

  // A MiB of data, and what stands around them in a Call or Reply.
  static constexpr std::size_t kMostNfs = (1 << 20) + (64 << 10);

  // The pool outlives this and its Records. client: in whose name Records are held; null: nobody's.
  RecordReceiver(rpcrdma::BufferPool& pool, const RecordLimits& limits, std::shared_ptr<Room::Client> client = nullptr)
      : pool_(pool), limits_(limits), client_(std::move(client)), claim_(client_) {}

  // Where to receive to, in this order; the second may be empty, neither ever is unless next() said kNoRoom or
  // kTooLong.
  std::array<MutBytes, 2> space();
  // The first n octets of space() have been filled.
  void received(std::size_t n);
  Outcome next();
  Record take();
  // Gives up what is held, and the client. Nothing else may be called then.
  void close();

  bool holds_little() const { return !client_ || client_->holds_little(); }
  // Whether the beginning of a record is here and its end is not.
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
  Record record_;  // what is here of it
};

// OutRecord is an RPC message to send: its parts, and by derivation whatever owns the memory they lie in.
struct OutRecord {
  virtual ~OutRecord() = default;
  std::vector<ConstBytes> parts;
};

// RecordSender queues records and says what of them comes next on the stream. One thread.
class RecordSender {
 public:
  // Of the parts together less than 2^31 octets.
  void push(std::unique_ptr<OutRecord> record);
  // Octets not sent yet, marks included.
  std::size_t queued() const { return queued_; }
  std::size_t num_queued() const { return entries_.size(); }

  // Fills `out` with what comes next; returns how many entries. They stay valid until sent() or push().
  std::size_t gather(std::span<ConstBytes> out) const;
  // Nothing more is to be sent.
  void clear();
  // The first n octets of what gather gave are on their way. Records that are complete are destroyed.
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
