#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <iterator>
#include <utility>

namespace weft::apps {

// say writes formatted text. An error stays with the stream (ferror), where fmt::print throws an exception.
template <typename... T>
void say(std::FILE* out, fmt::format_string<T...> format, T&&... values) {
  fmt::memory_buffer text;
  fmt::format_to(std::back_inserter(text), format, std::forward<T>(values)...);
  std::fwrite(text.data(), 1, text.size(), out);
}

}  // namespace weft::apps
