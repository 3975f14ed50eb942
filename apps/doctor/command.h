#pragma once

#include "apps/common/global_options.h"

namespace weft::apps {

// register_doctor_command adds `weft doctor`: it shows what this machine can do, and how to add the rest.
void register_doctor_command(CLI::App& root, CommandContext& context);

}  // namespace weft::apps
