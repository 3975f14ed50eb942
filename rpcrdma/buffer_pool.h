#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

class BufferPool;

// Buffer is registered memory taken from a pool. It goes back to the pool when destroyed. Any thread may fill the
// octets. Take and destroy a Buffer only on the pool's own thread.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  // All requested octets; empty for a default-constructed Buffer.
  MutBytes octets() const { return octets_; }
  std::uint32_t lkey() const { return lkey_; }
  explicit operator bool() const { return !octets_.empty(); }
  // attach destroys `what` when the Buffer goes back to its pool, in the pool's thread. `what` can, for example, count
  // the user's octets.
  void attach(std::shared_ptr<const void> what) { attached_ = std::move(what); }

 private:
  friend class BufferPool;
  BufferPool* pool_ = nullptr;
  MutBytes octets_;
  std::size_t slot_ = 0;
  std::uint32_t lkey_ = 0;
  std::shared_ptr<const void> attached_;
};

// BufferPool hands out registered buffers of any size up to max_len and keeps returned buffers for the next take, until
// trim. It bounds the octets that all its connections hold together. It outlives its Buffers. One thread.
class BufferPool {
 public:
  // max_total: the most octets in use at once; take() refuses more. read_sinks: whether the buffers must also serve as
  // sinks of RDMA Reads on a device with Caps::read_sink_needs_remote_write. Otherwise no peer has access to them.
  BufferPool(verbs::Pd& pd, std::size_t max_len, std::size_t max_total, bool read_sinks = false);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // A Buffer of exactly len octets (contents indeterminate), or an empty one if the bound is reached, memory cannot be
  // allocated or registered, or len is 0.
  Buffer take(std::size_t len);

  // trim gives back to the system the memory that was idle since the last trim. True: more memory is in use or kept, so
  // call trim again some time later.
  bool trim();

  // Octets in use now, and their limit.
  std::size_t in_use() const;
  std::size_t max_total() const;
  // Octets of memory in use and kept.
  std::size_t registered() const;

 private:
  friend class Buffer;
  void give_back(Buffer& buffer);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::rpcrdma
