#include "server/config/router_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torpor::server {
namespace {

TEST(RouterSettings, EverySettingSurvivesTheDocument) {
  const RouterProcessSettings settings{
      .torpord_socket = "/run/torpor/router.sock",
      .router = {.http_address = "127.0.0.1:80",
                 .metrics_address = "",
                 .queue_timeout = std::chrono::seconds(1),
                 .header_timeout = std::chrono::seconds(2),
                 .idle_timeout = std::chrono::seconds(3),
                 .client_timeout = std::chrono::seconds(4),
                 .max_connections = 5,
                 .max_header_bytes = 6 * kKiB,
                 .max_body_bytes = 7 * kKiB,
                 .request_buffer_bytes = 8 * kKiB,
                 .request_memory = 10 * kMiB,
                 .spool_limit = 11 * kKiB,
                 .spool_dir = "/var/spool",
                 .response_buffer_bytes = 9 * kKiB},
      .drain_timeout = std::chrono::milliseconds(1500),
      .log = {.level = LogLevel::kWarn, .format = LogFormat::kJson}};
  for (const Setting<RouterProcessSettings>& setting : RouterProcessSettingTable()) {
    EXPECT_NE(setting.text(settings), setting.text(RouterProcessSettings())) << setting.key;
  }
  const auto read = ParseRouterSettings(FormatRouterSettings(settings));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, settings);
}

TEST(RouterSettings, TheSocketIsRequired) {
  const auto settings = ParseRouterSettings(R"({"queue_timeout": "soon"})");
  ASSERT_FALSE(settings.ok());
  EXPECT_THAT(std::string(settings.status().message()),
              testing::AllOf(testing::HasSubstr("queue_timeout: "),
                             testing::HasSubstr("torpord_socket is missing")));
}

}  // namespace
}  // namespace torpor::server
