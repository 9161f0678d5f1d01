#include "server/executor/runtime/limit_calls.h"

#include <driver_types.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/executor/gpu/fake_cuda.h"

namespace torpor::executor {
namespace {

class LimitCallsTest : public testing::Test {
 protected:
  std::uint64_t Limit(LimitCalls& calls) {
    wire::DeviceGetLimitResult result;
    EXPECT_TRUE(calls.DeviceGetLimit({cudaLimitStackSize}, result).ok());
    return result.value;
  }

  FakeCuda cuda_;
  std::unique_ptr<Device> device_ = *Device::Open(cuda_.driver(), 0);
};

TEST_F(LimitCallsTest, ASessionSeesTheLimitThatItHasSet) {
  LimitCalls one(*device_);
  LimitCalls other(*device_);
  const std::uint64_t usual = Limit(other);
  EXPECT_TRUE(one.DeviceSetLimit({cudaLimitStackSize, usual / 2}).ok());
  EXPECT_EQ(Limit(one), usual / 2);
  EXPECT_EQ(Limit(other), usual);
}

TEST_F(LimitCallsTest, LimitsThatKernelsFixAreRaisedAtStartUnseen) {
  device_->RaiseLimits();
  EXPECT_EQ(cuda_.limit(CU_LIMIT_MALLOC_HEAP_SIZE), kGiB / 128);
  cuda_.FixLimits();
  LimitCalls calls(*device_);
  wire::DeviceGetLimitResult heap;
  ASSERT_TRUE(calls.DeviceGetLimit({cudaLimitMallocHeapSize}, heap).ok());
  EXPECT_EQ(heap.value, 1024U);
  EXPECT_TRUE(calls.DeviceSetLimit({cudaLimitMallocHeapSize, 2 * kMiB}).ok());
  ASSERT_TRUE(calls.DeviceGetLimit({cudaLimitMallocHeapSize}, heap).ok());
  EXPECT_EQ(heap.value, 2 * kMiB);
  const auto refused = calls.DeviceSetLimit({cudaLimitMallocHeapSize, kGiB});
  EXPECT_EQ(refused.code, cudaErrorInvalidValue);
  EXPECT_THAT(refused.message, testing::HasSubstr("cannot rise from 8388608 to 1073741824"));
}

TEST_F(LimitCallsTest, NoFunctionsHeapTakesTheGpu) {
  LimitCalls calls(*device_);
  EXPECT_TRUE(calls.DeviceSetLimit({cudaLimitMallocHeapSize, kGiB / 16}).ok());
  for (const Bytes heap : {kGiB / 16 + 1, 1024 * kGiB}) {
    const auto refused = calls.DeviceSetLimit({cudaLimitMallocHeapSize, heap});
    EXPECT_EQ(refused.code, cudaErrorInvalidValue);
    EXPECT_THAT(refused.message, testing::HasSubstr("on a GPU that functions share"));
  }
  EXPECT_EQ(calls.DeviceSetLimit({cudaLimitPrintfFifoSize, kGiB / 8}).code, cudaErrorInvalidValue);
  EXPECT_EQ(cuda_.limit(CU_LIMIT_MALLOC_HEAP_SIZE), kGiB / 16);
}

TEST_F(LimitCallsTest, UnknownLimitsAreRefused) {
  LimitCalls calls(*device_);
  wire::DeviceGetLimitResult result;
  EXPECT_EQ(calls.DeviceSetLimit({CU_LIMIT_MAX, 1}).code, cudaErrorUnsupportedLimit);
  EXPECT_EQ(calls.DeviceGetLimit({~0u}, result).code, cudaErrorUnsupportedLimit);
}

}  // namespace
}  // namespace torpor::executor
