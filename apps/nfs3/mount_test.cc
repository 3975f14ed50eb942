#include "apps/nfs3/mount.h"

#include <gtest/gtest.h>

#include "apps/nfs3/samples_test.h"

namespace weft::nfs3 {
namespace {

using Octets = std::vector<std::uint8_t>;
using rpcrdma::xdr::XdrReader;
using rpcrdma::xdr::XdrWriter;

template <typename T>
void check_message(const T& value) {
  Octets octets;
  XdrWriter writer(octets);
  emit(writer, value);
  XdrReader reader(octets);
  T parsed;
  ASSERT_TRUE(parse(reader, parsed));
  EXPECT_TRUE(reader.at_end());
  EXPECT_TRUE(parsed == value);
  for (std::size_t len = 0; len < octets.size(); ++len) {
    XdrReader cut(ConstBytes(octets).first(len));
    T ignored;
    EXPECT_FALSE(parse(cut, ignored)) << "cut at " << len;
  }
}

TEST(Mount, MessagesComeBack) {
  check_message(DirpathArgs{"/export/home"});
  check_message(DirpathArgs{""});
  check_message(MntRes{Mountstat3::kOk, testing::full_fh(), {1, 0, 390003}});
  check_message(MntRes{Mountstat3::kAcces, {}, {}});
  check_message(DumpRes{{{"host", "/a"}, {"other", "/b"}}});
  check_message(DumpRes{});
  check_message(ExportRes{{{"/", {}}, {"/srv", {"@trusted", "10.0.0.0/8"}}}});
}

TEST(Mount, MntGolden) {
  Octets octets;
  XdrWriter writer(octets);
  emit(writer, MntRes{Mountstat3::kOk, testing::short_fh(), {1}});
  EXPECT_EQ(octets, (Octets{0, 0, 0, 0, 0, 0, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1}));
}

TEST(Mount, Limits) {
  for (const std::size_t len : {kMntPathLen, kMntPathLen + 1}) {
    Octets octets;
    XdrWriter writer(octets);
    emit(writer, DirpathArgs{std::string(len, 'p')});
    XdrReader reader(octets);
    DirpathArgs args;
    EXPECT_EQ(parse(reader, args), len == kMntPathLen);
  }
  Octets flavors = {0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
  XdrReader reader(flavors);
  MntRes res;
  EXPECT_FALSE(parse(reader, res));
}

}  // namespace
}  // namespace weft::nfs3
