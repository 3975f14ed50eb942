#include "apps/nfs/show.h"

#include <gtest/gtest.h>

namespace weft::nfs {
namespace {

using nfs3::Fattr3;
using nfs3::Ftype3;

std::string text_of(Ftype3 type, std::uint32_t mode) {
  Fattr3 attributes;
  attributes.type = type;
  attributes.mode = mode;
  return mode_text(attributes);
}

TEST(Show, ModesAreWrittenAsLsDoes) {
  EXPECT_EQ(text_of(Ftype3::kReg, 0644), "-rw-r--r--");
  EXPECT_EQ(text_of(Ftype3::kDir, 01777), "drwxrwxrwt");
  EXPECT_EQ(text_of(Ftype3::kReg, 06711), "-rws--s--x");
  EXPECT_EQ(text_of(Ftype3::kReg, 07000), "---S--S--T");
  EXPECT_EQ(text_of(Ftype3::kLnk, 0777), "lrwxrwxrwx");
  EXPECT_EQ(text_of(Ftype3::kBlk, 0), "b---------");
  EXPECT_EQ(text_of(Ftype3::kChr, 0), "c---------");
  EXPECT_EQ(text_of(Ftype3::kSock, 0), "s---------");
  EXPECT_EQ(text_of(Ftype3::kFifo, 0), "p---------");
}

TEST(Show, TimesAreUtc) {
  EXPECT_EQ(time_text({0, 999999999}), "1970-01-01T00:00:00Z");
  EXPECT_EQ(time_text({0xffffffff, 0}), "2106-02-07T06:28:15Z");
}

}  // namespace
}  // namespace weft::nfs
