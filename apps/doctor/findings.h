#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/doctor/facts.h"

namespace weft::apps::doctor {

// Mark: kOk needs nothing, kNote is good to know, kProblem keeps something from working.
enum class Mark : std::uint8_t { kOk, kNote, kProblem };

// Finding is one line of the report. Texts have no full stop and no newline.
struct Finding {
  std::string section;
  std::string name;
  Mark mark = Mark::kOk;
  std::string text;
  std::string fix = {};  // the remedy; empty if none is needed
};

// examine judges a machine. The findings of a section stand together, sections in the order of the report. The last
// section, kWillWork, has one finding for each set-up: kOk if it works; otherwise the missing parts and the way to get
// them.
std::vector<Finding> examine(const Facts& facts);
inline constexpr const char* kWillWork = "what will work";

// Whether any backend works at all.
bool anything_works(const Facts& facts);

const char* mark_name(Mark mark);
// to_text: the whole report, with a newline at the end. to_json: one object per line.
std::string to_text(const std::vector<Finding>& findings);
std::string to_json(const std::vector<Finding>& findings);

}  // namespace weft::apps::doctor
