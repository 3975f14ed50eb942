#pragma once

#include <rpc/rpc.h>

#include <algorithm>
#include <optional>

#include "tests/wire_v2/message.h"

// The values that rpcgen's routines decode, and the parts that both drafts have alike.
namespace weft::wire_v2 {

// XdrValue is a C value of a type that rpcgen made, freed by its routine.
template <typename T>
class XdrValue {
 public:
  using Routine = bool_t (*)(XDR*, T*);
  explicit XdrValue(Routine routine) : routine_(routine) {}
  XdrValue(const XdrValue&) = delete;
  ~XdrValue() {
    XDR free{};
    free.x_op = XDR_FREE;
    routine_(&free, &value_);
  }
  // read decodes the front of the octets, once, and returns the number of octets that it took. It returns nothing if an
  // encoder would make other octets: libtirpc's decoder takes any word but 0 for TRUE, and any octets for padding.
  std::optional<std::size_t> read(Octets octets) {
    Bytes front(octets.begin(), octets.begin() + static_cast<std::ptrdiff_t>(std::min(octets.size(), kMaxHeader)));
    XDR in;
    xdrmem_create(&in, reinterpret_cast<char*>(front.data()), static_cast<u_int>(front.size()), XDR_DECODE);
    if (routine_(&in, &value_) != TRUE) return std::nullopt;
    const std::size_t len = xdr_getpos(&in);
    Bytes again(len);
    XDR out;
    xdrmem_create(&out, reinterpret_cast<char*>(again.data()), static_cast<u_int>(len), XDR_ENCODE);
    if (routine_(&out, &value_) != TRUE || xdr_getpos(&out) != len) return std::nullopt;
    if (!std::equal(again.begin(), again.end(), front.begin())) return std::nullopt;
    return len;
  }
  const T* operator->() const { return &value_; }
  const T& operator*() const { return value_; }

 private:
  static constexpr std::size_t kMaxHeader = 64 * 1024;  // octets: rpcgen's decoders of lists recurse
  Routine routine_;
  T value_{};
};

template <typename T>
Segment segment_of(const T& segment) {
  return {segment.rdma_handle, segment.rdma_length, segment.rdma_offset};
}

template <typename T>
ReadList read_list_of(const T* node) {
  ReadList reads;
  for (; node != nullptr; node = node->rdma_next) {
    reads.push_back({node->rdma_entry.rdma_position, segment_of(node->rdma_entry.rdma_target)});
  }
  return reads;
}

template <typename T>
Chunk chunk_of(const T& chunk) {
  Chunk segments;
  for (u_int i = 0; i < chunk.rdma_target.rdma_target_len; ++i) {
    segments.push_back(segment_of(chunk.rdma_target.rdma_target_val[i]));
  }
  return segments;
}

template <typename T>
std::vector<Chunk> write_list_of(const T* node) {
  std::vector<Chunk> writes;
  for (; node != nullptr; node = node->rdma_next) writes.push_back(chunk_of(node->rdma_entry));
  return writes;
}

template <typename T>
std::optional<Chunk> reply_chunk_of(const T* chunk) {
  if (chunk == nullptr) return std::nullopt;
  return chunk_of(*chunk);
}

inline Bytes bytes_of(const char* octets, u_int len) {
  return {octets, octets + len};
}

// A set of properties: rpcgen names its two members after the type, which differs.
template <typename T>
std::vector<Property> properties_of(const T* values, u_int count) {
  std::vector<Property> properties;
  for (u_int i = 0; i < count; ++i) {
    properties.push_back(
        {values[i].rdma_which, bytes_of(values[i].rdma_data.rdma_data_val, values[i].rdma_data.rdma_data_len)});
  }
  return properties;
}

}  // namespace weft::wire_v2
