#pragma once

#include "apps/common/global_options.h"

namespace weft::apps {

// register_doctor_command adds `weft doctor`: what this machine can do, and what to do about the rest.
void register_doctor_command(CLI::App& root, CommandContext& context);

}  // namespace weft::apps
