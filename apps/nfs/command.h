#pragma once

namespace CLI {
class App;
}

namespace weft::apps {

struct CommandContext;

// register_nfs_command adds `weft nfs` (see common/command.h).
void register_nfs_command(CLI::App& root, CommandContext& context);

}  // namespace weft::apps
