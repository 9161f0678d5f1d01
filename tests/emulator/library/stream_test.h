#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdlib>

#define ASSERT_CUDA(call) ASSERT_EQ((call), CUDA_SUCCESS)

namespace torpor::emulator {

// A process with an emulated GPU of 256 MiB, its primary context current, and a stream for the
// library under test.
class StreamTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TORPOR_EMULATOR_MEMORY", "256MiB", 1);
    ASSERT_CUDA(cuInit(0));
    CUcontext context = nullptr;
    ASSERT_CUDA(cuDevicePrimaryCtxRetain(&context, 0));
    ASSERT_CUDA(cuCtxSetCurrent(context));
    ASSERT_CUDA(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  }
  void TearDown() override { cuDevicePrimaryCtxReset(0); }

  CUstream stream_ = nullptr;
};

}  // namespace torpor::emulator
