#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/common/printable.h"
#include "apps/doctor/findings.h"

namespace weft::apps::doctor {

const char* mark_name(Mark mark) {
  switch (mark) {
    case Mark::kOk: return "ok";
    case Mark::kNote: return "note";
    case Mark::kProblem: return "problem";
  }
  return "unknown";
}

namespace {

std::size_t name_width(const std::vector<Finding>& findings, const std::string& section) {
  std::size_t width = 0;
  for (const Finding& finding : findings)
    if (finding.section == section) width = std::max(width, printable(finding.name).size());
  return width;
}

}  // namespace

std::string to_text(const std::vector<Finding>& findings) {
  std::string text;
  std::string section;
  std::size_t width = 0;
  for (const Finding& finding : findings) {
    if (finding.section != section) {
      width = name_width(findings, finding.section);
      text += fmt::format("{}{}\n", section.empty() ? "" : "\n", finding.section);
      section = finding.section;
    }
    text += fmt::format("  {:<8} {:<{}}  {}\n", mark_name(finding.mark), printable(finding.name), width,
                        printable(finding.text));
    if (!finding.fix.empty()) text += fmt::format("  {:<8} {:<{}}  -> {}\n", "", "", width, printable(finding.fix));
  }
  return text;
}

std::string to_json(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    const nlohmann::ordered_json object = {{"section", finding.section},
                                           {"name", finding.name},
                                           {"mark", mark_name(finding.mark)},
                                           {"text", finding.text},
                                           {"fix", finding.fix}};
    // Names of devices and interfaces may hold any octet, so dump escapes every character beyond ASCII.
    text += object.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
  }
  return text;
}

}  // namespace weft::apps::doctor
