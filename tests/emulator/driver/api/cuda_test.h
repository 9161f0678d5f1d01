#pragma once

#include <cuda.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#define EXPECT_CUDA(call) EXPECT_EQ((call), CUDA_SUCCESS)
#define ASSERT_CUDA(call) ASSERT_EQ((call), CUDA_SUCCESS)

namespace torpor::emulator {

// A process with two emulated GPUs of 256 MiB; the primary context of the first is current.
// The second one's copies are paced at 1 GB/s. ctest gives every case a process of its own.
class CudaTest : public testing::Test {
 protected:
  void SetUp() override { Start(); }

  void TearDown() override { cuDevicePrimaryCtxReset(0); }

  // What SetUp does; tests of several processes do it in each of them instead. `gpus` are lines of
  // a topology file.
  void Start(const std::string& gpus =
                 "  - {name: First, memory: 256MiB}\n"
                 "  - {name: Second, memory: 256MiB, pcie_gbps: 1}\n") {
    const std::string path = testing::TempDir() + "topology-" + std::to_string(getpid()) + ".yaml";
    std::ofstream(path) << "version: v1\ngpus:\n" << gpus;
    setenv("TORPOR_EMULATOR_TOPOLOGY", path.c_str(), 1);
    ASSERT_CUDA(cuInit(0));
    std::remove(path.c_str());
    ASSERT_CUDA(cuDevicePrimaryCtxRetain(&context_, 0));
    ASSERT_CUDA(cuCtxSetCurrent(context_));
  }

  CUcontext context_ = nullptr;
};

}  // namespace torpor::emulator
