#include "apps/doctor/command.h"

#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "apps/common/command.h"
#include "apps/doctor/findings.h"

namespace weft::apps {
namespace {

int run(bool json) {
  doctor::Facts facts;
  utsname system{};
  doctor::read_system("", ::uname(&system) == 0 ? system.release : "", facts);
  doctor::ask_process(facts);
  const auto findings = doctor::examine(facts);
  const std::string report = json ? doctor::to_json(findings) : doctor::to_text(findings);
  std::fwrite(report.data(), 1, report.size(), stdout);
  if (doctor::anything_works(facts)) return kExitDone;
  return fail("no backend works on this machine: " + facts.soft_error.value_or(""));
}

}  // namespace

void register_doctor_command(CLI::App& root, CommandContext& context) {
  auto json = std::make_shared<bool>(false);
  CLI::App* sub = root.add_subcommand("doctor", "Report what this machine can do, and how to get the rest.");
  sub->add_flag("--json", *json, "print each finding as a JSON object, one per line");
  sub->footer(
      "Example:\n  weft doctor\n"
      "Each line has a mark: ok, note (good to know, or needed by some set-ups only) or problem. It needs no "
      "privilege\n"
      "and sends nothing. Exit status: 0 if a backend works, 1 if none does.");
  sub->callback([json, &context] { context.exit_status = run(*json); });
}

}  // namespace weft::apps
