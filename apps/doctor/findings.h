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
  std::string fix = {};  // what to do about it; empty where nothing is to be done
};

// examine judges a machine. The findings of a section stand together, sections in the order of the report; the last,
// kWillWork, has one finding for each set-up: kOk where it works, else what it lacks and how to get that.
std::vector<Finding> examine(const Facts& facts);
inline constexpr const char* kWillWork = "what will work";

// Whether any backend works at all.
bool anything_works(const Facts& facts);

const char* mark_name(Mark mark);
// to_text: the whole report, with a newline at the end; to_json: one object per line.
std::string to_text(const std::vector<Finding>& findings);
std::string to_json(const std::vector<Finding>& findings);

}  // namespace weft::apps::doctor
