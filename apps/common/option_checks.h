#pragma once

#include <string>

// Checks of an option's text for CLI::Option::check. Each returns what is wrong, or an empty text.
namespace weft::apps {

// empty_fault is for names of files, folders and devices: an empty one is most often a variable of a script that is not
// set, and must not count as an option that is not given.
std::string empty_fault(const std::string& text);

// nan_fault stands beside CLI::Range, whose comparisons let "nan" pass.
std::string nan_fault(const std::string& text);

}  // namespace weft::apps
