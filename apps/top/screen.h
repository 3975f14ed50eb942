#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "apps/top/view.h"

namespace weft::apps::top {

// Page is the size of the terminal, in characters. height 0: no limit.
struct Page {
  std::size_t width = 100;
  std::size_t height = 0;
};

// screen_lines writes a view as lines for people, none of them longer than the page and no more than it holds. Text of
// the server goes through printable. where: the server's address.
std::vector<std::string> screen_lines(const View& view, const std::string& where, const Page& page);

// fit cuts a line to so many characters. A line that was cut ends with '>'.
std::string fit(std::string_view line, std::size_t width);

// json_lines writes it as JSON objects, one for all, one for each client and one for each procedure.
std::vector<std::string> json_lines(const View& view);

}  // namespace weft::apps::top
