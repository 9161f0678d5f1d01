#include "server/settings/executor_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torpor::server {
namespace {

using ::testing::HasSubstr;

ExecutorSettings AllChanged() {
  return {.gpu = 3,
          .epoch = 18'446'744'073'709'551'615U,
          .place = 1,
          .daemon_socket = "/run/torpor/node.sock",
          .socket = "/run/a \"b\".sock",
          .socket_mode = 0666,
          .contexts = 3,
          .pool_socket = "/run/torpor/pool-3.sock",
          .descriptor_socket = "/run/torpor/descriptors.sock",
          .module_dir = "/var/lib/torpor/modules",
          .link_profile_dir = "/var/lib/torpor/links",
          .compute_cache_dir = "/var/lib/torpor/compute_cache",
          .cuda_library_dir = "/usr/lib",
          .addresses = {.device_base = 0x2000'0000'0000,
                        .device_bytes = 1024 * kGiB,
                        .host_base = 0x3000'0000'0000,
                        .host_bytes = 512 * kGiB},
          .device = {.driver_reserve = 512 * kMiB,
                     .pool_bytes = 256 * kMiB,
                     .chunk_bytes = 4 * kMiB,
                     .address_mode = AddressMode::kTranslate,
                     .partition_sizes = std::vector<Bytes>{2 * kMiB, 32 * kMiB},
                     .swap_pinned = false,
                     .swap_pinned_ahead = false,
                     .swap_pipeline = SwapPipeline::kParameter,
                     .swap_group_bytes = 512 * kKiB,
                     .swap_wait = SwapWait::kRange,
                     .transport = Transport::kRings,
                     .huge_pages = HugePages::kOff,
                     .numa_binding = NumaBinding::kOff,
                     .spare_executor = false,
                     .seccomp = Seccomp::kLog},
          .log = {.level = LogLevel::kWarn, .format = LogFormat::kJson}};
}

TEST(ExecutorSettingsTest, EverySettingSurvivesTheDocument) {
  const ExecutorSettings settings = AllChanged();
  for (const Setting<ExecutorSettings>& setting : ExecutorSettingTable()) {
    EXPECT_NE(setting.text(settings), setting.text(ExecutorSettings())) << setting.key;
  }
  const std::string document = FormatExecutorSettings(settings);
  EXPECT_THAT(document, HasSubstr("\"chunk_bytes\":\"4MiB\""));
  const auto read = ParseExecutorSettings(document);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, settings);
}

TEST(ExecutorSettingsTest, MissingKeysHaveTheirDefaults) {
  const auto settings = ParseExecutorSettings(
      R"({"gpu": "1", "epoch": "2", "daemon_socket": "/d", "socket": "/s",
          "descriptor_socket": "/e", "module_dir": "/m", "device_address_base": "4096",
          "device_address_bytes": "1GiB", "host_address_base": "8192",
          "host_address_bytes": "1GiB"})");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->gpu, 1);
  EXPECT_EQ(settings->device, DeviceSettings());
  EXPECT_EQ(settings->log, LogSettings());
}

TEST(ExecutorSettingsTest, EverythingThatIsWrongIsToldAtOnce) {
  const auto settings = ParseExecutorSettings(
      R"({"gpu": 1, "swap_wait": "never", "sockets": "/s", "epoch": "2", "daemon_socket": "/d",
          "socket": "/s", "descriptor_socket": "/e"})");
  EXPECT_EQ(settings.status().message(),
            "settings: gpu: expected text (COUNT)\n"
            "settings: sockets: no such setting\n"
            "settings: swap_wait: unknown value \"never\"; expected allocation or range\n"
            "settings: module_dir is missing\n"
            "settings: device_address_base is missing\n"
            "settings: device_address_bytes is missing\n"
            "settings: host_address_base is missing\n"
            "settings: host_address_bytes is missing");
}

TEST(ExecutorSettingsTest, OnlyAnObjectIsADocument) {
  for (const char* const text : {"", "[]", "{", "null", "\"gpu\""}) {
    EXPECT_EQ(ParseExecutorSettings(text).status().message(),
              "settings: expected a JSON object, such as {\"gpu\": \"...\"}")
        << text;
  }
}

}  // namespace
}  // namespace torpor::server
