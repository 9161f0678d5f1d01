#include "client_shim/core/memory/pinned_extents.h"

#include <gtest/gtest.h>

namespace torpor::shim {
namespace {

constexpr std::uint64_t kPinned = 0x3000'0000'0000;
constexpr std::uint64_t kMebibyte = 1 << 20;

TEST(PinnedExtents, ContainWhatWasAddedAndALittleAround) {
  PinnedExtents extents;
  EXPECT_TRUE(extents.IsEmpty());
  EXPECT_FALSE(extents.Contain(kPinned));
  extents.Add(kPinned, kMebibyte);
  EXPECT_FALSE(extents.IsEmpty());
  EXPECT_TRUE(extents.Contain(kPinned));
  EXPECT_TRUE(extents.Contain(kPinned + kMebibyte - 1));
  EXPECT_TRUE(extents.Contain(kPinned - 8)) << "an array that counts from one";
  EXPECT_TRUE(extents.Contain(kPinned + kMebibyte)) << "an end";
  EXPECT_FALSE(extents.Contain(kPinned - kMebibyte));
  EXPECT_FALSE(extents.Contain(kPinned + 2 * kMebibyte));
  EXPECT_FALSE(extents.Contain(0));
  EXPECT_FALSE(extents.Contain(~std::uint64_t{0}));
}

TEST(PinnedExtents, WhatLiesBetweenIsOutside) {
  PinnedExtents extents;
  extents.Add(kPinned + 8 * kMebibyte, 8);
  extents.Add(kPinned, 8);
  extents.Add(kPinned + 4 * kMebibyte, 8);
  for (const std::uint64_t at : {0, 4, 8}) EXPECT_TRUE(extents.Contain(kPinned + at * kMebibyte));
  for (const std::uint64_t at : {2, 6, 10}) EXPECT_FALSE(extents.Contain(kPinned + at * kMebibyte));
}

TEST(PinnedExtents, NeighboursAndPartsOfOthersAreTakenInAnyOrder) {
  PinnedExtents extents;
  extents.Add(kPinned + 2 * kMebibyte, kMebibyte);
  extents.Add(kPinned, kMebibyte);
  extents.Add(kPinned + 8 * kMebibyte, kMebibyte);
  extents.Add(kPinned + kMebibyte / 2, 2 * kMebibyte);
  extents.Add(kPinned + kMebibyte, 8);
  for (std::uint64_t at = 0; at < 3 * kMebibyte; at += kMebibyte / 4)
    EXPECT_TRUE(extents.Contain(kPinned + at)) << at;
  EXPECT_FALSE(extents.Contain(kPinned + 4 * kMebibyte));
  EXPECT_TRUE(extents.Contain(kPinned + 8 * kMebibyte));
}

}  // namespace
}  // namespace torpor::shim
