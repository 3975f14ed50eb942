#pragma once

#include <string>
#include <string_view>

namespace weft::apps {

// in_options returns text of the libraries with the program's options in the place of the fields that it names:
// "--mpa-rev 1" for "SoftConfig::mpa_revision 1". Every message and log line goes through it.
std::string in_options(std::string_view text);

}  // namespace weft::apps
