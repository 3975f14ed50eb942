#pragma once

#include <string>
#include <string_view>

namespace weft::apps {

// in_options takes a text of the libraries and replaces the fields in it by the program's options: "--mpa-rev 1" for
// "SoftConfig::mpa_revision 1". Every message and log line goes through it.
std::string in_options(std::string_view text);

}  // namespace weft::apps
