#include "client_shim/core/settings.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace torpor::shim {
namespace {

using std::chrono::milliseconds;

milliseconds ReconnectTimeout(const char* text) {
  setenv("TORPOR_RECONNECT_TIMEOUT", text, 1);
  const milliseconds timeout = ReadSettings().reconnect_timeout;
  unsetenv("TORPOR_RECONNECT_TIMEOUT");
  return timeout;
}

TEST(SettingsTest, DurationsHaveUnits) {
  EXPECT_EQ(ReconnectTimeout("5"), milliseconds(5000));
  EXPECT_EQ(ReconnectTimeout("5s"), milliseconds(5000));
  EXPECT_EQ(ReconnectTimeout("250ms"), milliseconds(250));
  EXPECT_EQ(ReconnectTimeout("2m"), milliseconds(120'000));
  EXPECT_EQ(ReconnectTimeout("1h"), milliseconds(3'600'000));
  EXPECT_EQ(ReconnectTimeout("0"), milliseconds(0));
}

TEST(SettingsTest, DurationsAreBoundedAndNonsenseIsTheDefault) {
  const milliseconds otherwise = Settings().reconnect_timeout;
  EXPECT_EQ(otherwise, milliseconds(60'000));
  for (const char* const text : {"", "s", "soon", "5 s", "-5", "5d"})
    EXPECT_EQ(ReconnectTimeout(text), otherwise) << text;
  for (const char* const text : {"48h", "9223372036854775807", "99999999999999999999h"})
    EXPECT_EQ(ReconnectTimeout(text), std::chrono::hours(24)) << text;
}

}  // namespace
}  // namespace torpor::shim
