#include "apps/dissect/read_ahead.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "apps/common/signals.h"

namespace weft::apps::dissect {

ReadAhead::ReadAhead(Fd file, ConstBytes begin) : file_(std::move(file)), octets_(kPiece), end_(begin.size()) {
  std::ranges::copy(begin, octets_.data());
}

ConstBytes ReadAhead::peek(std::size_t len) {
  while (end_ - at_ < len && read_more(len)) {
  }
  return {octets_.data() + at_, std::min(len, end_ - at_)};
}

// Moves the octets to the first page, where they keep their place in it.
void ReadAhead::make_room(std::size_t len) {
  const std::size_t at = at_ % PageMemory::kPage, num = end_ - at_;
  if (octets_.size() < at + len) {
    PageMemory more(at + len);
    std::copy_n(octets_.data() + at_, num, more.data() + at);
    octets_ = std::move(more);
  } else {
    std::memmove(octets_.data() + at, octets_.data() + at_, num);
  }
  at_ = at;
  end_ = at + num;
}

// False at the end of the file, and when a stop signal came.
bool ReadAhead::read_more(std::size_t len) {
  if (octets_.size() - at_ < len) make_room(len);
  const ssize_t got = apps::read_unless_stopped(file_.get(), octets_.data() + end_, octets_.size() - end_);
  if (got < 0) error_ = errno;
  end_ += got > 0 ? static_cast<std::size_t>(got) : 0;
  return got > 0;
}

}  // namespace weft::apps::dissect
