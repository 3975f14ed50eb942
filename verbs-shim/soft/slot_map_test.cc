#include "verbs-shim/soft/slot_map.h"

#include <gtest/gtest.h>

namespace weft::verbs::soft {
namespace {

struct Named {
  Handle self;
};

Handle add(SlotMap<Named>& map) {
  return map.add([](Handle self) { return std::make_unique<Named>(Named{self}); }).self;
}

TEST(SlotMapTest, AHandleFindsItsObjectUntilThatIsRemoved) {
  SlotMap<Named> map;
  EXPECT_EQ(map.find({}), nullptr);
  const Handle a = add(map);
  const Handle b = add(map);
  EXPECT_NE(a, b);
  EXPECT_EQ(map.find({}), nullptr);
  ASSERT_NE(map.find(a), nullptr);
  EXPECT_EQ(map.find(a)->self, a);
  map.remove(a);
  EXPECT_EQ(map.find(a), nullptr);
  EXPECT_EQ(map.find(b)->self, b);
}

TEST(SlotMapTest, ASlotIsUsedAgainUnderAnotherHandle) {
  SlotMap<Named> map;
  const Handle a = add(map);
  map.remove(a);
  const Handle next = add(map);
  EXPECT_EQ(next.index, a.index);
  EXPECT_NE(next, a);
  EXPECT_EQ(map.find(a), nullptr);
  map.remove(a);
  EXPECT_NE(map.find(next), nullptr) << "a stale handle removes nothing";
}

TEST(SlotMapTest, ObjectsKeepTheirAddress) {
  SlotMap<Named> map;
  const Handle first = add(map);
  const Named* const at = map.find(first);
  for (int i = 0; i < 100; ++i) add(map);
  EXPECT_EQ(map.find(first), at);
  map.remove(first);
  int num = 0;
  map.for_each([&](Named& named) { num += named.self == first ? 0 : 1; });
  EXPECT_EQ(num, 100);
}

}  // namespace
}  // namespace weft::verbs::soft
