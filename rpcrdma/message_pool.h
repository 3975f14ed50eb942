#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// MessagePool: registered buffers of one size, for the Sends or the Receives of many connections. It grows by slabs up
// to `max` buffers and keeps its slabs until trim. One thread; the Pd outlives it.
class MessagePool {
 public:
  // len: octets of each buffer.
  MessagePool(verbs::Pd& pd, std::size_t len, std::uint32_t max);

  // Prepares `num` buffers, so that as many takes succeed. False: memory cannot be allocated or registered.
  bool reserve(std::uint32_t num);
  // Takes a buffer and returns its number. Empty if `max` buffers are taken, or if memory cannot be allocated or
  // registered.
  std::optional<std::uint32_t> take();
  void give_back(std::uint32_t slot);
  // Gives back the slabs without a taken buffer.
  void trim();

  MutBytes octets(std::uint32_t slot) const {
    return MutBytes((*memory_)[slot / kSlab].get() + slot % kSlab * len_, len_);
  }
  std::uint32_t lkey(std::uint32_t slot) const { return mrs_[slot / kSlab]->lkey(); }
  std::size_t len() const { return len_; }
  std::uint32_t max() const { return max_; }
  std::uint32_t num_taken() const { return num_taken_; }
  // Octets of all slabs.
  std::size_t registered() const { return num_slabs_ * kSlab * len_; }

  // The memory of the buffers. A holder keeps it for readers that may outlive the pool.
  std::shared_ptr<const void> memory() const { return memory_; }

 private:
  static constexpr std::uint32_t kSlab = 16;  // buffers
  using Memory = std::vector<std::unique_ptr<std::uint8_t[]>>;

  bool grow();

  verbs::Pd& pd_;
  std::size_t len_;
  std::uint32_t max_;
  std::uint32_t num_taken_ = 0;
  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
  std::vector<std::unique_ptr<verbs::Mr>> mrs_;  // one for each slab; null if the slab was given back
  std::size_t num_slabs_ = 0;
  std::vector<std::uint32_t> free_;
};

}  // namespace weft::rpcrdma
