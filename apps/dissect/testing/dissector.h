#pragma once

#include <gtest/gtest.h>

#include "apps/dissect/dissector.h"
#include "apps/dissect/testing/wire.h"

namespace weft::apps::dissect::testing {

struct DissectorTest : ::testing::Test {
  Told told;
  Dissector dissector{{}, told};
};

}  // namespace weft::apps::dissect::testing
