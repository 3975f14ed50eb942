#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <iterator>
#include <utility>

namespace weft::apps::dissect {

// say writes formatted text. An error stays with the stream (ferror): fmt::print would throw.
template <typename... T>
void say(std::FILE* out, fmt::format_string<T...> format, T&&... values) {
  fmt::memory_buffer text;
  fmt::format_to(std::back_inserter(text), format, std::forward<T>(values)...);
  std::fwrite(text.data(), 1, text.size(), out);
}

}  // namespace weft::apps::dissect
