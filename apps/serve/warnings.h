#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "apps/common/allow_list.h"

namespace weft::serve {

// ServeScene holds the facts that decide about access to the exported directory.
struct ServeScene {
  uid_t user = 0;  // effective
  bool read_write = false;
  sockaddr_storage listen{};
  sockaddr_storage mount_listen{};
  apps::AllowList allow;
};

// start_warnings: one sentence for each fact that the operator may not expect: requests that run as root, and listeners
// that other hosts reach. Empty if there is none.
std::vector<std::string> start_warnings(const ServeScene& scene);

// user_name: the name in the password file, or the number if the file has no name for it.
std::string user_name(uid_t user);

}  // namespace weft::serve
