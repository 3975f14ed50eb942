#pragma once

#include <string>

// Checks for CLI::Option::check. Each function returns the fault of an option's text, or an empty text for none.
namespace weft::apps {

// empty_fault is for names of files, folders and devices: an empty one is most often a variable of a script that is not
// set, and must not count as an option that is not given.
std::string empty_fault(const std::string& text);

// nan_fault stands beside CLI::Range, whose comparisons let "nan" pass.
std::string nan_fault(const std::string& text);

}  // namespace weft::apps
