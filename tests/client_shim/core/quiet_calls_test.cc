#include "client_shim/core/quiet_calls.h"

#include <gtest/gtest.h>

#include <thread>

namespace torpor::shim {
namespace {

TEST(QuietCallsTest, AMarkIsOfItsThread) {
  EXPECT_FALSE(SetCallsQuiet(true));
  EXPECT_TRUE(CallsAreQuiet());
  std::thread([] { EXPECT_FALSE(CallsAreQuiet()); }).join();
  EXPECT_TRUE(SetCallsQuiet(false));
  EXPECT_FALSE(CallsAreQuiet());
}

}  // namespace
}  // namespace torpor::shim
