#include "server/settings/node_addresses.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace torpor::server {
namespace {

constexpr Bytes kTiB = 1024 * kGiB;

TEST(NodeAddresses, TheConfiguredOnesAreTriedFirstAndTheLargestBeforeSmaller) {
  const auto candidates = AddressCandidates(0x4000'0000'0000, 8 * kTiB);
  ASSERT_FALSE(candidates.empty());
  EXPECT_EQ(candidates.front().device_base, 0x4000'0000'0000u);
  EXPECT_EQ(candidates.front().device_bytes, 8 * kTiB);
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    EXPECT_LE(candidates[i].device_bytes, candidates[i - 1].device_bytes);
  }
  EXPECT_EQ(candidates.back().device_bytes, kMinNodeAddresses);
}

TEST(NodeAddresses, AllLieBelowProgramsAndDoNotOverlapThemselves) {
  for (const Bytes bytes : {kTiB, 16 * kTiB, 64 * kTiB, 1024 * kTiB}) {
    const auto candidates = AddressCandidates(0x2000'0000'0000, bytes);
    EXPECT_FALSE(candidates.empty());
    for (const NodeAddresses& candidate : candidates) {
      EXPECT_GE(candidate.host_base, candidate.device_base + candidate.device_bytes);
      EXPECT_LE(candidate.host_base + candidate.host_bytes, 0x5400'0000'0000u);
    }
  }
}

TEST(NodeAddresses, WhatThreadSanitizerLeavesGivesOneChoice) {
  const auto candidates = AddressCandidates(0x10'0000'0000, 16 * kTiB);
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_GE(candidates[0].device_bytes, 128 * kGiB);
  EXPECT_LE(candidates[0].host_base + candidates[0].host_bytes, 0x80'0000'0000u);
}

TEST(NodeAddresses, ABaseAboveTheEndLeavesTheOthers) {
  const auto candidates = AddressCandidates(0x7000'0000'0000, 16 * kTiB);
  EXPECT_FALSE(candidates.empty());
  for (const NodeAddresses& candidate : candidates) {
    EXPECT_LT(candidate.device_base, 0x5400'0000'0000u);
  }
}

TEST(NodeAddresses, ABaseWithoutRoomGivesNone) {
  EXPECT_TRUE(AddressCandidates(0x80'0000'0000 - kGiB, 16 * kTiB).empty());
}

// Executors map the states of a segment's blocks, 8 bytes for 64 KiB, by themselves.
TEST(NodeAddresses, SegmentsAreWholeChunksAndWholePagesOfStates) {
  for (const Bytes chunk : {2 * kMiB, 6 * kMiB, 20 * kMiB, 32 * kMiB, 2 * kGiB}) {
    const Bytes segment = DeviceSegmentBytes(chunk);
    EXPECT_GE(segment, kGiB);
    EXPECT_EQ(segment % chunk, 0u) << chunk;
    EXPECT_EQ(segment / (64 * kKiB) * 32 % (4 * kKiB), 0u) << chunk;
  }
  EXPECT_EQ(DeviceSegmentBytes(2 * kMiB), kGiB);
}

}  // namespace
}  // namespace torpor::server
