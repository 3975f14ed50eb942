#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// Chunk lists (RFC 8166 section 4.3): ChunkListsView holds them as they stand on the wire, right or wrong. ChunkLists
// holds only valid lists, for every version of the protocol.
namespace weft::rpcrdma {

// Segment: a plain segment, xdr_rdma_segment of RFC 8166 section 4.1.2. length in octets.
struct Segment {
  std::uint32_t handle = 0;
  std::uint32_t length = 0;
  std::uint64_t offset = 0;
  friend bool operator==(const Segment&, const Segment&) = default;
};
// wraps says whether the segment passes 2^64 (R1-5.5-02). No memory of a peer does: an RDMA operation on the segment
// would only end the connection. A segment may end at 2^64.
bool wraps(const Segment& segment);

// ReadSegment: xdr_read_chunk. position in octets of the unreduced Payload stream (RFC 8166 section 3.4.5).
struct ReadSegment {
  std::uint32_t position = 0;
  Segment target;
  friend bool operator==(const ReadSegment&, const ReadSegment&) = default;
};

using SegmentArray = std::vector<Segment>;

// ChunkListsView: the lists as they stand in a header. Receivers use it only to make ChunkLists.
struct ChunkListsView {
  SegmentArray call_chunk = {};  // of the Payload stream of a Call; in version 1 the Read chunk at Position Zero
  std::vector<ReadSegment> read_list = {};
  std::vector<SegmentArray> write_list = {};
  std::optional<SegmentArray> reply_chunk = {};
  friend bool operator==(const ChunkListsView&, const ChunkListsView&) = default;

  // Moves the segments at Position Zero of the Read list to the Call chunk: where the wire has no list of its own for
  // it.
  void split_position_zero();
  bool empty() const { return call_chunk.empty() && read_list.empty() && write_list.empty() && !reply_chunk; }
  // Empties the lists and keeps their memory.
  void clear() {
    call_chunk.clear();
    read_list.clear();
    write_list.clear();
    reply_chunk.reset();
  }
};

// total_length sums in 64 bits: at most 2^32 segments of less than 2^32 octets each.
std::uint64_t total_length(std::span<const Segment> segments);

// Chunk: its segments in order, and the sum of their lengths. position: the Position of a Read chunk, else 0.
struct Chunk {
  std::uint32_t position = 0;
  std::uint64_t length = 0;
  SegmentArray segments;
  friend bool operator==(const Chunk&, const Chunk&) = default;
};

// ChunkLimits: the most that a receiver accepts in one message (RFC 8166 section 8.1.4).
struct ChunkLimits {
  std::size_t max_segments = 128;  // of each list; Call chunk and Read list count as one
  std::size_t max_read_chunks = 16;
  std::size_t max_write_chunks = 16;
  std::uint64_t max_message = 1 << 20;       // octets of the Call chunk
  std::uint64_t max_item = 4 << 20;          // octets of a Read chunk
  std::uint64_t max_read_list = UINT64_MAX;  // octets of Call chunk and Read chunks together
};

enum class ChunkError : std::uint8_t {
  kNone,
  kTooManySegments,
  kTooManyReadChunks,
  kTooManyWriteChunks,
  kMisalignedPosition,  // not a multiple of four
  kTooLong,
  kWraps,  // a segment that ends beyond 2^64
};

// ChunkLists: Read chunks grouped by Position in ascending order, segments in list order (RFC 8166 section 3.4.5);
// every Position a multiple of 4, every Call chunk and Read chunk within the limits, no segment beyond 2^64. Write and
// Reply chunks can be longer than any limit: a receiver fills only the part that it needs.
class ChunkLists {
 public:
  // Takes the view's contents if it returns kNone.
  static ChunkError validate(ChunkListsView view, const ChunkLimits& limits, ChunkLists& out);

  // The chunk that holds the Payload stream of a Long Call; null for none.
  const Chunk* call_chunk() const { return call_chunk_ ? &*call_chunk_ : nullptr; }
  std::span<const Chunk> read_chunks() const { return read_chunks_; }
  std::span<const Chunk> write_chunks() const { return write_chunks_; }
  const Chunk* reply_chunk() const { return reply_chunk_ ? &*reply_chunk_ : nullptr; }
  bool empty() const { return !call_chunk_ && read_chunks_.empty() && write_chunks_.empty() && !reply_chunk_; }

 private:
  std::optional<Chunk> call_chunk_;
  std::vector<Chunk> read_chunks_;
  std::vector<Chunk> write_chunks_;
  std::optional<Chunk> reply_chunk_;
};

}  // namespace weft::rpcrdma
