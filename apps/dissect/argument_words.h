#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

// The main arguments of the procedures and operations of the NFS family (RFC 1094, 1813, 7530, 8881, 7862), as data.
namespace weft::apps::dissect {

// Word: one argument, or octets to pass over.
struct Word {
  enum class Kind : std::uint8_t {
    kHandle,       // an opaque, shown as its CRC
    kFixedHandle,  // 32 octets (NFSv2)
    kName,         // a string
    kSkipOpaque,
    kSkip,  // `skip` octets
    kU32,
    kU64,
    kStateid,
    kOpen,    // the arguments of OPEN
    kCreate,  // createtype4, and the name
  };
  Kind kind = Kind::kSkip;
  std::string_view label = {};
  std::size_t skip = 0;
};

// argument_words: the words of a procedure or operation by its name. Empty: none is known.
std::vector<Word> argument_words(std::uint32_t program, std::uint32_t version, std::string_view operation);

}  // namespace weft::apps::dissect
