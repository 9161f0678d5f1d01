#include "server/executor/gpu/device.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/server/executor/gpu/fake_cuda.h"

namespace torpor::executor {
namespace {

// A node has more waiting threads than cores.
TEST(DeviceTest, ThreadsWaitAsleep) {
  static unsigned set_flags = 0;
  FakeCuda cuda;
  CudaDriver driver = cuda.driver();
  driver.DevicePrimaryCtxSetFlags = [](CUdevice, unsigned flags) {
    return set_flags = flags, CUDA_SUCCESS;
  };
  ASSERT_TRUE(Device::Open(driver, 0).ok());
  EXPECT_EQ(set_flags & CU_CTX_SCHED_MASK, +CU_CTX_SCHED_BLOCKING_SYNC);
}

TEST(DeviceTest, DiscardedObjectsGoWhenTheDriverHasNoMemory) {
  FakeCuda cuda;
  const std::unique_ptr<Device> device = *Device::Open(cuda.driver(), 0);
  CUevent event = nullptr;
  ASSERT_EQ(device->driver().EventCreate(&event, 0), CUDA_SUCCESS);
  device->discarded().Add(event);
  int calls = 0;
  EXPECT_EQ(device->MakingRoom([&] { return ++calls, CUDA_ERROR_INVALID_VALUE; }),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(cuda.live_events(), 1U) << "the failure was another";
  const auto create = [&] {
    ++calls;
    return cuda.live_events() > 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  };
  EXPECT_EQ(device->MakingRoom(create), CUDA_SUCCESS);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(device->MakingRoom([&] { return ++calls, CUDA_ERROR_OUT_OF_MEMORY; }),
            CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(calls, 4) << "nothing was left to destroy";
}

}  // namespace
}  // namespace torpor::executor
