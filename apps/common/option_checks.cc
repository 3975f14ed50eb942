#include "apps/common/option_checks.h"

#include <cmath>
#include <cstdlib>

namespace weft::apps {

std::string empty_fault(const std::string& text) {
  return text.empty() ? "a name is wanted, not ''" : "";
}

std::string nan_fault(const std::string& text) {
  return std::isnan(std::strtod(text.c_str(), nullptr)) ? "a number is wanted, not '" + text + "'" : "";
}

}  // namespace weft::apps
