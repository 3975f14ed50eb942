#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Makes text that a peer chose (names, symbolic links' targets, reasons, owners) safe for a terminal.
namespace weft::apps {

// printable returns text as one line that cannot control a terminal. Well-formed UTF-8 stays as it is (RFC 3629),
// except for control characters. "\x1b" and the like stand for C0, for DEL and for each octet that is not UTF-8.
// "\u202e" and the like stand for C1, for the bidirectional controls (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066
// to U+2069) and for the separators U+2028 and U+2029. Every message, log line and listing goes through it: see say()
// in command.cc, set_up_logging and nfs/show.cc.
std::string printable(std::string_view text);

// printable_tail gives the end of text, printable: at most max_len octets, cut between characters, behind "...".
std::string printable_tail(std::string_view text, std::size_t max_len);

// CodePoint is the front of a text: one character, or one octet that is not part of a character (well_formed false,
// value the octet, len 1).
struct CodePoint {
  char32_t value = 0;
  std::size_t len = 1;  // octets
  bool well_formed = false;
};
// Precondition: text is not empty.
CodePoint front_code_point(std::string_view text);

// is_control tells whether a character could control a terminal. printable escapes all of these characters.
bool is_control(char32_t c);

}  // namespace weft::apps
