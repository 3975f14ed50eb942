#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace weft::apps::perf {

// Region is memory that is made ready in parts and given back in parts, since the kernel needs time for either.
// The destructor gives back all of it at once.
class Region {
 public:
  Region() = default;
  // reserve takes addresses for `size` octets, and no memory yet.
  static absl::StatusOr<Region> reserve(std::size_t size);
  Region(Region&& other) noexcept;
  Region& operator=(Region&&) = delete;
  ~Region();

  // fill writes at most `most` further octets. Returns whether all octets are written now.
  bool fill(std::size_t most);
  // release gives back the last octets: as many of `most` as make whole pages, and at least one page. Returns the
  // number of written octets that it gave back. A Region that has given back octets is not filled again.
  std::size_t release(std::size_t most);

  // The written octets.
  std::span<std::uint8_t> octets() const { return {data_, size_}; }

 private:
  Region(std::uint8_t* data, std::size_t mapped) : data_(data), mapped_(mapped) {}

  std::uint8_t* data_ = nullptr;  // at the beginning of a page
  std::size_t mapped_ = 0;
  std::size_t size_ = 0;  // of these, written
};

}  // namespace weft::apps::perf
