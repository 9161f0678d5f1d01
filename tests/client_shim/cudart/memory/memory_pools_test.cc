#include "client_shim/cudart/memory/memory_pools.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "proto/cuda_api/cudart_commands.h"
#include "tests/client_shim/surface/fake_client_core.h"

namespace torpor::shim {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;
constexpr std::size_t kSegment = std::size_t{2} << 20;

class MemoryPoolsTest : public testing::Test {
 protected:
  void SetUp() override {
    core_.Forget();
    ForgetPools();
    core_.is_drained = false;
    core_.has_slots = true;
    ASSERT_EQ(cudaStreamCreate(&stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&other_), cudaSuccess);
    ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool_, 0), cudaSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(other_), cudaSuccess);
    ForgetPools();
  }
  void* Malloc(std::size_t bytes, cudaStream_t stream) {
    void* pointer = nullptr;
    EXPECT_EQ(cudaMallocAsync(&pointer, bytes, stream), cudaSuccess);
    return pointer;
  }
  std::uint64_t Attribute(cudaMemPoolAttr attribute) {
    std::uint64_t value = 0;
    EXPECT_EQ(cudaMemPoolGetAttribute(pool_, attribute, &value), cudaSuccess);
    return value;
  }
  template <typename Command>
  bool HasSent() const {
    return std::any_of(core_.sent.begin(), core_.sent.end(),
                       [](const auto& sent) { return sent.call_id == Command::kCallId; });
  }

  FakeClientCore& core_ = FakeClientCore::Get();
  cudaStream_t stream_ = nullptr;
  cudaStream_t other_ = nullptr;
  cudaMemPool_t pool_ = nullptr;
};

TEST_F(MemoryPoolsTest, FreedMemoryIsReusedInStreamOrder) {
  core_.slots_stall = true;
  void* const block = Malloc(kSegment, stream_);
  ASSERT_EQ(cudaFreeAsync(block, stream_), cudaSuccess);
  EXPECT_EQ(Malloc(kSegment, stream_), block);
  ASSERT_EQ(cudaFreeAsync(block, stream_), cudaSuccess);
  EXPECT_NE(Malloc(kSegment, other_), block);
}

TEST_F(MemoryPoolsTest, AnotherStreamReusesWhatIsPassed) {
  void* const block = Malloc(kSegment, stream_);
  ASSERT_EQ(cudaFreeAsync(block, stream_), cudaSuccess);
  EXPECT_EQ(Malloc(kSegment, other_), block);
  EXPECT_FALSE(HasSent<wire::StreamWaitEvent>());
}

TEST_F(MemoryPoolsTest, WithoutMemoryAStreamWaitsForAnother) {
  core_.slots_stall = true;
  core_.room = kSegment;
  void* const block = Malloc(kSegment, stream_);
  ASSERT_EQ(cudaFreeAsync(block, stream_), cudaSuccess);
  EXPECT_EQ(Malloc(kBlock, other_), block);
  EXPECT_TRUE(HasSent<wire::EventRecord>());
  EXPECT_TRUE(HasSent<wire::StreamWaitEvent>());
  EXPECT_FALSE(HasSent<wire::DeviceSynchronize>());
}

TEST_F(MemoryPoolsTest, AStreamThatMayNotWaitSynchronises) {
  int no = 0;
  ASSERT_EQ(cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseAllowInternalDependencies, &no),
            cudaSuccess);
  core_.slots_stall = true;
  core_.room = kSegment;
  void* const block = Malloc(kSegment, stream_);
  ASSERT_EQ(cudaFreeAsync(block, stream_), cudaSuccess);
  void* pointer = nullptr;
  EXPECT_EQ(cudaMallocAsync(&pointer, kBlock, other_), cudaErrorMemoryAllocation);
  EXPECT_TRUE(HasSent<wire::DeviceSynchronize>());
  EXPECT_FALSE(HasSent<wire::StreamWaitEvent>());
}

TEST_F(MemoryPoolsTest, NoSizeIsTooLargeToBeRefused) {
  void* const block = Malloc(kBlock, stream_);
  ASSERT_EQ(cudaFreeAsync(block, stream_), cudaSuccess);
  void* pointer = nullptr;
  EXPECT_EQ(cudaMallocAsync(&pointer, ~std::size_t{0}, stream_), cudaErrorMemoryAllocation);
  EXPECT_EQ(Malloc(kBlock, stream_), block);
}

