#include "apps/nfs/url.h"

#include <gtest/gtest.h>

#include "apps/nfs3/types.h"

namespace weft::nfs {
namespace {

using Names = std::vector<std::string>;

TEST(Url, DefaultsAndParts) {
  RecordProperty("proves", "R1-11-03 U1-9-01");
  const Url url = *parse_url("nfs+rdma://server/a/b.txt");
  EXPECT_EQ(url.host, "server");
  EXPECT_EQ(url.port, 20049);
  EXPECT_EQ(nfs3::kProgram, 100003u);
  EXPECT_EQ(url.mountport, 20048);
  EXPECT_EQ(url.path, (Names{"a", "b.txt"}));
  EXPECT_EQ(url.basename(), "b.txt");
  EXPECT_FALSE(url.trailing_slash);
}

TEST(Url, PortsAndIpv6) {
  const Url url = *parse_url("NFS+RDMA://[::1]:1234/x/?mountport=99");
  EXPECT_EQ(url.host, "::1");
  EXPECT_EQ(url.port, 1234);
  EXPECT_EQ(url.mountport, 99);
  EXPECT_EQ(url.path, Names{"x"});
  EXPECT_TRUE(url.trailing_slash);
}

TEST(Url, RootIsADirectory) {
  for (const char* text :
       {"nfs+rdma://h", "nfs+rdma://h/", "nfs+rdma://h///", "nfs+rdma://h/a/..", "nfs+rdma://h/../.."}) {
    const auto url = parse_url(text);
    ASSERT_TRUE(url.ok()) << text;
    EXPECT_TRUE(url->path.empty()) << text;
    EXPECT_TRUE(url->trailing_slash) << text;
  }
}

TEST(Url, PercentEncodingComesBack) {
  const Url url = *parse_url("nfs+rdma://h/100%25%20sure/%C3%A4%3f%23/+plus");
  EXPECT_EQ(url.path, (Names{"100% sure", "\xc3\xa4?#", "+plus"}));
  EXPECT_EQ(*parse_url(url.str()), url);
  EXPECT_EQ(url.str(), "nfs+rdma://h/100%25%20sure/%C3%A4%3F%23/+plus");
  Url every{.host = "h", .path = {""}};
  for (int c = 1; c < 256; ++c) {
    if (c != '/') every.path[0] += static_cast<char>(c);
  }
  EXPECT_EQ(*parse_url(every.str()), every);
}

TEST(Url, EncodedDotsAreDots) {
  EXPECT_EQ(parse_url("nfs+rdma://h/a/%2e%2E/b")->path, Names{"b"});
  EXPECT_EQ(parse_url("nfs+rdma://h/./a/.")->path, Names{"a"});
}

TEST(Url, RefusesNonsense) {
  for (const char* text :
       {"", "nfs://h/", "/local", "nfs+rdma:/h", "nfs+rdma://", "nfs+rdma:///path", "nfs+rdma://h:0/",
        "nfs+rdma://h:x/", "nfs+rdma://h/%", "nfs+rdma://h/%2", "nfs+rdma://h/%zz", "nfs+rdma://h/a%00b",
        "nfs+rdma://h/a%2Fb", "nfs+rdma://me@h/", "nfs+rdma://h/?x=1", "nfs+rdma://h/?mountport=0",
        "nfs+rdma://h/?mountport=70000", "nfs+rdma://h/?mountport=1&x=2"}) {
    const auto url = parse_url(text);
    EXPECT_FALSE(url.ok()) << text;
    EXPECT_EQ(url.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(Url, LooksLikeUrl) {
  EXPECT_TRUE(looks_like_url("nfs+rdma://h/"));
  EXPECT_TRUE(looks_like_url("http://h"));
  EXPECT_FALSE(looks_like_url("a/b://c"));
  EXPECT_FALSE(looks_like_url("://c"));
  EXPECT_FALSE(looks_like_url("plain"));
}

}  // namespace
}  // namespace weft::nfs
