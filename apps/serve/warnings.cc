#include "apps/serve/warnings.h"

#include <pwd.h>

#include <array>

#include "apps/common/address.h"
#include "base/address.h"
#include "fmt/format.h"

namespace weft::serve {

std::string user_name(uid_t user) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> room;
  if (::getpwuid_r(user, &entry, room.data(), room.size(), &found) == 0 && found != nullptr) return found->pw_name;
  return fmt::format("{}", user);
}

std::vector<std::string> start_warnings(const ServeScene& scene) {
  std::vector<std::string> out;
  const char* verb = scene.read_write ? "reads and changes" : "reads";
  if (scene.user == 0) {
    out.push_back(fmt::format(
        "requests run as root: every client, whatever its user, {} every file of the export. Run it as a dedicated "
        "user to limit this.",
        verb));
  }
  for (const sockaddr_storage* addr : {&scene.listen, &scene.mount_listen}) {
    if (apps::is_loopback(*addr)) continue;
    const std::string who =
        scene.allow.empty() ? "every user of every host that reaches it" : "every user of the hosts of --allow";
    const std::string what = addr == &scene.listen ? fmt::format("{} {} files", who, verb)
                                                   : fmt::format("{} gets the handle of the root", who);
    const char* advice = scene.allow.empty() ? "; --allow limits it to some hosts" : "";
    out.push_back(fmt::format("{} is reached from other hosts: {} as user {}{}.", address_str(*addr), what,
                              user_name(scene.user), advice));
  }
  return out;
}

}  // namespace weft::serve
