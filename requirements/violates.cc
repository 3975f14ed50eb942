#include "requirements/violates.h"

#ifdef WEFT_MUTATE
#include <cstdlib>
#include <string>

namespace weft {

namespace {

// ids: "DDP-7.1-09 DDP-7.1-10"
bool has_id(std::string_view ids, std::string_view id) {
  const std::string all = ' ' + std::string(ids) + ' ';
  return all.find(' ' + std::string(id) + ' ') != std::string::npos;
}

}  // namespace

bool is_switched_off(std::string_view ids, std::source_location place) {
  static const char* const switched_off = std::getenv("WEFT_SWITCH_OFF");
  if (switched_off == nullptr) return false;
  const std::string_view wanted(switched_off);
  const std::size_t at = wanted.find('@');
  if (!has_id(ids, wanted.substr(0, at))) return false;
  if (at == std::string_view::npos) return true;
  // The compiler's name of the file may be longer than its path inside the source folder.
  const std::string here = '/' + std::string(place.file_name()) + ':' + std::to_string(place.line());
  return here.ends_with('/' + std::string(wanted.substr(at + 1)));
}

}  // namespace weft
#endif
