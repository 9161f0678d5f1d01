#include "client_shim/core/memory/deferred_frees.h"

#include <gtest/gtest.h>

#include <future>
#include <vector>

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

using Addresses = std::vector<std::uint64_t>;

Addresses FreedUpTo(DeferredFrees& frees, std::uint64_t saved) {
  Addresses freed;
  frees.FreeUpTo(saved, [&](std::uint64_t address) { freed.push_back(address); });
  return freed;
}

TEST(DeferredFreesTest, WhatIsSavedIsFree) {
  DeferredFrees frees;
  frees.Add(1, 512, 3);
  frees.Add(2, 512, 5);
  frees.Add(3, 4096, 4);
  EXPECT_TRUE(FreedUpTo(frees, 2).empty());
  EXPECT_EQ(FreedUpTo(frees, 4), (Addresses{1, 3}));
  EXPECT_EQ(frees.bytes(), 512u);
  EXPECT_EQ(FreedUpTo(frees, 5), Addresses{2});
  EXPECT_TRUE(FreedUpTo(frees, 5).empty());
}

TEST(DeferredFreesTest, AnAccountMissesNothingThatIsFreedMeanwhile) {
  DeferredFrees frees;
  frees.Add(1, 512, 3);
  frees.Add(2, 1024, 4);
  std::uint64_t freed = 0;  // as torpord counts
  std::uint64_t asked = 0;
  std::uint64_t deferred = 0;
  const auto ask = [&, round = 0]() mutable {
    asked = freed;
    if (++round == 1) frees.FreeUpTo(3, [&](std::uint64_t) { freed += 512; });
    return cudaSuccess;
  };
  EXPECT_EQ(frees.CountBeside(ask, deferred), cudaSuccess);
  EXPECT_EQ(deferred, 1024u);
  EXPECT_EQ(asked + deferred, 1536u);
}

TEST(DeferredFreesTest, AnAccountWaitsForFreesThatAreUnderWay) {
  DeferredFrees frees;
  frees.Add(1, 512, 3);
  frees.Add(2, 512, 3);
  std::uint64_t freed = 0;
  std::uint64_t asked = 0;
  std::uint64_t deferred = 0;
  std::promise<void> is_half_done;
  std::promise<void> goes_on;
  auto freeing = std::async(std::launch::async, [&] {
    frees.FreeUpTo(3, [&](std::uint64_t address) {
      freed += 512;
      if (address == 2) return;
      is_half_done.set_value();
      goes_on.get_future().wait();
    });
  });
  is_half_done.get_future().wait();
  const auto ask = [&, round = 0]() mutable {
    if (++round == 1) {
      asked = 512;
      goes_on.set_value();
      freeing.wait();
    } else {
      asked = freed;
    }
    return cudaSuccess;
  };
  EXPECT_EQ(frees.CountBeside(ask, deferred), cudaSuccess);
  EXPECT_EQ(asked + deferred, 1024u);
}

TEST(DeferredFreesTest, AnAccountThatFailsIsAnError) {
  const DeferredFrees frees;
  std::uint64_t deferred = 0;
  EXPECT_EQ(frees.CountBeside([] { return cudaErrorDevicesUnavailable; }, deferred),
            cudaErrorDevicesUnavailable);
}

}  // namespace
}  // namespace torpor::shim
