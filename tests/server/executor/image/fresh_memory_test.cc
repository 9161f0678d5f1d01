#include "server/executor/image/fresh_memory.h"

#include <gtest/gtest.h>

namespace torpor::executor {
namespace {

TEST(FreshMemoryTest, NothingIsFreshBeforeTheFirstCheckpoint) {
  FreshMemory fresh;
  EXPECT_FALSE(fresh.Contains({0, 8}));
  fresh.UseAll();
  fresh.Reset();
  EXPECT_TRUE(fresh.Contains({0, 8}));
}

TEST(FreshMemoryTest, ACommandUsesAllMemoryThereIs) {
  FreshMemory fresh;
  fresh.Reset();
  fresh.UseAll();
  EXPECT_FALSE(fresh.Contains({0, 8}));
  fresh.Add({64, 128});
  EXPECT_TRUE(fresh.Contains({64, 128}));
  EXPECT_FALSE(fresh.Contains({120, 136})) << "half of it may be in use";
  fresh.UseAll();
  EXPECT_FALSE(fresh.Contains({64, 128}));
}

TEST(FreshMemoryTest, WhatAReplayRepeatsIsUsedUntilTheNextCheckpoint) {
  FreshMemory fresh;
  fresh.Reset();
  fresh.Use({8, 16});
  EXPECT_TRUE(fresh.Contains({0, 8}));
  EXPECT_TRUE(fresh.Contains({16, 24}));
  EXPECT_FALSE(fresh.Contains({12, 24})) << "half of it comes again";
  fresh.Reset();
  EXPECT_TRUE(fresh.Contains({12, 24}));
  fresh.UseAll();
  fresh.Add({64, 128});
  fresh.Use({64, 72});
  EXPECT_FALSE(fresh.Contains({64, 128}));
  EXPECT_TRUE(fresh.Contains({72, 128}));
}

}  // namespace
}  // namespace torpor::executor
