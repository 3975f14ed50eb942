#pragma once

#include <string>
#include <string_view>

namespace weft::apps {

// in_options takes a text of the libraries and puts it into the program's words: "--mpa-rev 1" for
// "SoftConfig::mpa_revision 1", and the commands and ports that the libraries do not know, for example of the Linux NFS
// server. Every message and log line goes through it.
std::string in_options(std::string_view text);

}  // namespace weft::apps
