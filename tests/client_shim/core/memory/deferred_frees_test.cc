#include "client_shim/core/memory/deferred_frees.h"

#include <gtest/gtest.h>

namespace torpor::shim {
namespace {

TEST(DeferredFreesTest, AllocationsOfTheSameSizeGetTheMemoryBack) {
  DeferredFrees frees;
  std::uint64_t address = 0;
  EXPECT_FALSE(frees.Take(1000, address));
  frees.Add(0x4000, 1000, 3);
  EXPECT_EQ(frees.bytes(), 1024u);
  EXPECT_FALSE(frees.Take(2000, address));
  EXPECT_TRUE(frees.Take(600, address)) << "torpord would round both to the same";
  EXPECT_EQ(address, 0x4000u);
  EXPECT_EQ(frees.bytes(), 0u);
  EXPECT_FALSE(frees.Take(1000, address));
}

TEST(DeferredFreesTest, WhatIsSavedIsFree) {
  DeferredFrees frees;
  frees.Add(1, 512, 3);
  frees.Add(2, 512, 5);
  frees.Add(3, 4096, 4);
  EXPECT_TRUE(frees.TakeUpTo(2).empty());
  EXPECT_EQ(frees.TakeUpTo(4), (std::vector<std::uint64_t>{1, 3}));
  EXPECT_EQ(frees.bytes(), 512u);
  EXPECT_EQ(frees.TakeUpTo(5), std::vector<std::uint64_t>{2});
  EXPECT_TRUE(frees.TakeUpTo(5).empty());
}

}  // namespace
}  // namespace torpor::shim
