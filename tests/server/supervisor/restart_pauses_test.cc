#include "server/supervisor/restart_pauses.h"

#include <gtest/gtest.h>

namespace torpor::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RestartPauses, TheFirstIsNoneAndTheOthersDoubleUpToTheLongest) {
  RestartPauses pauses({.first = milliseconds(100), .longest = milliseconds(350)});
  EXPECT_EQ(pauses.Next(milliseconds(500)), milliseconds(0));
  EXPECT_EQ(pauses.Next(milliseconds(500)), milliseconds(100));
  EXPECT_EQ(pauses.Next({}), milliseconds(200));
  EXPECT_EQ(pauses.Next({}), milliseconds(350));
  EXPECT_EQ(pauses.Next({}), milliseconds(350));
}

TEST(RestartPauses, ALongRunMakesUpForWhatWasBefore) {
  RestartPauses pauses({.healthy_after = seconds(10)});
  for (int i = 0; i < 5; ++i) pauses.Next({});
  EXPECT_EQ(pauses.failures(), 5);
  EXPECT_EQ(pauses.Next(seconds(10)), milliseconds(0));
  EXPECT_EQ(pauses.failures(), 0);
  EXPECT_EQ(pauses.Next({}), milliseconds(0));
  EXPECT_EQ(pauses.Next({}), milliseconds(100));
}

}  // namespace
}  // namespace torpor::server
