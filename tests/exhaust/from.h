#pragma once

#include <netinet/in.h>

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/exhaust/attack.h"

namespace weft::exhaust {

// From is where the connections of an attack come from.
struct From {
  const char* name;
  std::size_t num_addresses;  // 0: the honest client's own

  friend void PrintTo(const From& from, std::ostream* out) { *out << from.name; }
};
// Of the places of a server under test 12 addresses get as many each as 250 do of 1,024.
inline constexpr From kFrom[] = {{"ItsOwn", 0}, {"TwoOthers", 2}, {"ManyOthers", 12}};

inline std::vector<std::string> addresses_of(const From& from) {
  if (from.num_addresses == 0) return {"127.0.0.1"};
  std::vector<std::string> addresses;
  for (std::size_t i = 1; i <= from.num_addresses; ++i) addresses.push_back("127.0.2." + std::to_string(i));
  return addresses;
}

// The address of a server on loopback.
inline sockaddr_in loopback_at(std::uint16_t port) {
  sockaddr_in addr{};
  addr.sin_family = AF_INET;
  addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  addr.sin_port = htons(port);
  return addr;
}

// Whether a newcomer's READ of 1 MiB is answered within a second. It is not beside peers of its own address that read
// nothing: the kernel takes some MB for each of them, and a newcomer stands behind all that others of its address got
// before they were ended. Nor is it where more peers of its own address than there are places ask again and again,
// since most of these are newcomers as well (docs/performance.md has the times).
inline bool promises_newcomers_a_read(const Attack& attack, const From& from) {
  constexpr std::size_t kPlaces = 1024;  // for which the attacks are made
  const bool comes_anew = attack.pace == Attack::Pace::kAgain && attack.connections > kPlaces;
  return (!attack.is_deaf && !comes_anew) || from.num_addresses != 0;
}

// The name of a test: letters and digits alone.
inline std::string test_name(std::string_view attack, const From& from) {
  std::string name;
  bool starts_word = true;
  for (const char c : attack) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) != 0) name.push_back(starts_word ? static_cast<char>(std::toupper(letter)) : c);
    starts_word = std::isalnum(letter) == 0;
  }
  return name + "From" + from.name;
}

}  // namespace weft::exhaust