TEST_F(MemoryPoolsTest, AttributesTellWhatIsReservedAndUsed) {
  void* const first = Malloc(kBlock, stream_);
  void* const second = Malloc(kBlock, stream_);
  EXPECT_EQ(Attribute(cudaMemPoolAttrReservedMemCurrent), kSegment);
  EXPECT_EQ(Attribute(cudaMemPoolAttrUsedMemCurrent), 2 * kBlock);
  ASSERT_EQ(cudaFreeAsync(first, stream_), cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(second, stream_), cudaSuccess);
  EXPECT_EQ(Attribute(cudaMemPoolAttrUsedMemCurrent), 0u);
  EXPECT_EQ(Attribute(cudaMemPoolAttrUsedMemHigh), 2 * kBlock);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(Attribute(cudaMemPoolAttrReservedMemCurrent), 0u);
  EXPECT_EQ(core_.freed.size(), 1u);
  std::uint64_t value = 1;
  EXPECT_EQ(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrUsedMemHigh, &value),
            cudaErrorInvalidValue);
  value = 0;
  EXPECT_EQ(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrUsedMemHigh, &value), cudaSuccess);
  EXPECT_EQ(Attribute(cudaMemPoolAttrUsedMemHigh), 0u);
}

TEST_F(MemoryPoolsTest, AThresholdKeepsMemoryUntilItIsTrimmed) {
  std::uint64_t threshold = ~std::uint64_t{0};
  ASSERT_EQ(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &threshold),
            cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(Malloc(kBlock, stream_), stream_), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(Attribute(cudaMemPoolAttrReservedMemCurrent), kSegment);
  ASSERT_EQ(cudaMemPoolTrimTo(pool_, 1), cudaSuccess);
  EXPECT_EQ(Attribute(cudaMemPoolAttrReservedMemCurrent), kSegment);
  ASSERT_EQ(cudaMemPoolTrimTo(pool_, 0), cudaSuccess);
  EXPECT_EQ(Attribute(cudaMemPoolAttrReservedMemCurrent), 0u);
}

TEST_F(MemoryPoolsTest, AnotherPoolIsUsedUntilItIsDestroyed) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  properties.maxSize = kSegment;
  cudaMemPool_t mine = nullptr;
  ASSERT_EQ(cudaMemPoolCreate(&mine, &properties), cudaSuccess);
  ASSERT_EQ(cudaDeviceSetMemPool(0, mine), cudaSuccess);
  void* const block = Malloc(kBlock, stream_);
  EXPECT_EQ(Attribute(cudaMemPoolAttrUsedMemCurrent), 0u) << "of the default pool";
  void* pointer = nullptr;
  EXPECT_EQ(cudaMallocAsync(&pointer, 16 * kSegment, stream_), cudaErrorMemoryAllocation);
  ASSERT_EQ(cudaMemPoolDestroy(mine), cudaSuccess);
  cudaMemPool_t current = nullptr;
  ASSERT_EQ(cudaDeviceGetMemPool(&current, 0), cudaSuccess);
  EXPECT_EQ(current, pool_);
  EXPECT_EQ(cudaMallocFromPoolAsync(&pointer, kBlock, mine, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeAsync(block, stream_), cudaSuccess) << "it outlives its pool's handle";
  EXPECT_EQ(cudaMemPoolDestroy(pool_), cudaErrorInvalidValue) << "the default pool stays";
}

TEST_F(MemoryPoolsTest, WhatPoolsHoldIsGivenToOthersInNeed) {
  std::uint64_t threshold = ~std::uint64_t{0};
  ASSERT_EQ(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &threshold),
            cudaSuccess);
  core_.room = kSegment;
  void* const block = Malloc(kBlock, stream_);
  ASSERT_EQ(cudaFreeAsync(block, stream_), cudaSuccess);
  void* pointer = nullptr;
  EXPECT_EQ(cudaMalloc(&pointer, kBlock), cudaSuccess);
  EXPECT_EQ(core_.freed.size(), 1u);
  EXPECT_EQ(cudaFree(pointer), cudaSuccess);
}

TEST_F(MemoryPoolsTest, GivingMemoryBackTakesNoErrorOfEarlierWork) {
  core_.room = kSegment;
  ASSERT_EQ(cudaFreeAsync(Malloc(kBlock, stream_), stream_), cudaSuccess);
  core_.async_error = cudaErrorLaunchFailure;
  void* pointer = nullptr;
  ASSERT_EQ(cudaMalloc(&pointer, kBlock), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaFree(pointer), cudaSuccess);
}

TEST_F(MemoryPoolsTest, PointersAreKnownToTheEndOfTheirBlock) {
  auto* const block = static_cast<char*>(Malloc(kBlock, stream_));
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, block + 5), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(cudaMemsetAsync(block + 1, 0, kBlock, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(block, 0, kBlock, stream_), cudaSuccess);
  ASSERT_EQ(cudaFree(block), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(block, 0, 1, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeAsync(block, stream_), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace torpor::shim
