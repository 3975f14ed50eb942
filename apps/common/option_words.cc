#include "apps/common/option_words.h"

namespace weft::apps {
namespace {

struct Words {
  std::string_view field;
  std::string_view option;
};

constexpr Words kWords[] = {
    {"SoftConfig::mpa_revision", "--mpa-rev"},
    {"SoftConfig::crc false", "--crc off"},
    {"SoftConfig::direct_placement", "--placement direct"},
    {"SoftConfig::markers", "--markers"},
    {"SoftConfig::peer", "--peer"},
    {"SoftConfig::rtr", "--rtr"},
    {"SoftConfig::nudge", "--nudge"},
    {"SoftConfig::port_map.ask", "--port-map"},
    {"SoftConfig::ord", "--ord"},
    {"SoftConfig::ird", "--ird"},
    {"ClientConfig::inline_threshold", "--inline"},
    {"ClientConfig::credits", "--credits"},
    {"ClientConfig::protocols", "--rpcrdma"},
};

}  // namespace

std::string in_options(std::string_view text) {
  std::string out(text);
  for (const Words& words : kWords) {
    for (std::size_t at = 0; (at = out.find(words.field, at)) != std::string::npos; at += words.option.size()) {
      out.replace(at, words.field.size(), words.option);
    }
  }
  return out;
}

}  // namespace weft::apps
