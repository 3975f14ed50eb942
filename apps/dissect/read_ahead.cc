#include "apps/dissect/read_ahead.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "apps/common/signals.h"

namespace weft::apps::dissect {

ReadAhead::ReadAhead(Fd file, ConstBytes begin) : file_(std::move(file)), octets_(kPiece), end_(begin.size()) {
  std::ranges::copy(begin, octets_.begin());
}

ConstBytes ReadAhead::peek(std::size_t len) {
  while (end_ - at_ < len && read_more(len)) {
  }
  return ConstBytes(octets_).subspan(at_, std::min(len, end_ - at_));
}

// False at the end of the file, and when a stop signal came.
bool ReadAhead::read_more(std::size_t len) {
  if (octets_.size() - at_ < len) {
    std::copy_n(octets_.begin() + static_cast<std::ptrdiff_t>(at_), end_ - at_, octets_.begin());
    end_ -= std::exchange(at_, 0);
    octets_.resize(std::max(octets_.size(), len));
  }
  const ssize_t got = apps::read_unless_stopped(file_.get(), octets_.data() + end_, octets_.size() - end_);
  if (got < 0) error_ = errno;
  end_ += got > 0 ? static_cast<std::size_t>(got) : 0;
  return got > 0;
}

}  // namespace weft::apps::dissect
