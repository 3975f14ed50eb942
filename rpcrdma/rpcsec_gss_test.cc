#include "rpcrdma/rpcsec_gss.h"

#include <gtest/gtest.h>

#include <vector>

#include "rpcrdma/testing/gss.h"

namespace weft::rpcrdma {
namespace {

using testing::gss_cred;
using testing::GssService;

TEST(RpcsecGss, OnlyWrappedAndControlMessagesStayWhole) {
  EXPECT_TRUE(may_reduce(OpaqueAuth{}));
  EXPECT_TRUE(may_reduce(OpaqueAuth{1, std::vector<std::uint8_t>(40)}));
  for (const std::uint32_t version : {1u, 2u}) {
    EXPECT_TRUE(may_reduce(gss_cred(GssService::kNone, 0, version)));
    EXPECT_FALSE(may_reduce(gss_cred(GssService::kIntegrity, 0, version)));
    EXPECT_FALSE(may_reduce(gss_cred(GssService::kPrivacy, 0, version)));
    // INIT, CONTINUE_INIT, DESTROY, BIND_CHANNEL
    for (const std::uint32_t procedure : {1u, 2u, 3u, 4u}) {
      EXPECT_FALSE(may_reduce(gss_cred(GssService::kNone, procedure, version))) << procedure;
    }
  }
}

TEST(RpcsecGss, WhatCannotBeReadStaysWhole) {
  EXPECT_FALSE(may_reduce(gss_cred(GssService::kNone, 0, 3)));
  EXPECT_FALSE(may_reduce(gss_cred(GssService::kNone, 0, 0)));
  const OpaqueAuth whole = gss_cred(GssService::kNone);
  for (std::size_t len = 0; len < 16; ++len) {
    const OpaqueAuth cut{whole.flavor, {whole.body.begin(), whole.body.begin() + static_cast<std::ptrdiff_t>(len)}};
    EXPECT_FALSE(may_reduce(cut)) << len;
  }
}

}  // namespace
}  // namespace weft::rpcrdma
