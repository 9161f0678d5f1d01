#include "emulator/driver/context/context_limits.h"

#include <gtest/gtest.h>

#include "tests/emulator/driver/emulated_device.h"

namespace torpor::emulator {
namespace {

TEST(ContextLimitsTest, LimitsOfPrintfAndTheHeapAreFixedByTheFirstKernelThatUsesThem) {
  EmulatedDevice emulated({.memory_overheads = true});
  ContextLimits limits(emulated.device);
  EXPECT_EQ(limits.Set(CU_LIMIT_PRINTF_FIFO_SIZE, 4 * kMiB), CUDA_SUCCESS);
  ASSERT_EQ(limits.Use({.name = "quiet"}), CUDA_SUCCESS);
  EXPECT_EQ(limits.Set(CU_LIMIT_PRINTF_FIFO_SIZE, 2 * kMiB), CUDA_SUCCESS);
  ASSERT_EQ(limits.Use({.name = "loud", .prints = true}), CUDA_SUCCESS);
  EXPECT_EQ(limits.Set(CU_LIMIT_PRINTF_FIFO_SIZE, 4 * kMiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(limits.Get(CU_LIMIT_PRINTF_FIFO_SIZE), 2 * kMiB);
  EXPECT_EQ(limits.Set(CU_LIMIT_MALLOC_HEAP_SIZE, 16 * kMiB), CUDA_SUCCESS);
  ASSERT_EQ(limits.Use({.name = "hoarder", .allocates = true}), CUDA_SUCCESS);
  EXPECT_EQ(limits.Set(CU_LIMIT_MALLOC_HEAP_SIZE, 32 * kMiB), CUDA_ERROR_INVALID_VALUE);
}

TEST(ContextLimitsTest, StacksTakeMemoryOfTheDeviceAndKeepIt) {
  EmulatedDevice emulated({.memory_overheads = true});
  const Bytes threads = 2048 * emulated.device.spec().multiprocessors;
  const Bytes free = emulated.device.budget().free();
  ContextLimits limits(emulated.device);
  ASSERT_EQ(limits.Use({.name = "deep", .local_bytes = 512}), CUDA_SUCCESS);
  EXPECT_EQ(emulated.device.budget().free(), free - 512 * threads);
  ASSERT_EQ(limits.Set(CU_LIMIT_STACK_SIZE, kKiB), CUDA_SUCCESS);
  EXPECT_EQ(emulated.device.budget().free(), free - kKiB * threads);
  ASSERT_EQ(limits.Set(CU_LIMIT_STACK_SIZE, 256), CUDA_SUCCESS);
  EXPECT_EQ(emulated.device.budget().free(), free - kKiB * threads);
  EXPECT_EQ(limits.Set(CU_LIMIT_STACK_SIZE, kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(limits.Get(CU_LIMIT_STACK_SIZE), 256U);
}

TEST(ContextLimitsTest, AForgivingDriverFixesNothing) {
  EmulatedDevice emulated;
  const Bytes free = emulated.device.budget().free();
  ContextLimits limits(emulated.device);
  ASSERT_EQ(limits.Use({.name = "loud", .local_bytes = kMiB, .prints = true}), CUDA_SUCCESS);
  EXPECT_EQ(limits.Set(CU_LIMIT_PRINTF_FIFO_SIZE, 4 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(limits.Set(CU_LIMIT_STACK_SIZE, kMiB), CUDA_SUCCESS);
  EXPECT_EQ(emulated.device.budget().free(), free);
  EXPECT_EQ(limits.Set(CU_LIMIT_MAX, 1), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace torpor::emulator
