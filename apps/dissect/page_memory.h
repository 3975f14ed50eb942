#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace weft::apps::dissect {

// PageMemory: memory that begins at a page, for octets of a file. The kernel takes three times as long to copy them to
// another place of a page than they have in the file.
class PageMemory {
 public:
  static constexpr std::size_t kPage = 4096;

  explicit PageMemory(std::size_t len)
      : octets_(static_cast<std::uint8_t*>(::operator new (len, std::align_val_t{kPage}))), len_(len) {}

  std::uint8_t* data() { return octets_.get(); }
  std::size_t size() const { return len_; }

 private:
  struct Deleter {
    void operator()(std::uint8_t* octets) const { ::operator delete (octets, std::align_val_t{kPage}); }
  };
  std::unique_ptr<std::uint8_t, Deleter> octets_;
  std::size_t len_;
};

}  // namespace weft::apps::dissect
