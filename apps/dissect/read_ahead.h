#pragma once

#include <cstddef>
#include <cstdint>

#include "apps/dissect/page_memory.h"
#include "base/bytes.h"
#include "base/fd.h"

namespace weft::apps::dissect {

// ReadAhead reads a file or a pipe in large pieces, and hands out views of them. Its memory is that of kPiece octets,
// or of the longest peek, and a page.
class ReadAhead {
 public:
  static constexpr std::size_t kPiece = 1 << 17;  // octets that one system call reads

  // begin: octets that were read from the file before.
  ReadAhead(Fd file, ConstBytes begin);
  // peek returns the next octets: `len` of them, or all that are left. It waits for no octet behind them. The view is
  // valid until the next peek.
  ConstBytes peek(std::size_t len);
  // pass goes behind octets that peek has shown.
  void pass(std::size_t len) { at_ += len; }
  // The errno of the read that failed; 0 for none.
  int error() const { return error_; }

 private:
  bool read_more(std::size_t len);
  void make_room(std::size_t len);

  Fd file_;
  PageMemory octets_;
  std::size_t at_ = 0, end_ = 0;  // the octets between were read, and not passed
  int error_ = 0;
};

}  // namespace weft::apps::dissect
