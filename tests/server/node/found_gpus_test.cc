#include "server/node/found_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torpor::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kTwoDevices =
    R"({"devices": [{"index": 0, "total_bytes": 2000}, {"index": 1, "total_bytes": 1000}]})";

TEST(FoundGpusTest, AllAreServedUnlessSomeAreConfigured) {
  EXPECT_THAT(ReadDeviceList(kTwoDevices, {})->gpus, ElementsAre(GpuIndex{0}, GpuIndex{1}));
  EXPECT_THAT(ReadDeviceList(kTwoDevices, {1})->gpus, ElementsAre(GpuIndex{1}));
}

TEST(FoundGpusTest, TheSmallestOfTheServedCounts) {
  EXPECT_EQ(ReadDeviceList(kTwoDevices, {})->least_memory, 1000u);
  EXPECT_EQ(ReadDeviceList(kTwoDevices, {0})->least_memory, 2000u);
}

TEST(FoundGpusTest, WhatIsMissingIsSaid) {
  EXPECT_THAT(ReadDeviceList(kTwoDevices, {2}).status().message(), HasSubstr("there are 2"));
  EXPECT_TRUE(absl::IsNotFound(ReadDeviceList(R"({"devices": []})", {}).status()));
  for (const char* const output : {"", "[]", "{}", R"({"devices": 3})", R"({"devices": [3]})",
                                   R"({"devices": [{"total_bytes": -1}]})"}) {
    EXPECT_TRUE(absl::IsInternal(ReadDeviceList(output, {}).status())) << output;
  }
}

TEST(FoundGpusTest, ChunksGrowWithTheGpu) {
  EXPECT_EQ(ChunkBytesFor(AddressMode::kMap, 96 * kMiB), 2 * kMiB);
  EXPECT_EQ(ChunkBytesFor(AddressMode::kMap, 32 * kGiB), 8 * kMiB);
  EXPECT_EQ(ChunkBytesFor(AddressMode::kMap, 141 * kGiB), 32 * kMiB);
  EXPECT_EQ(ChunkBytesFor(AddressMode::kMap, 1024 * kGiB), 32 * kMiB);
  EXPECT_EQ(ChunkBytesFor(AddressMode::kTranslate, 141 * kGiB), 2 * kMiB);
}

}  // namespace
}  // namespace torpor::server
