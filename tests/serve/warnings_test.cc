#include "apps/serve/warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/common/address.h"

namespace weft::serve {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

ServeScene scene_of(uid_t user, const std::string& listen, const std::string& mount_listen,
                    const std::vector<std::string>& allow = {}) {
  ServeScene scene;
  scene.user = user;
  scene.listen = *apps::resolve_address(listen);
  scene.mount_listen = *apps::resolve_address(mount_listen);
  scene.allow = *apps::AllowList::parse(allow);
  return scene;
}

TEST(StartWarnings, NoneForAnOrdinaryUserOnLoopback) {
  EXPECT_THAT(start_warnings(scene_of(1000, "127.0.0.1:1", "[::1]:2")), IsEmpty());
}

TEST(StartWarnings, RootIsTold) {
  ServeScene scene = scene_of(0, "127.0.0.1:1", "127.0.0.1:2");
  EXPECT_THAT(start_warnings(scene), ElementsAre(AllOf(HasSubstr("run as root"), Not(HasSubstr("changes")))));
  scene.read_write = true;
  EXPECT_THAT(start_warnings(scene), ElementsAre(HasSubstr("reads and changes")));
}

TEST(StartWarnings, EachListenerBeyondLoopbackIsTold) {
  EXPECT_THAT(start_warnings(scene_of(12345678, "0.0.0.0:1", "127.0.0.1:2")),
              ElementsAre(AllOf(HasSubstr("0.0.0.0:1"), HasSubstr("every user of every host"),
                                HasSubstr("as user 12345678"), HasSubstr("--allow"))));
  EXPECT_THAT(start_warnings(scene_of(12345678, "192.0.2.7:1", "[::]:2")),
              ElementsAre(HasSubstr("192.0.2.7:1"), AllOf(HasSubstr("[::]:2"), HasSubstr("handle"))));
  EXPECT_THAT(start_warnings(scene_of(12345678, "0.0.0.0:1", "127.0.0.1:2", {"192.0.2.0/24"})),
              ElementsAre(AllOf(HasSubstr("hosts of --allow"), Not(HasSubstr("every user of every host")))));
}

}  // namespace
}  // namespace weft::serve
